//! Measures a network against fixed opponents and an exact solver: [`measure`].

use std::path::Path;

use anyhow::{Context as _, ensure};
use arena::{
    Player, Spec,
    matches::{self, Conduct, MatchFolder, Plan, Standing, openings},
    players::{NetworkOptions, Networks},
};
use config::Provider;
use games::{erased::AnyGame, registry};
use tokio_util::sync::CancellationToken;

use super::{
    experiment::Experiment,
    state::{Match, Rated, RunState, Spent},
};
use crate::accuracy;

/// Seed of openings and matches, the same for all runs, so that all play the same openings.
const SEED: u64 = 1;
/// Games of a match at once.
const GAMES: usize = 32;
/// Number of actions after which a game ends as a draw.
const MAX_ACTIONS: usize = 1000;

/// Name of the opponent of [`Rating::control_games`](super::experiment::Rating::control_games).
pub const CONTROL: &str = "control";

/// Measures the network of `version` of the run in `folder`, with the provider of self-play. `control` is the complete run of the first
/// arm, if there is to be a match against its last network. An interrupted match continues where it stopped.
///
/// # Errors
/// The network or an opponent cannot be opened, or a match cannot continue.
pub fn measure(
    experiment: &Experiment,
    (folder, control): (&Path, Option<&Path>),
    provider: Provider,
    version: &str,
    spent: Spent,
) -> anyhow::Result<Rated> {
    let rating = &experiment.rating;
    let game = registry::find(&experiment.game)?;
    let model = own_spec(folder, version, rating.visits)?;
    let mut networks = Networks::new(NetworkOptions {
        provider,
        ..NetworkOptions::default()
    })
    .trusting_stores();
    let mut matches = Vec::new();
    for (number, against) in rating.against.iter().enumerate() {
        let folder = folder.join("matches").join(format!("{version}-{number}"));
        let players = [&model, &spec(against)?];
        matches.push(play(game, rating.games, players, &mut networks, &folder)?);
    }
    if let Some(control) = control {
        let state = RunState::read(control)?;
        let last = state
            .ratings
            .last()
            .context("the run of the first arm is not complete")?;
        let players = [&model, &own_spec(control, &last.version, rating.visits)?];
        let folder = folder.join("matches").join(format!("{version}-{CONTROL}"));
        matches.push(Match {
            against: CONTROL.into(),
            ..play(game, rating.control_games, players, &mut networks, &folder)?
        });
    }
    let optimal = match rating.solver_positions {
        0 => None,
        positions => Some(accuracy::of_network(
            &model,
            rating.visits,
            positions,
            &mut networks,
        )?),
    };
    Ok(Rated {
        version: version.into(),
        spent,
        matches,
        optimal_alone: optimal.map(|[alone, _]| alone),
        optimal_searched: optimal.map(|[_, searched]| searched),
    })
}

/// Returns a player that searches with the network of a run as in training.
fn own_spec(folder: &Path, version: &str, visits: u32) -> anyhow::Result<Spec> {
    let place = folder
        .to_str()
        .filter(|place| !place.contains(','))
        .context("the folder's name must be UTF-8 without a comma")?;
    spec(&format!("{place}@{version},visits={visits}"))
}

fn spec(text: &str) -> anyhow::Result<Spec> {
    text.parse().with_context(|| format!("player {text}"))
}

/// Plays a match, or the rest of it.
fn play(
    game: &'static AnyGame,
    games: u32,
    [own, other]: [&Spec; 2],
    networks: &mut Networks,
    folder: &Path,
) -> anyhow::Result<Match> {
    ensure!(
        game.players == 2,
        "{} has one player: `rating.against` must be empty",
        game.name
    );
    let variant = game.variant(&game.rules(), None)?;
    let pairs = u64::from(games / 2);
    let players = [
        Player::open(game, own, networks)?,
        Player::open(game, other, networks)?,
    ];
    let openings = openings::random(&*variant, SEED, game.opening_plies, pairs)?;
    let plan = Plan::new(&*variant, &players, pairs, SEED, openings, MAX_ACTIONS)?;
    let mut folder = MatchFolder::open(folder, &plan)?;
    let conduct = Conduct {
        threads: 1,
        games: GAMES,
        sprt: None,
        budget: None,
        stop: &CancellationToken::new(),
    };
    matches::play(&plan, &players, &mut folder, conduct, &mut |_| {})?;
    let standing = Standing::of(&plan, folder.records(), None);
    let pairing = standing.pairings.first().context("the match has no result")?;
    let estimate = pairing.estimate.as_ref().context("the match has no result")?;
    Ok(Match {
        against: other.written.clone(),
        games: [pairing.wins, pairing.draws, pairing.losses],
        score: estimate.score,
        elo: estimate.elo,
        elo_interval: estimate.elo_interval,
    })
}

/// Returns a line about a measurement.
pub fn text(rated: &Rated) -> String {
    let mut text = format!(
        "{} after {} evaluations and {} samples",
        rated.version, rated.spent.evaluations, rated.spent.samples
    );
    for result in &rated.matches {
        let [wins, draws, losses] = result.games;
        text += &format!("; +{wins} ={draws} -{losses} against {}", result.against);
    }
    if let (Some(alone), Some(searched)) = (rated.optimal_alone, rated.optimal_searched) {
        text += &format!(
            "; {:.1} % optimal alone, {:.1} % with search",
            100.0 * alone,
            100.0 * searched
        );
    }
    text
}
