//! The whole file, and the sections that several roles read.

use std::path::{Path, PathBuf};

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use super::{ActorConfig, ConfigError, InferenceConfig, LearnerConfig, ModelConfig, SearchConfig};

/// A run: everything in `run.toml`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct RunConfig {
    /// What identifies the run.
    pub run: RunSection,
    /// What is played, under which rules, in which representation.
    pub game: GameConfig,
    /// The network that is trained: a residual tower with a policy and a value head.
    pub model: ModelConfig,
    /// How an actor searches (UCT) and chooses moves.
    pub search: SearchConfig,
    /// Self-play.
    pub actor: ActorConfig,
    /// The inference server: evaluates positions for all actors.
    pub inference: InferenceConfig,
    /// The replay store: keeps finished games, hands out training batches.
    pub replay: ReplayConfig,
    /// Training.
    pub learner: LearnerConfig,
    /// The model repository.
    pub checkpoints: CheckpointConfig,
}

/// `[run]`: what identifies a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct RunSection {
    /// Every random draw of the run is derived from this number. 0 to 2^63-1.
    pub seed: u64,
}

impl Default for RunSection {
    fn default() -> Self {
        Self { seed: 1 }
    }
}

/// `[game]`: what is played, under which rules, in which representation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct GameConfig {
    /// The game's name, e.g. "paco-sako".
    pub name: String,
    /// The game's representation options, added up (Paco Ŝako: 1 relative perspective, 2 must lift, 4 must promote).
    pub options: u32,
    /// The game's own rules table; which keys it takes is the game's business.
    pub rules: toml::Table,
}

impl Default for GameConfig {
    fn default() -> Self {
        Self {
            name: "paco-sako".into(),
            options: 1,
            rules: toml::Table::new(),
        }
    }
}

/// `[replay]`: the replay store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct ReplayConfig {
    /// Address the service listens on, and where the other roles find it.
    pub address: String,
    /// Address of the Prometheus metrics page; empty: none.
    pub metrics: String,
    /// Folder of the database; relative to the run's folder.
    pub folder: PathBuf,
    /// Positions in the window that is sampled from; the oldest whole games beyond it are retired. At least 1.
    pub window_positions: u64,
    /// Memory for decoded games, in MiB; 0 switches it off.
    pub cache_mib: u64,
    /// Appends are refused while the database is larger than this, in MiB. At least 1.
    pub max_disk_mib: u64,
    /// Appends are refused while less than this is free on the database's disk, in MiB.
    pub min_free_mib: u64,
    /// Ids of at least this many games are remembered, retired ones included, so that a game sent again is known.
    pub remembered_games: u64,
}

impl Default for ReplayConfig {
    fn default() -> Self {
        Self {
            address: "127.0.0.1:50052".into(),
            metrics: String::new(),
            folder: "replay".into(),
            window_positions: 500_000,
            cache_mib: 256,
            max_disk_mib: 16 * 1024,
            min_free_mib: 256,
            remembered_games: 1_000_000,
        }
    }
}

/// `[checkpoints]`: the model repository.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct CheckpointConfig {
    /// A folder (relative to the run's folder) or a URL such as `file:///models` or `s3://bucket/prefix`.
    pub store: String,
    /// How often readers look for a new version, in milliseconds. At least 1.
    pub poll_ms: u64,
    /// Newest checkpoints kept; older ones are removed, but for those that carry a label. 0 keeps all.
    pub keep: usize,
}

impl Default for CheckpointConfig {
    fn default() -> Self {
        Self {
            store: "checkpoints".into(),
            poll_ms: 500,
            keep: 20,
        }
    }
}

impl RunConfig {
    /// Checks what single types cannot: ranges, and values that must fit each other.
    ///
    /// # Errors
    /// [`ConfigError::Value`] naming the first offending key.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.model.check()?;
        self.search.check()?;
        self.actor.check()?;
        self.inference.check()?;
        self.learner.check()?;
        let positive = [
            ("replay.window_positions", self.replay.window_positions),
            ("replay.max_disk_mib", self.replay.max_disk_mib),
            ("checkpoints.poll_ms", self.checkpoints.poll_ms),
        ];
        super::load::require_positive(&positive)?;
        // Whole games are retired, so the window is seldom full to the last position.
        super::load::require(
            self.learner.min_positions <= self.replay.window_positions.div_ceil(2),
            "learner.min_positions",
            "must be at most half of replay.window_positions, or training would never begin",
        )
    }

    /// Makes the relative paths absolute: they are relative to the run's folder.
    pub fn resolve_paths(&mut self, folder: &Path) {
        self.replay.folder = folder.join(&self.replay.folder);
        self.actor.spool = folder.join(&self.actor.spool);
        self.learner.folder = folder.join(&self.learner.folder);
        if !self.checkpoints.store.contains("://") {
            self.checkpoints.store = folder
                .join(&self.checkpoints.store)
                .to_string_lossy()
                .into_owned();
        }
    }
}
