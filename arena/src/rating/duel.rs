//! One match between two checkpoints, ended by a sequential test: [`Duel`].

use std::{
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use checkpoints::{Version, version::sha256_hex};
use config::{RatingConfig, RunConfig};
use games::{
    Notation,
    registry::{self, Visitor},
};

use super::RatingError;
use network::ModelName;

use crate::{
    Player,
    matches::{
        Conduct, MatchFolder, Plan,
        conduct::Ended,
        notation, openings,
        plan::{Entrant, SCHEMA},
        play,
        standing::{PairingStanding, Tested},
    },
    players::{NetworkOptions, Networks, spec::SearchSpec},
    statistics::{EloModel, Sprt, SprtSettings, Verdict},
};

/// Largest batch that a network in this process is warmed for.
const LARGEST_BATCH: usize = 256;
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

impl Contender {
    /// Returns the checkpoint `version` in the model store of a run.
    pub fn stored(version: &Version, config: &RunConfig) -> Self {
        Self {
            name: version.to_string(),
            network: ModelName::Store {
                url: config.checkpoints.store.clone(),
                version: Some(version.to_string()),
            },
        }
    }
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
    /// Folder of the match.
    pub folder: PathBuf,
}

/// Returns the test that `[rating]` describes.
///
/// # Errors
/// [`RatingError`] if its settings are invalid.
pub fn sprt(config: &RatingConfig) -> Result<Sprt, RatingError> {
    let settings = SprtSettings {
        elo0: config.elo0,
        elo1: config.elo1,
        alpha: config.alpha,
        beta: config.beta,
        model: EloModel::Logistic,
    };
    Sprt::new(settings).map_err(RatingError::of_key("the sequential test in `[rating]`"))
}

/// Seed of the held-out problems on which the checkpoints of a game of one player are rated.
const PROBLEMS_SEED: u64 = 1;
/// Evaluation cache of each network, in MiB.
const CACHE_MIB: usize = 32;

/// Returns the loader of networks for the duels of a run.
pub fn networks(config: &RunConfig) -> Networks {
    let rating = &config.rating;
    let options = NetworkOptions {
        provider: rating.provider,
        copies: rating.threads,
        threads: 1,
        batch: rating.games_per_thread.clamp(1, LARGEST_BATCH),
        cache_mib: CACHE_MIB,
    };
    Networks::new(options).of_run(config.inference.runtime.clone(), config.security.clone())
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
    /// [`RatingError`] if the match cannot continue. The finished games are kept.
    pub fn play(
        &self,
        networks: &mut Networks,
        stop: &AtomicBool,
        report: &mut (dyn FnMut(&Live) + Send),
    ) -> Result<Finished, RatingError> {
        let playing = Playing {
            duel: self,
            networks,
            stop,
            report,
        };
        let played =
            registry::visit(&self.config.game.name, playing).map_err(RatingError::of_key("`game.name`"))?;
        networks.forget();
        played
    }

    fn player<G: Notation>(
        &self,
        contender: &Contender,
        networks: &mut Networks,
    ) -> Result<Player<G>, RatingError> {
        let spec = SearchSpec::with_visits(self.config.rating.visits).map_err(RatingError::Config)?;
        let settings = spec.settings(Some(&self.config.search));
        networks
            .open(&contender.network)
            .and_then(|network| Player::searching(contender.name.clone(), network, settings))
            .map_err(|source| RatingError::Player {
                version: contender.name.clone(),
                source: Box::new(source),
            })
    }

    fn plan<G: Notation>(&self, rules: &G::Rules, players: &[Player<G>]) -> Result<Plan, RatingError> {
        let rating = &self.config.rating;
        let names = players.iter().map(Player::name).collect::<Vec<_>>().join(" ");
        // Every match draws different openings.
        let own = u64::from_str_radix(&sha256_hex(names.as_bytes())[..16], 16).unwrap_or_default();
        let seed = self.config.run.seed ^ own;
        let pairs = rating.max_games / 2;
        // Problems are the same in every match, so that solve rates can be compared over the run.
        let openings_seed = if G::PLAYERS == 1 { PROBLEMS_SEED } else { seed };
        let plan = Plan {
            schema: SCHEMA,
            game: G::NAME.into(),
            rules: serde_json::to_value(rules).map_err(RatingError::of_key("`game.rules`"))?,
            players: players
                .iter()
                .map(|player| Entrant::of(player, player.name()))
                .collect(),
            pairs,
            seed,
            openings: openings::usual::<G>(rules, openings_seed, G::OPENING_PLIES, pairs)
                .map_err(RatingError::of_key("`game.rules`"))?,
            max_actions: self.config.search.max_actions as usize,
        };
        plan.check().map_err(RatingError::of_key("`[rating]`"))?;
        Ok(plan)
    }
}

struct Playing<'a, 'b> {
    duel: &'a Duel<'b>,
    networks: &'a mut Networks,
    stop: &'a AtomicBool,
    report: &'a mut (dyn FnMut(&Live) + Send),
}

impl Visitor for Playing<'_, '_> {
    type Output = Result<Finished, RatingError>;

    fn visit<G: Notation>(self) -> Self::Output {
        let duel = self.duel;
        let config = duel.config;
        let rules = serde_json::to_value(&config.game.rules).and_then(serde_json::from_value);
        let rules: G::Rules = rules.map_err(RatingError::of_key("`game.rules`"))?;
        let mut players = Vec::new();
        for contender in &duel.contenders {
            players.push(duel.player::<G>(contender, self.networks)?);
        }
        let plan = duel.plan::<G>(&rules, &players)?;
        let [first, second] = &duel.contenders;
        let name = folder_prefix(&first.name, &second.name) + &plan.identity();
        let path = duel.matches.join(name);
        let mut folder = MatchFolder::open::<G>(&path, &plan, &rules)?;
        let conduct = Conduct {
            threads: config.rating.threads,
            games: config.rating.games_per_thread,
            sprt: Some(&duel.sprt),
            stop: self.stop,
        };
        let report = self.report;
        report(&live(&plan, &folder, &duel.sprt).0);
        let mut last: Option<Instant> = None;
        let ended = play(&plan, &rules, &players, &mut folder, conduct, &mut |progress| {
            // Each report counts all games anew, so reports are rare.
            if last.is_none_or(|last| last.elapsed() >= REPORT_INTERVAL) {
                report(&live(&plan, progress.folder, &duel.sprt).0);
                last = Some(Instant::now());
            }
        })?;
        let (live, verdict) = live(&plan, &folder, &duel.sprt);
        if ended != Ended::Stopped {
            notation::write::<G>(&folder, &plan, &rules)?;
        }
        Ok(Finished {
            ended,
            verdict,
            live,
            folder: path,
        })
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
