//! `[learner]` and `[model]`: training settings and the network's size.

use std::path::PathBuf;

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use super::{
    ConfigError,
    error::{at_least, require, within},
};

/// Settings of the learner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct LearnerConfig {
    /// Device for training: `cpu`, `cuda` (an error without an NVIDIA GPU), or `auto`: a GPU if there is one, else the CPU.
    pub device: Device,
    /// CPU threads for training, at most 1024; 0: a quarter of the cores, at least one, because self-play needs the rest.
    /// Torch's threads wait for each other, so more threads on busy cores can be slower.
    pub threads: usize,
    /// Number format of the network's tower in training: `f32`, `bf16` (weights, statistics and losses stay in f32), or `auto`:
    /// the faster one, measured when training begins and kept for the run.
    pub precision: Precision,
    /// Positions per training step, 1 to 65536.
    pub batch_size: usize,
    /// The optimiser: `sgd` (with Nesterov momentum) or `adamw`.
    pub optimizer: Optimizer,
    /// Learning rate, above 0.
    pub learning_rate: f64,
    /// Number of steps over which the learning rate rises linearly from 0; 0: no warm-up.
    pub warmup_steps: u64,
    /// Decay per step of the exponential moving average of the weights, which checkpoints contain: it averages over about
    /// 1 / (1 - average_decay) steps. At least 0 (no averaging), below 1.
    pub average_decay: f64,
    /// Weight decay, on convolution and linear weights only. 0 or more.
    pub weight_decay: f64,
    /// Largest L2 norm of the gradient; a larger gradient is scaled down to it. 0: no limit.
    pub max_gradient_norm: f64,
    /// Policy target of a searched position: `visits` (shares of the visits), or `completed-q` (the network's policy times
    /// e^(s · value) of each legal action, where unvisited actions have the mean value of the visited ones). The latter leaves
    /// out the noise of the root; search.q_scale and search.q_range determine s. Games recorded without action values keep the
    /// visits.
    pub policy_target: PolicyTarget,
    /// Share of the search's root value in the value target, 0 to 1; the rest is the game's final result.
    pub root_value_share: f32,
    /// Network whose weights a new run begins with: an ONNX file, a run (runs/chess@best), or a game (chess) for the network that
    /// comes with Minuet. Paths are relative to the working folder. The network must have the size that [model] says; it cannot be
    /// a fish-eye network. Empty: random weights. A run that has a checkpoint continues from that.
    pub start_from: String,
    /// Number of positions in the store at which training begins. At least 1, at most half of replay.window_positions.
    pub min_positions: u64,
    /// Replay ratio: training samples per inserted position, above 0. The learner waits when it is ahead of this ratio.
    /// Positions that have left the window no longer count.
    pub samples_per_position: f64,
    /// Maximum number of steps between two published checkpoints, at least 1. Early checkpoints are closer together: the first
    /// one comes after ten steps, and each later distance is half of the steps made so far.
    pub checkpoint_steps: u64,
    /// Folder of the learner's own files (metrics, temporary exports); relative to the run's folder.
    pub folder: PathBuf,
    /// Address of the Prometheus metrics page; empty: none.
    pub metrics: String,
    /// Address of the health service; empty: none.
    pub health: String,
}

/// Device for training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Device {
    /// A GPU if there is one, else the CPU; the choice is logged at start.
    Auto,
    /// The CPU.
    Cpu,
    /// An NVIDIA GPU; an error if there is none.
    Cuda,
}

/// Number format of a network's tower in training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// The faster of the two formats, measured when training begins.
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

/// Policy target of a searched position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyTarget {
    /// Shares of the visits.
    #[default]
    Visits,
    /// The network's policy, improved by the values of the actions.
    CompletedQ,
}

/// Form of a network's value head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ValueHead {
    /// One number, trained with squared error (with cross-entropy in the fish-eye network).
    #[default]
    Scalar,
    /// Probabilities of win, draw and loss, trained with cross-entropy; the value is win - loss.
    Wdl,
}

/// `[model]`: size of the trained network, which is a residual tower over planes or, for the generator game, the fish-eye
/// network. The original design of the latter has 3 blocks of 64 filters and a hidden layer of 128: 568 thousand
/// parameters with a shared tower.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// Number of residual blocks, 1 to 100; in the fish-eye network: number of convolutions over the grids.
    pub blocks: u32,
    /// Filters of each convolution, 1 to 1024; in the fish-eye network all other widths are proportional to it.
    pub filters: u32,
    /// Global pooling (KataGo) in two of the blocks and in a policy head of planes: number of channels whose mean and
    /// maximum over the board are added to the other channels, below `filters`; 0: none. Must be 0 for the fish-eye network.
    pub global_pooling: u32,
    /// Form of the value head: `scalar`, or `wdl` for the probabilities of win, draw and loss. With `wdl` a model has an
    /// additional output `wdl`, and its `value` is win - loss. Must be `scalar` for the fish-eye network.
    pub value_head: ValueHead,
    /// Planes of the board between the tower and the value head's hidden layer, 1 to 1024. AlphaZero and dlchess have 1, which must
    /// represent the whole position in one number for each square; more cost little. Without effect in the fish-eye network.
    pub value_channels: u32,
    /// Width of the value head's hidden layer, 1 to 4096.
    pub value_hidden: u32,
    /// `true`: policy and value are heads of one tower. `false`: they are two networks in one file, as the fish-eye game's
    /// description says; a new run of the generator game begins with `false`. Must be `true` for all other games.
    pub shared: bool,
    /// `true`: a network of a game in which squares are owned at the end (Go) also learns to predict who owns each square, and the
    /// score, which teaches the tower much more about each position (KataGo). Only training uses these heads: checkpoints for the
    /// learner hold them, the `model.onnx` that is played with does not. Without effect in other games.
    pub territory: bool,
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
            weight_decay: 1e-4,
            max_gradient_norm: 5.0,
            policy_target: PolicyTarget::Visits,
            root_value_share: 0.0,
            start_from: String::new(),
            min_positions: 1_500,
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
            global_pooling: 0,
            value_head: ValueHead::Scalar,
            value_channels: 4,
            value_hidden: 256,
            shared: true,
            territory: true,
        }
    }
}

/// Maximum number of steps before the first trained checkpoint.
const FIRST_CHECKPOINT: u64 = 10;

impl LearnerConfig {
    /// Step of the newest checkpoint that is due after `step` steps; 0 before the first one. The distance between two
    /// checkpoints is half of the steps made so far, at least ten, at most [`LearnerConfig::checkpoint_steps`]. Actors get
    /// stronger networks while training is fast, and later pay for few changes of the network.
    pub fn checkpoint_due(&self, step: u64) -> u64 {
        let most = self.checkpoint_steps.max(1);
        let mut due: u64 = 0;
        loop {
            let distance = (due / 2).clamp(FIRST_CHECKPOINT.min(most), most);
            if distance == most {
                return due + step.saturating_sub(due) / most * most;
            }
            if due + distance > step {
                return due;
            }
            due += distance;
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let positive = |key, value: f64| require(value > 0.0 && value.is_finite(), key, "must be positive");
        within("learner.batch_size", self.batch_size, 1..=65_536)?;
        within("learner.threads", self.threads, 0..=1024)?;
        positive("learner.learning_rate", self.learning_rate)?;
        at_least("learner.weight_decay", self.weight_decay, 0.0)?;
        at_least("learner.max_gradient_norm", self.max_gradient_norm, 0.0)?;
        within("learner.root_value_share", self.root_value_share, 0.0..=1.0)?;
        require(
            (0.0..1.0).contains(&self.average_decay),
            "learner.average_decay",
            "must be at least 0 and below 1",
        )?;
        positive("learner.samples_per_position", self.samples_per_position)?;
        at_least("learner.min_positions", self.min_positions, 1)?;
        at_least("learner.checkpoint_steps", self.checkpoint_steps, 1)
    }
}

impl ModelConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        within("model.blocks", self.blocks, 1..=100)?;
        within("model.filters", self.filters, 1..=1024)?;
        require(
            self.global_pooling < self.filters,
            "model.global_pooling",
            "must be below model.filters",
        )?;
        within("model.value_channels", self.value_channels, 1..=1024)?;
        within("model.value_hidden", self.value_hidden, 1..=4096)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(most: u64, steps: u64) -> Vec<u64> {
        let settings = LearnerConfig {
            checkpoint_steps: most,
            ..LearnerConfig::default()
        };
        (1..=steps)
            .filter(|&step| settings.checkpoint_due(step) == step)
            .collect()
    }

    #[test]
    fn checkpoints_come_early_and_then_at_growing_distances_up_to_the_largest() {
        assert_eq!(due(50, 260), [10, 20, 30, 45, 67, 100, 150, 200, 250]);
        assert_eq!(due(7, 30), [7, 14, 21, 28]);
        assert_eq!(due(1, 3), [1, 2, 3]);
        let far = due(1_000, 20_000);
        assert_eq!(far[..8], [10, 20, 30, 45, 67, 100, 150, 225]);
        assert_eq!(far.windows(2).last().unwrap()[1] - far[far.len() - 2], 1_000);
    }

    #[test]
    fn the_checkpoint_due_is_that_of_the_last_step_at_which_one_was_due() {
        for most in [1, 9, 10, 50, 333] {
            let settings = LearnerConfig {
                checkpoint_steps: most,
                ..LearnerConfig::default()
            };
            let mut last = 0;
            for step in 0..3_000 {
                if settings.checkpoint_due(step) == step {
                    assert!(step - last <= most.max(1), "{most}: {last} to {step}");
                    last = step;
                }
                assert_eq!(settings.checkpoint_due(step), last, "{most}, step {step}");
            }
        }
        assert_eq!(LearnerConfig::default().checkpoint_due(u64::MAX) % 50, 0);
    }
}
