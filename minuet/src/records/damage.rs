//! Damage that a command found in a store. The process exits with 3.

use proto::ids::hex;
use replay_store::damage::{Damage as StoreDamage, Loss};

/// Most lost games that are named.
const MOST_NAMED: usize = 10;

/// Error: games of the store cannot be read. The command did the rest of its work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found}; {advice}")]
pub struct Damage {
    found: String,
    advice: &'static str,
}

impl Damage {
    /// Damage that is found when a store is opened.
    pub fn of_store(damage: &StoreDamage) -> Self {
        Self {
            found: damage.to_string(),
            advice: "--repair records what is lost and lets the store continue without it",
        }
    }

    /// Games that a running store cannot read.
    pub fn of_running_store(games: u64) -> Self {
        Self {
            found: count(games),
            advice: "the store records them as lost when it is started again",
        }
    }

    /// Games that cannot be read although opening the store found no damage in them.
    pub fn of_games(games: u64) -> Self {
        Self {
            found: count(games),
            advice: "read errors of the disk may be the reason",
        }
    }
}

fn count(games: u64) -> String {
    match games {
        1 => "1 acknowledged game cannot be read".into(),
        games => format!("{games} acknowledged games cannot be read"),
    }
}

/// Prints damage to standard error: counts, and the first lost games. `done` says what became of it.
pub fn print(damage: &StoreDamage, done: &str) {
    eprintln!("minuet: the store is damaged: {damage}{done}");
    for Loss { sequence, id } in damage.losses.iter().take(MOST_NAMED) {
        let id = id.map_or_else(|| "unknown".to_owned(), |id| hex(&id));
        eprintln!("    game {sequence}, id {id}");
    }
    if damage.losses.len() > MOST_NAMED {
        eprintln!("    and {} more", damage.losses.len() - MOST_NAMED);
    }
}
