//! `run.toml`: one file describes a run, and every role reads its section.
//!
//! Every key has a default, so an empty file is a valid run. An unknown key is an error that names
//! the key and the nearest valid one ([`load`]). `run.version` is the version of the keys: a file of a later version is refused with
//! the names of its unknown keys. Single values can be set on the command line ([`Override`]).
//! [`template_with_rules`] writes a whole file with a comment on each key; the comments are the fields' own documentation.

mod actor;
mod address;
mod analysis;
mod described;
mod error;
mod game;
mod inference;
mod learner;
mod load;
mod overrides;
mod problems;
mod provider;
mod rating;
mod run;
mod security;
mod template;

pub use actor::ActorConfig;
pub use analysis::AnalysisConfig;
pub use described::{Key, Section, described, is_fixed, table};
pub use error::ConfigError;
pub use game::GameConfig;
pub use inference::InferenceConfig;
pub use learner::{Device, LearnerConfig, ModelConfig, Optimizer, PolicyTarget, Precision, ValueHead};
pub use load::{VERSION, load, load_with, parse, parse_with, security_from_environment};
pub use overrides::{Override, override_search};
pub use problems::ProblemsConfig;
pub use provider::Provider;
pub use rating::RatingConfig;
pub use run::{CheckpointConfig, ReplayConfig, RunConfig, RunSection};
pub use security::{Plaintext, SecurityConfig};
pub use template::{template, template_with_rules};
