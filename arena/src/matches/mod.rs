//! Matches: many games at once between players, counted in pairs and saved as they end.
//!
//! | module | contents |
//! |---|---|
//! | [`plan`] | players, pairs, openings, seeds, and the numbers of the games |
//! | [`openings`] | the openings from which pairs begin |
//! | [`problems`] | matches in games of one player: the same problems for both, counted by kind and level |
//! | [`record`] | the record of a finished game |
//! | [`folder`] | the folder of a match, from which an interrupted match continues |
//! | [`table`] | the games of one thread, evaluated together |
//! | [`conduct`] | the threads of a match, and its end |
//! | [`standing`] | the results: cross-table, Elo, test |
//! | [`notation`] | games as PGN (chess) and as text |

pub mod conduct;
pub mod folder;
pub mod notation;
pub mod openings;
pub mod plan;
pub mod problems;
pub mod record;
pub mod standing;
mod table;

pub use conduct::{Conduct, play};
pub use folder::MatchFolder;
pub use openings::Opening;
pub use plan::{Plan, PlanError, PlannedGame};
pub use problems::{ClassStanding, ProblemClass};
pub use record::{GameRecord, Result};
pub use standing::Standing;

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::players::PlayerError;

/// Error: a match cannot continue. The finished games are kept.
#[derive(Debug, thiserror::Error)]
pub enum MatchError {
    /// A file of the match's folder cannot be read or written.
    #[error("cannot use {path}")]
    Io {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the file system.
        source: io::Error,
    },
    /// A player cannot continue.
    #[error("the player {player} cannot continue")]
    Player {
        /// Name of the player.
        player: String,
        /// Reason.
        source: Box<PlayerError>,
    },
    /// The folder is locked, damaged or that of another match, a thread has panicked, or an opening cannot be played.
    #[error("{0}")]
    Other(String),
}

impl From<PlanError> for MatchError {
    fn from(error: PlanError) -> Self {
        Self::Other(error.to_string())
    }
}

impl MatchError {
    fn io(path: &Path) -> impl Fn(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            path: path.clone(),
            source,
        }
    }
}
