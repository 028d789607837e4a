//! `[actor]`: self-play.

use std::path::PathBuf;

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use super::{ConfigError, check::require};

/// Settings of one actor process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct ActorConfig {
    /// Name of this actor, part of its games' ids, so no two actors may share it. Empty: a random name, drawn at start.
    pub name: String,
    /// Worker threads, at most 1024; 0: one less than the number of cores, at least one.
    pub threads: usize,
    /// Games in progress on each thread, 1 to 65536.
    pub games_per_thread: usize,
    /// Greatest number of positions from one thread's games per evaluation request, 1 to 4096.
    pub rows_per_request: usize,
    /// Evaluation requests of one thread that may be in flight at the same time, 1 to 64.
    pub requests_in_flight: usize,
    /// Greatest number of random actions before a game of two players begins, 0 to 1000. Each game draws its number from 0
    /// to this; the actions themselves are not recorded. 0: every game begins at the usual start.
    pub random_plies: u32,
    /// Memory of the evaluation cache, in MiB; 0: no cache.
    pub cache_mib: usize,
    /// Folder of finished games that the store has not acknowledged yet; relative to the run's folder.
    pub spool: PathBuf,
    /// Size of the spool in MiB above which self-play pauses. At least 1.
    pub max_spool_mib: u64,
    /// Model that evaluates positions: a label or a version.
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
            random_plies: 0,
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
            self.random_plies <= 1000,
            "actor.random_plies",
            "must be at most 1000",
        )?;
        require(
            self.max_spool_mib >= 1,
            "actor.max_spool_mib",
            "must be at least 1",
        )?;
        require(!self.model.is_empty(), "actor.model", "must not be empty")
    }
}
