//! `run.toml`: one file describes a run, and every role reads its section of it.
//!
//! Every key has a default, so an empty file is a valid run. An unknown key is an error that names
//! the key and the nearest valid one ([`load`]).

mod actor;
mod inference;
mod learner;
mod load;
mod run;
mod search;

pub use actor::ActorConfig;
pub use inference::{InferenceConfig, Provider};
pub use learner::{Device, LearnerConfig, ModelConfig, Optimizer};
pub use load::{ConfigError, load, parse};
pub use run::{CheckpointConfig, GameConfig, ReplayConfig, RunConfig, RunSection};
pub use search::{FirstPlay, Reuse, SearchConfig, TemperatureStep};
