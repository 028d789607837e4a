//! The learner's metrics. Handles are made once, when the role starts, so that every metric is on the page from the start.

use std::time::Duration;

use metrics::{
    Counter, Gauge, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge,
    histogram,
};
use proto::v1::Redraw;

use crate::training::train::StepReport;

const DIVERGENCES: &str = "minuet_learner_divergences_total";
const REDRAWN: &str = "minuet_learner_batches_redrawn_total";
const LOSS: &str = "minuet_learner_loss";
const VALIDATION_LOSS: &str = "minuet_learner_validation_loss";
const VALIDATION_GAP: &str = "minuet_learner_validation_gap";

/// Handles of the learner's metrics. [`Metrics::new`] describes each.
#[derive(Debug)]
pub struct Metrics {
    pub(crate) checkpoints: Counter,
    pub(crate) refused_checkpoints: Counter,
    samples: Counter,
    steps: Counter,
    pub(crate) store_failures: Counter,
    pub(crate) unusable_batches: Counter,
    pub(crate) unusable_positions: Counter,
    pub(crate) step: Gauge,
    pub(crate) checkpoint_step: Gauge,
    gradient_norm: Gauge,
    target_entropy: Gauge,
    learning_rate: Gauge,
    samples_per_position: Gauge,
    pub(crate) samples_per_second: Gauge,
    pub(crate) waiting: Gauge,
    pub(crate) positions_inserted: Gauge,
    pub(crate) window_positions: Gauge,
    pub(crate) samples_forgone: Gauge,
    pub(crate) prefetched_batches: Gauge,
    pub(crate) lease_token: Gauge,
    pub(crate) wait_seconds: Histogram,
    step_seconds: Histogram,
}

impl Metrics {
    /// Describes every metric and makes handles of the recorder that is installed at this moment.
    pub fn new() -> Self {
        describe_counter!(DIVERGENCES, "Times that training has diverged");
        describe_counter!(
            REDRAWN,
            "Batches that an earlier process was given too, by whether they have the same positions"
        );
        describe_gauge!(LOSS, "Training loss of a head");
        describe_gauge!(
            VALIDATION_LOSS,
            "Loss of a head on games that are held out of training"
        );
        describe_gauge!(
            VALIDATION_GAP,
            "Loss of a head on held-out games less its loss on games that training draws from"
        );
        // NaN means "not measured yet".
        for head in ["policy", "value"] {
            gauge!(VALIDATION_LOSS, "head" => head).set(f64::NAN);
            gauge!(VALIDATION_GAP, "head" => head).set(f64::NAN);
        }
        Self {
            checkpoints: count("minuet_learner_checkpoints_total", "Checkpoints published"),
            refused_checkpoints: count(
                "minuet_learner_refused_checkpoints_total",
                "Checkpoints not published because ONNX Runtime and libtorch disagreed on them",
            ),
            samples: count("minuet_learner_samples_total", "Samples trained on"),
            steps: count("minuet_learner_steps_total", "Training steps"),
            store_failures: count(
                "minuet_learner_store_failures_total",
                "Failed requests to the replay store",
            ),
            unusable_batches: count(
                "minuet_learner_unusable_batches_total",
                "Batches that could not be trained on",
            ),
            unusable_positions: count(
                "minuet_learner_unusable_positions_total",
                "Positions that were left out of their batches because they are invalid",
            ),
            step: level("minuet_learner_step", "Number of the last training step"),
            checkpoint_step: level(
                "minuet_learner_checkpoint_step",
                "Training step of the last checkpoint",
            ),
            gradient_norm: level(
                "minuet_learner_gradient_norm",
                "Norm of the gradient before clipping",
            ),
            target_entropy: level(
                "minuet_learner_target_entropy",
                "Entropy of the policy targets: the smallest policy loss that a network could have",
            ),
            learning_rate: level("minuet_learner_learning_rate", "Learning rate"),
            samples_per_position: level(
                "minuet_learner_samples_per_position_ratio",
                "Samples trained on for each position inserted",
            ),
            samples_per_second: level("minuet_learner_samples_per_second", "Training speed"),
            waiting: level(
                "minuet_learner_waiting",
                "1 while the learner waits for positions, 0 otherwise",
            ),
            positions_inserted: level(
                "minuet_learner_positions_inserted",
                "Positions inserted into the replay store",
            ),
            window_positions: level(
                "minuet_learner_window_positions",
                "Positions in the replay store's window",
            ),
            samples_forgone: level(
                "minuet_learner_samples_forgone",
                "Samples that were allowed for positions which have left the window, and will not be drawn",
            ),
            prefetched_batches: level(
                "minuet_learner_prefetched_batches",
                "Batches that are packed and wait for training",
            ),
            lease_token: level(
                "minuet_learner_lease_token",
                "Token of the lease held on the model store; 0 while none is held",
            ),
            wait_seconds: seconds(
                "minuet_learner_wait_seconds",
                "Time that training waited for a batch",
            ),
            step_seconds: seconds("minuet_learner_step_seconds", "Duration of a training step"),
        }
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

fn count(name: &'static str, text: &'static str) -> Counter {
    describe_counter!(name, text);
    counter!(name)
}

fn level(name: &'static str, text: &'static str) -> Gauge {
    describe_gauge!(name, text);
    gauge!(name)
}

fn seconds(name: &'static str, text: &'static str) -> Histogram {
    describe_histogram!(name, Unit::Seconds, text);
    histogram!(name)
}
