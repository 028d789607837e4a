//! The whole file, and the sections that several roles read.

use std::path::{Path, PathBuf};

use documented::DocumentedFields;
use search::Root;
use serde::{Deserialize, Serialize};

use super::{
    ActorConfig, AnalysisConfig, ConfigError, GameConfig, InferenceConfig, LearnerConfig, ModelConfig,
    PolicyTarget, ProblemsConfig, RatingConfig, SecurityConfig,
    error::{at_least, require, within},
};

/// A run: everything in `run.toml`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct RunConfig {
    /// Identity of the run.
    pub run: RunSection,
    /// The game, its rules and its representation.
    pub game: GameConfig,
    /// The trained network: a residual tower with a policy head and a value head.
    pub model: ModelConfig,
    /// Search (UCT) and choice of moves in self-play.
    pub search: search::Settings,
    /// Curriculum of games that consist of problems to solve.
    pub problems: ProblemsConfig,
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
    /// Rating: new checkpoints play the best one, and the label 'best' moves to a stronger one.
    pub rating: RatingConfig,
    /// The analysis service: searches positions for clients.
    pub analysis: AnalysisConfig,
    /// TLS, tokens and limits of connections. 'minuet up' needs none of them, because it stays on loopback.
    pub security: SecurityConfig,
}

/// `[run]`: identity of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct RunSection {
    /// Version of the keys of this file. A build reads its own version and earlier ones.
    pub version: u32,
    /// Seed of every random draw of the run, 0 to 2^63-1.
    pub seed: u64,
}

impl Default for RunSection {
    fn default() -> Self {
        Self {
            version: crate::VERSION,
            seed: 1,
        }
    }
}

/// `[replay]`: the replay store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct ReplayConfig {
    /// Address of the service, host:port: the other roles connect to it, and the store listens on it.
    pub address: String,
    /// Address that the store listens on, if different from `address`, e.g. "0.0.0.0:50052" in a container; empty: `address`.
    pub listen: String,
    /// Address of the Prometheus metrics page; empty: none.
    pub metrics: String,
    /// Address of an additional health service in plaintext, for probes without TLS; empty: none.
    pub health: String,
    /// Folder of the database; relative to the run's folder.
    pub folder: PathBuf,
    /// Size of the replay window, in positions, at least 1. The oldest games beyond it are removed, always as a whole.
    pub window_positions: u64,
    /// Share of games held out of training for validation, chosen by their ids. 0 (none) to 0.5.
    pub held_out: f64,
    /// Lower bound of the mean number of times that a position is sampled: below it, appends of games wait. 0: no bound. At
    /// most learner.samples_per_position.
    pub min_uses: f64,
    /// Upper bound of the mean number of times that a position is sampled: batches that would exceed it wait. 0: no bound,
    /// else at least min_uses and learner.samples_per_position. Positions that have left the window no longer count.
    pub max_uses: f64,
    /// Number of positions that may be inserted beyond the bound of min_uses.
    pub uses_slack: u64,
    /// Size of the database in MiB above which appends are refused. At least 1.
    pub max_disk_mib: u64,
    /// Free space on the database's disk in MiB below which appends are refused.
    pub min_free_mib: u64,
    /// Permanent archive of games: a folder (relative to the run's folder) or a URL such as `s3://bucket/prefix`. Each
    /// sealed part of the store is copied there before it is deleted. While the archive fails nothing is deleted, so appends
    /// are refused once max_disk_mib is reached. Empty: no archive; games that leave the window are deleted.
    pub archive: String,
}

impl Default for ReplayConfig {
    fn default() -> Self {
        Self {
            address: "127.0.0.1:50052".into(),
            listen: String::new(),
            metrics: String::new(),
            health: String::new(),
            folder: "replay".into(),
            window_positions: 500_000,
            held_out: 0.02,
            min_uses: 0.0,
            max_uses: 0.0,
            uses_slack: 20_000,
            max_disk_mib: 16 * 1024,
            min_free_mib: 256,
            archive: String::new(),
        }
    }
}

impl ReplayConfig {
    /// Returns the address to listen on.
    pub fn listen_address(&self) -> &str {
        first_given(&self.listen, &self.address)
    }
}

/// `[checkpoints]`: the model repository.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct CheckpointConfig {
    /// Location: a folder (relative to the run's folder) or a URL such as `file:///models` or `s3://bucket/prefix`.
    pub store: String,
    /// Interval at which readers look for a new version, in milliseconds. At least 1.
    pub poll_ms: u64,
    /// Number of newest checkpoints to keep; older ones are removed unless they carry a label. 0 keeps all.
    pub keep: usize,
    /// Maximum number of further checkpoints to keep because stored games were played with them, so that `minuet games check`
    /// can repeat the searches. The newest of them are kept. 0 keeps none.
    pub keep_for_games: usize,
}

impl Default for CheckpointConfig {
    fn default() -> Self {
        Self {
            store: "checkpoints".into(),
            poll_ms: 500,
            keep: 20,
            keep_for_games: 50,
        }
    }
}

impl ReplayConfig {
    fn check(&self, learner: &LearnerConfig) -> Result<(), ConfigError> {
        at_least("replay.window_positions", self.window_positions, 1)?;
        at_least("replay.max_disk_mib", self.max_disk_mib, 1)?;
        within("replay.held_out", self.held_out, 0.0..=0.5)?;
        require(
            self.min_uses >= 0.0 && self.min_uses.is_finite(),
            "replay.min_uses",
            "must not be negative",
        )?;
        require(
            self.max_uses == 0.0 || self.max_uses >= self.min_uses,
            "replay.max_uses",
            "must be 0, or at least replay.min_uses",
        )?;
        require(
            self.max_uses == 0.0 || self.max_uses >= learner.samples_per_position,
            "replay.max_uses",
            "must be 0, or at least learner.samples_per_position, or training would stop permanently",
        )?;
        require(
            self.min_uses <= learner.samples_per_position,
            "replay.min_uses",
            "must be at most learner.samples_per_position, or self-play would stop permanently",
        )
    }
}

impl RunConfig {
    /// Checks ranges, and values that depend on each other.
    ///
    /// # Errors
    /// [`ConfigError`] naming the first offending key.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.model.check()?;
        self.search.check()?;
        self.problems.check()?;
        self.actor.check()?;
        self.inference.check()?;
        self.learner.check()?;
        self.rating.check()?;
        self.security.check()?;
        at_least("checkpoints.poll_ms", self.checkpoints.poll_ms, 1)?;
        self.replay.check(&self.learner)?;
        super::address::check(self)?;
        require(
            self.search.root == Root::Puct || self.learner.policy_target == PolicyTarget::CompletedQ,
            "learner.policy_target",
            "must be \"completed-q\" with search.root = \"gumbel\", whose visits say little about the worth of an action",
        )?;
        // Games are removed as a whole, so the window is seldom full to the last position.
        require(
            self.learner.min_positions <= self.replay.window_positions.div_ceil(2),
            "learner.min_positions",
            "must be at most half of replay.window_positions, or training would never begin",
        )
    }

    /// Makes the relative paths absolute: they are relative to the run's folder.
    pub fn resolve_paths(&mut self, folder: &Path) {
        resolve_given(folder, [&mut self.game.description]);
        self.replay.folder = folder.join(&self.replay.folder);
        if !self.replay.archive.is_empty() {
            self.replay.archive = resolved(folder, &self.replay.archive);
        }
        self.actor.spool = folder.join(&self.actor.spool);
        self.inference.resolve_paths(folder);
        self.learner.folder = folder.join(&self.learner.folder);
        self.rating.folder = folder.join(&self.rating.folder);
        self.security.resolve_paths(folder);
        self.checkpoints.store = resolved(folder, &self.checkpoints.store);
    }
}

/// Returns `chosen`, or `otherwise` if `chosen` is empty.
pub(super) fn first_given<'a>(chosen: &'a str, otherwise: &'a str) -> &'a str {
    if chosen.is_empty() { otherwise } else { chosen }
}

/// Makes paths absolute that are given and relative to `folder`.
pub(super) fn resolve_given<const COUNT: usize>(folder: &Path, paths: [&mut PathBuf; COUNT]) {
    for path in paths {
        if !path.as_os_str().is_empty() {
            *path = folder.join(&*path);
        }
    }
}

/// Returns a URL unchanged, and a relative path joined to `folder`.
fn resolved(folder: &Path, location: &str) -> String {
    if location.contains("://") {
        location.to_owned()
    } else {
        folder.join(location).to_string_lossy().into_owned()
    }
}
