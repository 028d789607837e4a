//! The actor: self-play on CPU threads, evaluated by an inference server, kept for the replay store.
//!
//! | module | what it is for |
//! |---|---|
//! | [`actor`](mod@actor) | starts all parts and stops them in order; [`run`] is the role |
//! | [`setup`], [`settings`] | what all games have in common, from the configuration |
//! | [`worker`] | a thread that plays many games at once |
//! | [`cache`] | what the network said about a row before (a crate of its own) |
//! | [`evaluator`] | a worker's stream to the inference server |
//! | [`versions`] | which model versions have answered |
//! | [`record`] | a game's record, built while it is played |
//! | [`check`] | is a record what its game, its seed and its model say? |
//! | [`naming`] | names of games that never collide |
//! | [`spool`] | finished games, durable until the store has them |
//! | [`sender`] | brings them to the stores; [`sorting`]: which have them already, where the list of stores changed |
//! | [`counters`], [`report`] | what is counted, and how it is said |

pub mod actor;
pub mod check;
pub mod counters;
pub mod curriculum;
mod durable;
pub mod evaluator;
mod hush;
pub mod naming;
pub mod record;
pub mod report;
pub mod sender;
pub mod settings;
pub mod setup;
pub mod sorting;
pub mod spool;
pub mod versions;
pub mod worker;

pub use actor::{Actor, ActorError, run};
pub use network::cache;
