//! [`Line`]: losses in training and on held-out games, as the learner writes them into [`FILE`].

use serde::{Deserialize, Serialize};

/// File of the lines, in the folder of a run.
pub const FILE: &str = "learner/metrics.jsonl";

/// A line of the learner, as far as others read it. A loss that is not a number is `null`, which is `None` here.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Time of the line, in milliseconds since the Unix epoch; 0 in lines of early releases.
    #[serde(default)]
    pub time_ms: u64,
    /// Training steps done.
    pub step: u64,
    /// Steps since the line before; the losses in training are their means.
    pub steps: u64,
    /// Of the policy, in nats.
    pub policy_loss: Option<f64>,
    /// Of the value.
    pub value_loss: Option<f64>,
    /// Entropy of the policy targets: the smallest policy loss that a network could have, in nats.
    pub target_entropy: Option<f64>,
    /// Losses on held-out and on trained games, in the line of a checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<Validation>,
}

/// Losses at one validation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// On games that are held out of training.
    pub held_out: Fit,
    /// On games that were trained on.
    pub trained: Fit,
}

/// Losses of both heads. A loss that is not a number is `null`, which is `None` here.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// Of the policy, in nats.
    pub policy: Option<f64>,
    /// Of the value.
    pub value: Option<f64>,
}

impl Validation {
    /// Loss of the policy on held-out games less that on trained games.
    pub fn policy_gap(&self) -> Option<f64> {
        Some(self.held_out.policy? - self.trained.policy?)
    }

    /// Loss of the value on held-out games less that on trained games.
    pub fn value_gap(&self) -> Option<f64> {
        Some(self.held_out.value? - self.trained.value?)
    }
}
