//! Watching the roles: looks ([`observe`]) become a [`history`], a history becomes a [`Summary`].

mod history;
mod limit;
mod names;
mod observe;
mod page;
mod rating;
mod summary;

pub use history::History;
pub use observe::{Observation, Observer};
pub use rating::{Elo, Rating};
pub use summary::{Beginning, Checkpoint, Summary};

/// A history of everything that a summary shows.
pub fn new_history() -> History {
    History::new(&names::COUNTERS)
}
