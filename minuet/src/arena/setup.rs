//! Opens the players and makes the plan of a match from the arguments.

use std::{path::PathBuf, thread};

use anyhow::Context as _;
use arena::{
    Player,
    matches::{Plan, openings},
    players::{NetworkOptions, Networks},
};
use games::erased::AnyGame;

use super::arguments::Arguments;
use launcher::BadUsage;

/// Default number of games at once on a thread.
const GAMES_AT_ONCE: u64 = 32;
/// Largest batch that a network in this process is warmed for.
const LARGEST_BATCH: usize = 256;

/// A match that is ready to begin.
pub struct Setup {
    pub plan: Plan,
    pub players: Vec<Player>,
    pub threads: usize,
    pub games_at_once: usize,
    pub path: PathBuf,
}

impl Setup {
    /// Opens all players.
    pub fn new(game: &'static AnyGame, arguments: &Arguments) -> anyhow::Result<Self> {
        let threads = match arguments.threads {
            Some(threads) => threads.into(),
            None => thread::available_parallelism().map_or(1, usize::from),
        };
        let count = arguments.players.len() as u64;
        let all_games = arguments.games * (count * (count - 1) / 2).max(1);
        let usual = GAMES_AT_ONCE.min(all_games.div_ceil(threads as u64)) as usize;
        let mut games_at_once = arguments.games_at_once.map_or(usual, usize::from);
        let leaves = arguments.players.iter().map(leaves).max().unwrap_or(1);
        let mut networks = Networks::new(NetworkOptions {
            provider: arguments.provider,
            copies: threads,
            threads: 1,
            batch: (games_at_once * leaves as usize).clamp(1, LARGEST_BATCH),
            cache_mib: arguments.cache_mib,
        });
        let mut players: Vec<Player> = Vec::new();
        for spec in &arguments.players {
            let player =
                Player::open(game, spec, &mut networks).with_context(|| format!("player {}", spec.name))?;
            players.push(player);
        }
        if arguments.games_at_once.is_none() && players.iter().any(Player::is_blocking) {
            games_at_once = 1;
        }
        // The rules of a new run, in which a game of one player has all its kinds of problems.
        let rules = launcher::new_run(Some(&game.title()), &[])?.game.rules;
        let variant = game.variant(&serde_json::to_value(rules)?, None)?;
        let variant = &*variant;
        let pairs = arguments.games / 2;
        if game.players == 1 && arguments.opening_plies.is_some() {
            let reason = format!(
                "--opening-plies: games of {} begin with held-out problems",
                game.name
            );
            return Err(BadUsage(reason).into());
        }
        let openings = match &arguments.openings {
            Some(file) => {
                let text = std::fs::read_to_string(file)
                    .with_context(|| format!("cannot read {}", file.display()))?;
                openings::read(variant, &text).with_context(|| file.display().to_string())?
            }
            None => {
                let plies = arguments.opening_plies.unwrap_or(game.opening_plies);
                openings::usual(variant, arguments.seed, plies, pairs)?
            }
        };
        let plan = Plan::new(
            variant,
            &players,
            pairs,
            arguments.seed,
            openings,
            arguments.max_actions,
        )?;
        let path = match &arguments.folder {
            Some(folder) => folder.clone(),
            None => PathBuf::from("matches").join(format!("{}-{}", plan.game, plan.identity())),
        };
        Ok(Self {
            plan,
            players,
            threads,
            games_at_once,
            path,
        })
    }
}

fn leaves(spec: &arena::Spec) -> u32 {
    use arena::players::spec::Kind;
    match &spec.kind {
        Kind::Model(_, search) => search.settings(None).leaves,
        _ => 1,
    }
}
