//! `[learner]` and `[model]`: training, and the network that is trained.

use std::path::PathBuf;

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use super::{ConfigError, load::require};

/// Settings of the learner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct LearnerConfig {
    /// Where training runs: `cpu`, `cuda` (an error where there is none), or `auto`: a GPU if there is one, else the CPU.
    pub device: Device,
    /// CPU threads; 0: a quarter of the cores, at least one, since self-play has the others. Torch's threads wait for each
    /// other, so on busy cores more of them can be slower.
    pub threads: usize,
    /// What the network's tower is trained in: `f32`, `bf16` (weights, statistics and losses stay in f32), or `auto`:
    /// measured when training begins, and kept for the run.
    pub precision: Precision,
    /// Positions in a training step, 1 to 65536.
    pub batch_size: usize,
    /// The optimiser: `sgd` (with Nesterov momentum) or `adamw`.
    pub optimizer: Optimizer,
    /// Learning rate, above 0.
    pub learning_rate: f64,
    /// Steps over which the learning rate rises from 0; 0: none.
    pub warmup_steps: u64,
    /// Published weights are an average of the trained ones over about 1 / (1 - average_decay) steps: each step leaves this
    /// share of what was. At least 0 (no averaging), below 1.
    pub average_decay: f64,
    /// Momentum of SGD, or Adam's first decay rate: at least 0, below 1.
    pub momentum: f64,
    /// Weight decay, on convolution and linear weights only. 0 or more.
    pub weight_decay: f64,
    /// Gradients are scaled down to this norm; 0 switches it off.
    pub max_gradient_norm: f64,
    /// Weight of the value loss beside the policy loss. 0 or more.
    pub value_weight: f64,
    /// Share of the search's root value in the value's target, 0 to 1; the rest is the game's final result.
    pub root_value_share: f32,
    /// Weight of a second policy head, trained towards the search of the other player's reply (KataGo: 0.15). 0: there is no
    /// such head. It trains the tower and is not exported. Over clans it must be 0.
    pub opponent_policy_weight: f64,
    /// Weight of a head that says how many actions are left (Leela Chess Zero has one). 0: there is no such head. It trains the
    /// tower and is not exported. Over clans it must be 0.
    pub moves_left_weight: f64,
    /// Whether each sample is turned by a random symmetry of the game, where its position has any.
    pub symmetries: bool,
    /// Training begins when the store holds this many positions. At least 1.
    pub min_positions: u64,
    /// Samples trained on for each position inserted, above 0; the learner waits when it is ahead. Of positions that have left the
    /// window none are owed any more.
    pub samples_per_position: f64,
    /// A checkpoint is published every so many steps. At least 1.
    pub checkpoint_steps: u64,
    /// Folder of the learner's own files (metrics, temporary exports); relative to the run's folder.
    pub folder: PathBuf,
    /// Address of the Prometheus metrics page; empty: none.
    pub metrics: String,
    /// Address of the health service; empty: none.
    pub health: String,
}

/// Where training runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Device {
    /// A GPU if there is one, else the CPU; said at start.
    Auto,
    /// The CPU.
    Cpu,
    /// An NVIDIA GPU; an error where there is none.
    Cuda,
}

/// What a network's tower is trained in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// Measured.
    Auto,
    /// 32 bits.
    F32,
    /// The upper 16 bits of f32, fast on CPUs with AMX units and on GPUs.
    Bf16,
}

/// The optimiser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Optimizer {
    /// Stochastic gradient descent with Nesterov momentum.
    Sgd,
    /// Adam with decoupled weight decay.
    Adamw,
}

/// What a network says of a position's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ValueHead {
    /// One number, trained by squared error (over clans by cross-entropy).
    #[default]
    Scalar,
    /// The probabilities of a win, a draw and a loss, trained by cross-entropy; the value is win - loss.
    Wdl,
}

/// `[model]`: the network that is trained: a residual tower over planes, or the fish-eye network over clans (the generator
/// game's, of which 3 blocks of 64 filters with a hidden layer of 128 are the 568 thousand parameters of its design).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// Residual blocks, 1 to 100; over clans: convolutions over the grids.
    pub blocks: u32,
    /// Filters of each convolution, 1 to 1024; over clans all other widths are in proportion to it.
    pub filters: u32,
    /// Squeeze-excitation in each block: channels of the squeeze, at most `filters`; 0 switches it off. Over clans it must be 0.
    pub squeeze_excitation: u32,
    /// Global pooling in two of the blocks, and in a policy of planes: channels whose mean and maximum over the board are added
    /// to the others (KataGo), below `filters`; 0 switches it off. Over clans it must be 0.
    pub global_pooling: u32,
    /// What the value head gives: `scalar`, or `wdl`, the probabilities of a win, a draw and a loss (models have an output of
    /// that name then; their `value` stays one number, win - loss). Over clans it must be `scalar`.
    pub value_head: ValueHead,
    /// Width of the value head's hidden layer, 1 to 4096.
    pub value_hidden: u32,
}

impl Default for LearnerConfig {
    fn default() -> Self {
        Self {
            device: Device::Auto,
            threads: 0,
            precision: Precision::Auto,
            batch_size: 256,
            optimizer: Optimizer::Adamw,
            learning_rate: 1e-3,
            warmup_steps: 100,
            average_decay: 0.95,
            momentum: 0.9,
            weight_decay: 1e-4,
            max_gradient_norm: 5.0,
            value_weight: 1.0,
            root_value_share: 0.0,
            opponent_policy_weight: 0.0,
            moves_left_weight: 0.0,
            symmetries: true,
            min_positions: 4_000,
            samples_per_position: 2.0,
            checkpoint_steps: 50,
            folder: "learner".into(),
            metrics: String::new(),
            health: String::new(),
        }
    }
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            blocks: 4,
            filters: 64,
            squeeze_excitation: 0,
            global_pooling: 0,
            value_head: ValueHead::Scalar,
            value_hidden: 256,
        }
    }
}

impl LearnerConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        require(
            (1..=65_536).contains(&self.batch_size),
            "learner.batch_size",
            "must be between 1 and 65536",
        )?;
        require(self.threads <= 1024, "learner.threads", "must be at most 1024")?;
        require(
            self.learning_rate > 0.0 && self.learning_rate.is_finite(),
            "learner.learning_rate",
            "must be positive",
        )?;
        require(
            (0.0..1.0).contains(&self.momentum),
            "learner.momentum",
            "must be at least 0 and below 1",
        )?;
        require(
            self.weight_decay >= 0.0,
            "learner.weight_decay",
            "must not be negative",
        )?;
        require(
            self.max_gradient_norm >= 0.0,
            "learner.max_gradient_norm",
            "must not be negative",
        )?;
        for (key, weight) in [
            ("learner.value_weight", self.value_weight),
            ("learner.opponent_policy_weight", self.opponent_policy_weight),
            ("learner.moves_left_weight", self.moves_left_weight),
        ] {
            let is_weight = weight >= 0.0 && weight.is_finite();
            require(is_weight, key, "must be 0 or a positive number")?;
        }
        require(
            (0.0..=1.0).contains(&self.root_value_share),
            "learner.root_value_share",
            "must be between 0 and 1",
        )?;
        require(
            (0.0..1.0).contains(&self.average_decay),
            "learner.average_decay",
            "must be at least 0 and below 1",
        )?;
        require(
            self.samples_per_position > 0.0 && self.samples_per_position.is_finite(),
            "learner.samples_per_position",
            "must be positive",
        )?;
        require(
            self.min_positions >= 1,
            "learner.min_positions",
            "must be at least 1",
        )?;
        require(
            self.checkpoint_steps >= 1,
            "learner.checkpoint_steps",
            "must be at least 1",
        )
    }
}

impl ModelConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        require(
            (1..=100).contains(&self.blocks),
            "model.blocks",
            "must be between 1 and 100",
        )?;
        require(
            (1..=1024).contains(&self.filters),
            "model.filters",
            "must be between 1 and 1024",
        )?;
        require(
            self.squeeze_excitation <= self.filters,
            "model.squeeze_excitation",
            "must be at most model.filters",
        )?;
        require(
            self.global_pooling < self.filters,
            "model.global_pooling",
            "must be below model.filters",
        )?;
        require(
            (1..=4096).contains(&self.value_hidden),
            "model.value_hidden",
            "must be between 1 and 4096",
        )
    }
}
