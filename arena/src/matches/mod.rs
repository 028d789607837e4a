//! Matches: games between players, at once, counted in pairs, kept as they end.
//!
//! | module | what it is for |
//! |---|---|
//! | [`plan`] | what is played: players, pairs, openings, seeds; which game has which number |
//! | [`openings`] | where games begin |
//! | [`record`] | a finished game |
//! | [`folder`] | what is kept: a match goes on where it was interrupted |
//! | [`table`] | one thread's games, evaluated together |
//! | [`conduct`] | the threads, and when to stop |
//! | [`standing`] | what the games say: cross-table, Elo, test |
//! | [`notation`] | games as PGN (chess) and as text |

pub mod conduct;
pub mod folder;
pub mod notation;
pub mod openings;
pub mod plan;
pub mod record;
pub mod standing;
mod table;

pub use conduct::{Conduct, Progress, play};
pub use folder::{FolderError, MatchFolder};
pub use openings::{Opening, OpeningError};
pub use plan::{Plan, PlanError, Slot};
pub use record::{GameRecord, Result};
pub use standing::Standing;

use crate::players::PlayerError;

/// A match that cannot go on. What was played is kept.
#[derive(Debug, thiserror::Error)]
pub enum MatchError {
    /// The match's folder.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A player.
    #[error("{player}: {source}")]
    Player {
        /// Which.
        player: String,
        /// Why.
        source: Box<PlayerError>,
    },
    /// The system gave no thread, or one of them ended.
    #[error("cannot go on: {0}")]
    Thread(String),
}
