//! `[actor]`: self-play.

use std::path::PathBuf;

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use super::{ConfigError, load::require};

/// Settings of one actor process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct ActorConfig {
    /// This actor's name; part of its games' ids, so it must be its own. Empty: made at start.
    pub name: String,
    /// Worker threads, up to 1024; 0: one for each core but one, at least one.
    pub threads: usize,
    /// Games in progress on each thread, 1 to 65536.
    pub games_per_thread: usize,
    /// Rows gathered from a thread's games before a request is sent, 1 to 4096.
    pub rows_per_request: usize,
    /// Requests of one thread that may wait for an answer at the same time, 1 to 64.
    pub requests_in_flight: usize,
    /// Memory of the evaluation cache, in MiB; 0 switches it off.
    pub cache_mib: usize,
    /// Folder of finished games that the store has not acknowledged yet; relative to the run's folder.
    pub spool: PathBuf,
    /// Self-play pauses while the spool is larger than this, in MiB. At least 1.
    pub max_spool_mib: u64,
    /// The model that evaluates: a label or a version.
    pub model: String,
    /// Address of the Prometheus metrics page; empty: none.
    pub metrics: String,
    /// Address of the health service; empty: none.
    pub health: String,
}

impl Default for ActorConfig {
    fn default() -> Self {
        Self {
            name: String::new(),
            threads: 0,
            games_per_thread: 64,
            rows_per_request: 64,
            requests_in_flight: 3,
            cache_mib: 128,
            spool: "spool".into(),
            max_spool_mib: 256,
            model: "latest".into(),
            metrics: String::new(),
            health: String::new(),
        }
    }
}

impl ActorConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        require(self.threads <= 1024, "actor.threads", "must be at most 1024")?;
        require(
            (1..=65_536).contains(&self.games_per_thread),
            "actor.games_per_thread",
            "must be between 1 and 65536",
        )?;
        require(
            (1..=4096).contains(&self.rows_per_request),
            "actor.rows_per_request",
            "must be between 1 and 4096",
        )?;
        require(
            (1..=64).contains(&self.requests_in_flight),
            "actor.requests_in_flight",
            "must be between 1 and 64",
        )?;
        require(
            self.max_spool_mib >= 1,
            "actor.max_spool_mib",
            "must be at least 1",
        )?;
        require(!self.model.is_empty(), "actor.model", "must not be empty")
    }
}
