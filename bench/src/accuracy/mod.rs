//! `minuet bench accuracy`: share of optimal moves by phase of the game, judged by an exact solver.
//!
//! Positions and their optimal moves are those of [`arena::solver_test`]. The entry `random` is the expected share of a player with random
//! moves.
//!
//! | module | content |
//! |---|---|
//! | [`positions`] | positions by phase of the game |

mod positions;

use std::time::Instant;

use anyhow::{Context as _, ensure};
use arena::{
    Player, Spec,
    players::{
        NetworkOptions, Networks,
        searches::decide_all,
        spec::{Kind, SearchSpec},
    },
};
use clap::builder::PossibleValuesParser;
use config::Provider;
use games::{
    Game as _,
    connect_four::ConnectFour,
    erased::{AnyGame, AnyState},
    registry,
};
use search::{Decision, Settings};
use serde::Serialize;

use self::positions::{PHASES, Position};
use crate::harness::report;

/// Arguments of `minuet bench accuracy`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  minuet bench accuracy --game connect-four --model runs/connect-four --json
  minuet bench accuracy --game connect-four --model runs/a --model runs/b@best --visits 100 --visits 400 --positions 100")]
pub struct Arguments {
    /// Game; it needs a solver.
    #[arg(long, default_value = ConnectFour::NAME, value_parser = PossibleValuesParser::new([ConnectFour::NAME]))]
    game: String,
    /// Network: a run's folder, runs/x@version, a checkpoint's folder, a model.onnx or http://host:port. May be repeated.
    #[arg(long = "model", value_name = "MODEL")]
    models: Vec<Spec>,
    /// Visits per move of the measured searches; networks without search are measured too. May be repeated.
    #[arg(long = "visits", value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    visits: Vec<u32>,
    /// Number of positions per phase.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    positions: u32,
    /// Seed of the positions.
    #[arg(long, default_value_t = SEED)]
    seed: u64,
    /// Execution provider: auto, cpu, cpu-int8, openvino-f32, openvino-bf16, cuda.
    #[arg(long, default_value = "auto")]
    provider: Provider,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Result of the benchmark.
#[derive(Serialize)]
struct Report {
    /// Always `accuracy`.
    bench: &'static str,
    game: String,
    seed: u64,
    /// The phases, each with its range of discs on the board and its number of positions.
    phases: Vec<Phase>,
    /// Time of the solver for all positions, in seconds.
    solver_seconds: f64,
    players: Vec<Measured>,
}

#[derive(Serialize)]
struct Phase {
    name: &'static str,
    discs: [u32; 2],
    positions: usize,
}

/// One player's shares of optimal moves.
#[derive(Serialize)]
struct Measured {
    player: String,
    /// Version of the network, if it has one.
    version: Option<String>,
    /// Visits per move; 0: the network's action of the highest prior.
    visits: u32,
    /// Share in each phase.
    optimal: Vec<f64>,
    /// Share over all positions.
    all: f64,
    /// Half of the 95 % interval of `all` (normal approximation).
    margin: f64,
}

/// Number of searches side by side.
const AT_ONCE: usize = 64;

fn game() -> anyhow::Result<&'static AnyGame> {
    Ok(registry::find(ConnectFour::NAME)?)
}

/// Runs the benchmark.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let game = game()?;
    let mut networks = Networks::new(NetworkOptions {
        provider: arguments.provider,
        ..NetworkOptions::default()
    });
    let players = arguments
        .models
        .iter()
        .map(|spec| {
            ensure!(
                matches!(spec.kind, Kind::Model(..)),
                "--model {}: not a checkpoint",
                spec.name
            );
            Player::open(game, spec, &mut networks).with_context(|| format!("--model {}", spec.name))
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let began = Instant::now();
    let positions = positions::draw(game, arguments.seed, arguments.positions as usize)?;
    let solver_seconds = began.elapsed().as_secs_f64();

    let mut measured = vec![Measured::new("random", None, 0, &positions, |(_, test)| {
        test.share_of_optimal()
    })];
    let uct = Spec {
        name: "uct".into(),
        written: "uct".into(),
        kind: Kind::Uct(SearchSpec::default()),
    };
    let uct = Player::open(game, &uct, &mut networks)?;
    for player in players.iter().chain([&uct]) {
        let alone = player.network().map(|_| 0);
        for &visits in alone.iter().chain(&arguments.visits) {
            measured.push(measure(player, visits, arguments.seed, &positions)?);
        }
    }
    let report = Report {
        bench: "accuracy",
        game: arguments.game,
        seed: arguments.seed,
        phases: PHASES
            .iter()
            .zip(&positions)
            .map(|(phase, positions)| Phase {
                name: phase.name,
                discs: phase.discs,
                positions: positions.len(),
            })
            .collect(),
        solver_seconds,
        players: measured,
    };
    report::print(&report, arguments.json)
}

/// Seed of the positions of [`of_network`], that of `minuet bench accuracy` by default.
const SEED: u64 = 1;

/// Returns the shares of optimal moves, in [0, 1], of a network alone and of its search with `visits` visits per move, in
/// `positions` positions per phase of the game.
///
/// # Errors
/// The network cannot be opened, or does not evaluate a position.
pub fn of_network(
    model: &Spec,
    visits: u32,
    positions: u32,
    networks: &mut Networks,
) -> anyhow::Result<[f64; 2]> {
    let player = Player::open(game()?, model, networks)?;
    let positions = positions::draw(game()?, SEED, positions as usize)?;
    let measure = |visits| measure(&player, visits, SEED, &positions).map(|measured| measured.all);
    Ok([measure(0)?, measure(visits)?])
}

/// Returns the share of optimal moves of a player with `visits` visits per move.
fn measure(player: &Player, visits: u32, seed: u64, positions: &[Vec<Position>]) -> anyhow::Result<Measured> {
    let decisions = decide(player, visits, seed, positions)?;
    let mut chosen = decisions.iter().map(|decision| best(decision, visits));
    let share = |(_, test): &Position| {
        let action = chosen.next().flatten();
        f64::from(u8::from(
            action.is_some_and(|action| test.optimal.contains(&action)),
        ))
    };
    let version = player
        .network()
        .map(|network| network.description().version.as_str());
    Ok(Measured::new(player.name(), version, visits, positions, share))
}

fn decide(
    player: &Player,
    visits: u32,
    seed: u64,
    positions: &[Vec<Position>],
) -> anyhow::Result<Vec<Decision>> {
    let states = positions.iter().flatten().map(|(state, _)| state.clone());
    let states: Vec<Box<dyn AnyState>> = states.collect();
    let (settings, mut searches) = player.searches(0)?;
    let settings = Settings {
        visits: visits.max(1),
        leaves: 1,
        // Without a search no symmetry is applied to the position, and the rules prove nothing.
        random_symmetry: settings.random_symmetry && visits > 0,
        solver: settings.solver && visits > 0,
        exact_leaves: settings.exact_leaves && visits > 0,
        ..settings.clone()
    };
    decide_all(&mut *searches, &states, &settings, seed, AT_ONCE)
}

/// Returns the action that a proof or a Gumbel root chose, or else the most visited action, ties broken by the highest prior; with 0
/// visits the action of the highest prior.
fn best(decision: &Decision, visits: u32) -> Option<u32> {
    let chosen = decision.solution.or(decision.best).filter(|_| visits > 0);
    if chosen.is_some() {
        return chosen;
    }
    let key = |&place: &usize| {
        let visited = if visits == 0 { 0 } else { decision.visits[place] };
        (visited, decision.priors.get(place).copied().unwrap_or_default())
    };
    (0..decision.actions.len())
        .max_by(|left, right| {
            let (left, right) = (key(left), key(right));
            left.0.cmp(&right.0).then(left.1.total_cmp(&right.1))
        })
        .map(|place| decision.actions[place])
}

impl Measured {
    fn new(
        player: &str,
        version: Option<&str>,
        visits: u32,
        positions: &[Vec<Position>],
        mut share: impl FnMut(&Position) -> f64,
    ) -> Self {
        let sums: Vec<f64> = positions
            .iter()
            .map(|phase| phase.iter().map(&mut share).sum())
            .collect();
        let count = positions.iter().map(Vec::len).sum::<usize>().max(1) as f64;
        let all = sums.iter().sum::<f64>() / count;
        Self {
            player: player.into(),
            version: version.map(String::from),
            visits,
            optimal: sums
                .iter()
                .zip(positions)
                .map(|(sum, phase)| sum / phase.len().max(1) as f64)
                .collect(),
            all,
            margin: 1.96 * (all * (1.0 - all) / count).sqrt(),
        }
    }
}
