//! Observes the processes of a run: observations ([`observe`]) form a [`history`], from which a [`Summary`] is computed.

pub mod disks;
mod history;
pub mod limit;
pub(crate) mod names;
pub(crate) mod observe;
mod problems;
mod summary;

pub use disks::Disk;
pub use history::History;
pub use observe::{Observation, Observer};
pub use problems::Problems;
pub use summary::{Actor, Beginning, Checkpoint, Elo, Inference, Learner, Process, Rating, Replay, Summary};
