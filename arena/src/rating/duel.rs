//! One match between two checkpoints, ended by a sequential test: [`Duel`].

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use checkpoints::version::sha256_hex;
use config::{RatingConfig, RunConfig};
use games::registry;
use tokio_util::sync::CancellationToken;

use network::ModelName;

use crate::{
    Player,
    matches::{
        Budget, Conduct, MatchFolder, Plan,
        conduct::Ended,
        notation, openings, play,
        standing::{PairingStanding, Tested},
    },
    players::{NetworkOptions, Networks, spec::SearchSpec},
    statistics::{EloModel, Sprt, SprtSettings, Verdict},
};

/// Shortest time between two reports of a match's state.
const REPORT_INTERVAL: Duration = Duration::from_millis(250);

/// One of the two checkpoints of a match.
#[derive(Clone, Debug)]
pub struct Contender {
    /// Version of the checkpoint.
    pub name: String,
    /// Location of its network.
    pub network: ModelName,
}

/// A match between two checkpoints, with equal searches, paired openings and no noise.
#[derive(Clone, Debug)]
pub struct Duel<'a> {
    /// Configuration of the run: its game, its search, `[rating]`.
    pub config: &'a RunConfig,
    /// Test on the strength of the first contender.
    pub sprt: Sprt,
    /// The two checkpoints.
    pub contenders: [Contender; 2],
    /// Folder that holds the folders of the matches.
    pub matches: &'a Path,
    /// Processor time of the role.
    pub budget: &'a Budget,
}

/// Present state of a match, from the first contender's point of view.
#[derive(Clone, Debug)]
pub struct Live {
    /// Games, pairs and the estimate of strength.
    pub standing: PairingStanding,
    /// Log-likelihood ratio of the test.
    pub log_likelihood_ratio: f64,
}

impl Live {
    /// Number of finished games.
    pub fn games(&self) -> u64 {
        self.standing.wins + self.standing.draws + self.standing.losses
    }
}

/// Result of a match.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Reason for the end.
    pub ended: Ended,
    /// Verdict of the test.
    pub verdict: Verdict,
    /// Last state of the match.
    pub live: Live,
}

/// Largest probability of promoting a candidate that is only `rating.elo0` stronger, and of rejecting one that is `rating.elo1`
/// stronger.
const ERROR_PROBABILITY: f64 = 0.05;
/// Games in progress on each thread, evaluated together.
const GAMES_PER_THREAD: usize = 32;
/// Games of a role with a share of the processor time below 1: few, so that the first results come early.
const GAMES_OF_SHARE: usize = 4;
/// Largest number of games in a match of such a role, so that later checkpoints are rated soon, and few problems are drawn.
const MOST_GAMES_OF_SHARE: u64 = 100;

/// Returns the test that `[rating]` describes.
///
/// # Errors
/// The settings of `[rating]` are not those of a test.
pub fn sprt(config: &RatingConfig) -> anyhow::Result<Sprt> {
    let settings = SprtSettings {
        elo0: config.elo0,
        elo1: config.elo1,
        alpha: ERROR_PROBABILITY,
        beta: ERROR_PROBABILITY,
        model: EloModel::Logistic,
    };
    Sprt::new(settings).context("the sequential test in `[rating]` cannot be used")
}

/// Seed of the held-out problems on which the checkpoints of a game of one player are rated.
const PROBLEMS_SEED: u64 = 1;
/// Evaluation cache of each network, in MiB.
const CACHE_MIB: usize = 32;
/// Error of the rules of a run.
const RULES: &str = "`game.rules` cannot be used";

/// Returns the loader of networks for the duels of a run.
pub fn networks(config: &RunConfig) -> Networks {
    let rating = &config.rating;
    let options = NetworkOptions {
        provider: rating.provider,
        copies: rating.threads,
        threads: 1,
        batch: GAMES_PER_THREAD,
        cache_mib: CACHE_MIB,
    };
    Networks::new(options).of_run(config.security.clone())
}

/// Prefix of the names of all match folders of these two contenders, for any settings.
pub fn folder_prefix(first: &str, second: &str) -> String {
    format!("{first}-vs-{second}-")
}

impl Duel<'_> {
    /// Plays the missing games of the match until the test decides, the largest number of games is played, or `stop` is set.
    /// `report` receives the state at the beginning, with the games played before, and then a few times a second.
    ///
    /// # Errors
    /// The match cannot continue. The finished games are kept.
    pub fn play(
        &self,
        networks: &mut Networks,
        stop: &CancellationToken,
        report: &mut (dyn FnMut(&Live) + Send),
    ) -> anyhow::Result<Finished> {
        let config = self.config;
        let mut players = Vec::new();
        for contender in &self.contenders {
            players.push(self.player(contender, networks)?);
        }
        let plan = self.plan(&players)?;
        let [first, second] = &self.contenders;
        let name = folder_prefix(&first.name, &second.name) + &plan.identity();
        let path = self.matches.join(name);
        let mut folder = MatchFolder::open(&path, &plan)?;
        let conduct = Conduct {
            threads: config.rating.threads,
            games: if config.rating.is_limited() {
                GAMES_OF_SHARE
            } else {
                GAMES_PER_THREAD
            },
            sprt: Some(&self.sprt),
            budget: Some(self.budget),
            stop,
        };
        report(&live(&plan, &folder, &self.sprt).0);
        let mut last: Option<Instant> = None;
        let ended = play(&plan, &players, &mut folder, conduct, &mut |folder| {
            // Each report counts all games anew, so reports are rare.
            if last.is_none_or(|last| last.elapsed() >= REPORT_INTERVAL) {
                report(&live(&plan, folder, &self.sprt).0);
                last = Some(Instant::now());
            }
        })?;
        let (live, verdict) = live(&plan, &folder, &self.sprt);
        if ended != Ended::Stopped {
            notation::write(&folder, &plan)?;
        }
        Ok(Finished { ended, verdict, live })
    }

    fn player(&self, contender: &Contender, networks: &mut Networks) -> anyhow::Result<Player> {
        let game = registry::find(&self.config.game.name).context("`game.name` cannot be used")?;
        let spec = SearchSpec::with_visits(self.config.rating.visits);
        let spec = spec.context("checkpoints of this run cannot be rated")?;
        let settings = spec.settings(Some(&self.config.search));
        networks
            .open(&contender.network)
            .and_then(|network| Player::searching(game, contender.name.clone(), network, settings))
            .with_context(|| format!("cannot open the network of checkpoint {}", contender.name))
    }

    fn plan(&self, players: &[Player]) -> anyhow::Result<Plan> {
        let rating = &self.config.rating;
        let game = &self.config.game;
        let own = registry::find(&game.name).context("`game.name` cannot be used")?;
        let variant = own.variant(&serde_json::to_value(&game.rules)?, None);
        let variant = variant.context(RULES)?;
        let names = players.iter().map(Player::name).collect::<Vec<_>>().join(" ");
        // Every match draws different openings.
        let digest = u64::from_str_radix(&sha256_hex(names.as_bytes())[..16], 16).unwrap_or_default();
        let seed = self.config.run.seed ^ digest;
        let most = match rating.is_limited() {
            true => rating.max_games.min(MOST_GAMES_OF_SHARE),
            false => rating.max_games,
        };
        let pairs = most / 2;
        // Problems are the same in every match, so that solve rates can be compared over the run.
        let openings_seed = if own.players == 1 { PROBLEMS_SEED } else { seed };
        let openings = openings::usual(&*variant, openings_seed, own.opening_plies, pairs).context(RULES)?;
        let max_actions = self.config.search.max_actions as usize;
        Plan::new(&*variant, players, pairs, seed, openings, max_actions).context("`[rating]` cannot be used")
    }
}

fn live(plan: &Plan, folder: &MatchFolder, sprt: &Sprt) -> (Live, Verdict) {
    let mut tested = Tested::new(sprt);
    let verdict = tested.update(plan, folder.records());
    let live = Live {
        standing: PairingStanding::of(plan, folder.records(), [0, 1]),
        log_likelihood_ratio: sprt.log_likelihood_ratio(tested.pairs()),
    };
    (live, verdict)
}
