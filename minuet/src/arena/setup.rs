//! Opens the players and makes the plan of a match from the arguments.

use std::{path::PathBuf, thread};

use anyhow::Context as _;
use arena::{
    Player,
    matches::{
        Plan, openings,
        plan::{Entrant, SCHEMA},
    },
    players::{NetworkOptions, Networks},
};
use games::Notation;

use super::arguments::Arguments;
use crate::usage::BadUsage;

/// Default number of games at once on a thread.
const GAMES_AT_ONCE: u64 = 32;
/// Largest batch that a network in this process is warmed for.
const LARGEST_BATCH: usize = 256;

/// A match that is ready to begin.
pub struct Setup<G: Notation> {
    pub plan: Plan,
    pub rules: G::Rules,
    pub players: Vec<Player<G>>,
    pub threads: usize,
    pub games_at_once: usize,
    pub path: PathBuf,
}

impl<G: Notation> Setup<G> {
    /// Opens all players.
    pub fn new(arguments: &Arguments) -> anyhow::Result<Self> {
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
        let mut players: Vec<Player<G>> = Vec::new();
        for spec in &arguments.players {
            let player =
                Player::open(spec, &mut networks).with_context(|| format!("player {}", spec.name))?;
            players.push(player);
        }
        if arguments.games_at_once.is_none() && players.iter().any(Player::is_blocking) {
            games_at_once = 1;
        }
        // The rules of a new run, in which a game of one player has all its kinds of problems.
        let rules: G::Rules = launcher::new_run(Some(G::NAME), &[])?.game.rules.try_into()?;
        let pairs = arguments.games / 2;
        if G::PLAYERS == 1 && arguments.opening_plies.is_some() {
            let reason = format!(
                "--opening-plies: games of {} begin with held-out problems",
                G::NAME
            );
            return Err(BadUsage(reason).into());
        }
        let openings = match &arguments.openings {
            Some(file) => {
                let text = std::fs::read_to_string(file)
                    .with_context(|| format!("cannot read {}", file.display()))?;
                openings::read::<G>(&rules, &text).with_context(|| file.display().to_string())?
            }
            None => {
                let usual = || G::OPENING_PLIES;
                let plies = arguments.opening_plies.unwrap_or_else(usual);
                openings::usual::<G>(&rules, arguments.seed, plies, pairs)?
            }
        };
        let plan = Plan {
            schema: SCHEMA,
            game: G::NAME.into(),
            rules: serde_json::to_value(&rules)?,
            players: players
                .iter()
                .zip(&arguments.players)
                .map(|(player, spec)| Entrant::of(player, &spec.written))
                .collect(),
            pairs,
            seed: arguments.seed,
            openings,
            max_actions: arguments.max_actions,
        };
        plan.check()?;
        let path = match &arguments.folder {
            Some(folder) => folder.clone(),
            None => PathBuf::from("matches").join(format!("{}-{}", plan.game, plan.identity())),
        };
        Ok(Self {
            plan,
            rules,
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
