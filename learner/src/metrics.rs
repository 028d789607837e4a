//! The learner's metrics. Handles are made once, when the role starts, so that every metric is on the page from the start.

use std::time::Duration;

use metrics::{counter, describe_counter, describe_gauge, gauge};
use proto::v1::Redraw;

use crate::training::train::StepReport;

const DIVERGENCES: &str = "minuet_learner_divergences_total";
const REDRAWN: &str = "minuet_learner_batches_redrawn_total";
const LOSS: &str = "minuet_learner_loss";
const VALIDATION_LOSS: &str = "minuet_learner_validation_loss";
const VALIDATION_GAP: &str = "minuet_learner_validation_gap";

service::metrics_table! {
    /// Handles of the learner's metrics.
    pub struct Metrics {
        /// Checkpoints published.
        checkpoints: "minuet_learner_checkpoints_total", counter;
        /// Checkpoints not published because ONNX Runtime and libtorch disagreed on them.
        refused_checkpoints: "minuet_learner_refused_checkpoints_total", counter;
        /// Samples trained on.
        samples: "minuet_learner_samples_total", counter;
        /// Training steps.
        steps: "minuet_learner_steps_total", counter;
        /// Failed requests to the replay store.
        store_failures: "minuet_learner_store_failures_total", counter;
        /// Batches that could not be trained on.
        unusable_batches: "minuet_learner_unusable_batches_total", counter;
        /// Positions that were left out of their batches because they are invalid.
        unusable_positions: "minuet_learner_unusable_positions_total", counter;
        /// Number of the last training step.
        step: "minuet_learner_step", gauge;
        /// Training step of the last checkpoint.
        checkpoint_step: "minuet_learner_checkpoint_step", gauge;
        /// Norm of the gradient before clipping.
        gradient_norm: "minuet_learner_gradient_norm", gauge;
        /// Entropy of the policy targets: the smallest policy loss that a network could have.
        target_entropy: "minuet_learner_target_entropy", gauge;
        /// Learning rate.
        learning_rate: "minuet_learner_learning_rate", gauge;
        /// Samples trained on for each position inserted.
        samples_per_position: "minuet_learner_samples_per_position_ratio", gauge;
        /// Training speed.
        samples_per_second: "minuet_learner_samples_per_second", gauge;
        /// 1 while the learner waits for positions, 0 otherwise.
        waiting: "minuet_learner_waiting", gauge;
        /// Positions inserted into the replay store.
        positions_inserted: "minuet_learner_positions_inserted", gauge;
        /// Positions in the replay store's window.
        window_positions: "minuet_learner_window_positions", gauge;
        /// Samples that were allowed for positions which have left the window, and will not be drawn.
        samples_forgone: "minuet_learner_samples_forgone", gauge;
        /// Batches that are packed and wait for training.
        prefetched_batches: "minuet_learner_prefetched_batches", gauge;
        /// Token of the lease held on the model store; 0 while none is held.
        lease_token: "minuet_learner_lease_token", gauge;
        /// Time that training waited for a batch.
        wait_seconds: "minuet_learner_wait_seconds", seconds;
        /// Duration of a training step.
        step_seconds: "minuet_learner_step_seconds", seconds;
    }
}

impl Metrics {
    /// Describes every metric and makes handles of the recorder that is installed at this moment.
    pub fn new() -> Self {
        describe_counter!(DIVERGENCES, "Times that training has diverged.");
        describe_counter!(
            REDRAWN,
            "Batches that an earlier process was given too, by whether they have the same positions."
        );
        describe_gauge!(LOSS, "Training loss of a head.");
        describe_gauge!(
            VALIDATION_LOSS,
            "Loss of a head on games that are held out of training."
        );
        describe_gauge!(
            VALIDATION_GAP,
            "Loss of a head on held-out games less its loss on games that training draws from."
        );
        // NaN means "not measured yet".
        for head in ["policy", "value"] {
            gauge!(VALIDATION_LOSS, "head" => head).set(f64::NAN);
            gauge!(VALIDATION_GAP, "head" => head).set(f64::NAN);
        }
        Self::registered()
    }

    /// Records one training step and its duration.
    pub(crate) fn stepped(&self, report: &StepReport, samples_per_position: f64, duration: Duration) {
        self.step.set(report.step as f64);
        self.gradient_norm.set(report.gradient_norm);
        self.target_entropy.set(report.target_entropy);
        self.learning_rate.set(report.learning_rate);
        self.samples_per_position.set(samples_per_position);
        self.steps.increment(1);
        self.samples.increment(report.samples as u64);
        self.step_seconds.record(duration.as_secs_f64());
        // The gauge of a term appears with the first step, because the network decides which terms there are.
        for &(term, loss) in &report.losses {
            gauge!(LOSS, "head" => term).set(loss);
        }
    }

    /// Records a head's loss on held-out games, and by how much it exceeds the loss on games that training draws from.
    pub(crate) fn set_validation(&self, head: &'static str, held_out: f64, gap: f64) {
        gauge!(VALIDATION_LOSS, "head" => head).set(held_out);
        gauge!(VALIDATION_GAP, "head" => head).set(gap);
    }

    /// Exports the number of divergences. The counter appears with the first call and not earlier, because the alert takes a rise
    /// from zero for a new divergence.
    pub(crate) fn set_divergences(&self, count: u64) {
        counter!(DIVERGENCES).absolute(count);
    }

    /// Records whether a batch was given to an earlier process too, and with which positions.
    pub(crate) fn redrawn(&self, redraw: Redraw) {
        let positions = match redraw {
            Redraw::None => return,
            Redraw::Same => "same",
            Redraw::Other => "other",
        };
        counter!(REDRAWN, "positions" => positions).increment(1);
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}
