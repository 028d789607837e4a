//! The actor role: self-play on CPU threads, evaluated by an inference server, with finished games kept for the replay store.
//!
//! | module | contents |
//! |---|---|
//! | [`actor`](mod@actor) | starts all parts and stops them in order; [`run`] is the role |
//! | [`play`] | the worker threads, their games and the records of these |
//! | [`evaluator`] | the stream to the inference server, with retries and model versions |
//! | [`cache`] | evaluations that are known already (a crate of its own) |
//! | [`spool`] | finished games on disk, sent until the replay store has acknowledged them |
//! | [`check`] | verifies a game record against its rules, its seed and its model |
//! | [`metrics`] | counters, the metrics page and the log line about progress |

pub mod actor;
pub mod check;
pub mod evaluator;
pub mod metrics;
pub mod play;
pub mod spool;

pub use actor::{Actor, run};
pub use network::cache;
pub use play::naming::GameId;
