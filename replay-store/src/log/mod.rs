//! The segment log: the durable contents of the store. Everything else can be rebuilt from it.
//!
//! | module | contents |
//! |---|---|
//! | [`files`] | the file system, which tests replace by a simulated disk |
//! | [`room`] | free disk space: games are refused before the disk is full |
//! | [`frame`] | the frames of a log, so that damage loses only the damaged game |
//! | [`volume`] | one segment: the games of a range of sequence numbers; the segments in order |
//! | [`recover`] | opening a volume after any interruption |
//! | [`ledger`] | counts of inserted and sampled games and positions, which survive every restart |
//! | [`drawn`] | training batches that were drawn, for learners that resume |

pub mod drawn;
pub mod files;
pub mod frame;
pub mod ledger;
pub mod recover;
pub mod room;
pub mod volume;
