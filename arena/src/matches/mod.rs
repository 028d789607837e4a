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
//! | [`budget`] | pauses of matches, so that most processor time is left to other processes |
//! | [`conduct`] | the threads of a match, and its end |
//! | [`standing`] | the results: cross-table, Elo, test |
//! | [`notation`] | games as PGN (chess) and as text |

pub mod budget;
pub mod conduct;
pub mod folder;
pub mod notation;
pub mod openings;
pub mod plan;
pub mod problems;
pub mod record;
pub mod standing;
mod table;

pub use budget::Budget;
pub use conduct::{Conduct, play};
pub use folder::MatchFolder;
pub use openings::Opening;
pub use plan::{Plan, PlannedGame};
pub use problems::{ClassStanding, ProblemClass};
pub use record::{GameRecord, RULES_FAILED, Result};
pub use standing::Standing;
