//! The learner's metrics. Handles are made once, when the role starts, so that every metric is on the page from the start.

use std::time::Duration;

use metrics::{
    Counter, Gauge, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge,
    histogram,
};
use proto::v1::Redraw;

const DIVERGENCES: &str = "minuet_learner_divergences_total";
const REDRAWN: &str = "minuet_learner_batches_redrawn_total";
const LOSS: &str = "minuet_learner_loss";
const VALIDATION_LOSS: &str = "minuet_learner_validation_loss";
const VALIDATION_GAP: &str = "minuet_learner_validation_gap";

/// Handles of the learner's metrics.
#[derive(Debug)]
pub struct Metrics {
    checkpoints: Counter,
    refused_checkpoints: Counter,
    samples: Counter,
    steps: Counter,
    store_failures: Counter,
    unusable_batches: Counter,
    unusable_positions: Counter,
    step: Gauge,
    checkpoint_step: Gauge,
    gradient_norm: Gauge,
    target_entropy: Gauge,
    learning_rate: Gauge,
    samples_per_position: Gauge,
    samples_per_second: Gauge,
    waiting: Gauge,
    positions_inserted: Gauge,
    window_positions: Gauge,
    samples_forgone: Gauge,
    prefetched_batches: Gauge,
    lease_token: Gauge,
    wait_seconds: Histogram,
    step_seconds: Histogram,
}

impl Metrics {
    /// Describes every metric and makes handles of the recorder that is installed at this moment.
    pub fn new() -> Self {
        describe();
        // NaN means "not measured yet".
        for head in ["policy", "value"] {
            gauge!(VALIDATION_LOSS, "head" => head).set(f64::NAN);
            gauge!(VALIDATION_GAP, "head" => head).set(f64::NAN);
        }
        Self {
            checkpoints: counter!("minuet_learner_checkpoints_total"),
            refused_checkpoints: counter!("minuet_learner_refused_checkpoints_total"),
            samples: counter!("minuet_learner_samples_total"),
            steps: counter!("minuet_learner_steps_total"),
            store_failures: counter!("minuet_learner_store_failures_total"),
            unusable_batches: counter!("minuet_learner_unusable_batches_total"),
            unusable_positions: counter!("minuet_learner_unusable_positions_total"),
            step: gauge!("minuet_learner_step"),
            checkpoint_step: gauge!("minuet_learner_checkpoint_step"),
            gradient_norm: gauge!("minuet_learner_gradient_norm"),
            target_entropy: gauge!("minuet_learner_target_entropy"),
            learning_rate: gauge!("minuet_learner_learning_rate"),
            samples_per_position: gauge!("minuet_learner_samples_per_position_ratio"),
            samples_per_second: gauge!("minuet_learner_samples_per_second"),
            waiting: gauge!("minuet_learner_waiting"),
            positions_inserted: gauge!("minuet_learner_positions_inserted"),
            window_positions: gauge!("minuet_learner_window_positions"),
            samples_forgone: gauge!("minuet_learner_samples_forgone"),
            prefetched_batches: gauge!("minuet_learner_prefetched_batches"),
            lease_token: gauge!("minuet_learner_lease_token"),
            wait_seconds: histogram!("minuet_learner_wait_seconds"),
            step_seconds: histogram!("minuet_learner_step_seconds"),
        }
    }

    /// Records the token of the lease that this learner holds; 0 while it holds none.
    pub(crate) fn set_lease_token(&self, token: u64) {
        self.lease_token.set(token as f64);
    }

    /// Records that training resumed at this step.
    pub(crate) fn resumed(&self, step: u64) {
        self.step.set(step as f64);
        self.checkpoint_step.set(step as f64);
    }

    /// Records one training step and its duration.
    pub(crate) fn stepped(&self, step: &StepFigures, duration: Duration) {
        self.step.set(step.step as f64);
        self.gradient_norm.set(step.gradient_norm);
        self.target_entropy.set(step.target_entropy);
        self.learning_rate.set(step.learning_rate);
        self.samples_per_position.set(step.samples_per_position);
        self.steps.increment(1);
        self.samples.increment(step.samples as u64);
        self.step_seconds.record(duration.as_secs_f64());
    }

    /// Records a head's training loss. A head's gauge appears with its first step, because which heads there are depends on the network.
    pub(crate) fn set_loss(&self, head: &'static str, loss: f64) {
        gauge!(LOSS, "head" => head).set(loss);
    }

    /// Records a head's loss on held-out games, and by how much it exceeds the loss on games that training draws from.
    pub(crate) fn set_validation(&self, head: &'static str, held_out: f64, gap: f64) {
        gauge!(VALIDATION_LOSS, "head" => head).set(held_out);
        gauge!(VALIDATION_GAP, "head" => head).set(gap);
    }

    /// Records the training speed over the last interval.
    pub(crate) fn set_samples_per_second(&self, samples_per_second: f64) {
        self.samples_per_second.set(samples_per_second);
    }

    /// Records a published checkpoint of this step.
    pub(crate) fn published(&self, step: u64) {
        self.checkpoints.increment(1);
        self.checkpoint_step.set(step as f64);
    }

    /// Records an export that was refused by its proof.
    pub(crate) fn refused_checkpoint(&self) {
        self.refused_checkpoints.increment(1);
    }

    /// Exports the number of divergences. The counter appears with the first call and not earlier, because the alert takes a rise
    /// from zero for a new divergence.
    pub(crate) fn set_divergences(&self, count: u64) {
        counter!(DIVERGENCES).absolute(count);
    }

    /// Records how long the training thread waited for a batch.
    pub(crate) fn waited(&self, duration: Duration) {
        self.wait_seconds.record(duration.as_secs_f64());
    }

    /// Records whether the learner waits for positions.
    pub(crate) fn set_waiting(&self, is_waiting: bool) {
        self.waiting.set(if is_waiting { 1.0 } else { 0.0 });
    }

    /// Records a failed request to the replay store.
    pub(crate) fn store_failed(&self) {
        self.store_failures.increment(1);
    }

    /// Records a batch that could not be packed.
    pub(crate) fn unusable_batch(&self) {
        self.unusable_batches.increment(1);
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

    /// Records positions that a batch was packed without.
    pub(crate) fn unusable_positions(&self, positions: usize) {
        self.unusable_positions.increment(positions as u64);
    }

    /// Records the store's counts and the samples that will never be drawn.
    pub(crate) fn set_store_counts(
        &self,
        positions_inserted: u64,
        window_positions: u64,
        samples_forgone: u64,
    ) {
        self.positions_inserted.set(positions_inserted as f64);
        self.window_positions.set(window_positions as f64);
        self.samples_forgone.set(samples_forgone as f64);
    }

    /// Records the number of batches that are packed and wait for training.
    pub(crate) fn set_prefetched_batches(&self, batches: usize) {
        self.prefetched_batches.set(batches as f64);
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

/// The figures of one step that are metrics.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepFigures {
    /// Number of the step, counted from 1.
    pub(crate) step: u64,
    /// Samples of the batch.
    pub(crate) samples: usize,
    /// Norm of the gradient before clipping.
    pub(crate) gradient_norm: f64,
    /// Entropy of the policy targets: the smallest policy loss that a network could have, in nats.
    pub(crate) target_entropy: f64,
    /// Learning rate of the step.
    pub(crate) learning_rate: f64,
    /// Samples trained on for each position inserted.
    pub(crate) samples_per_position: f64,
}

fn describe() {
    for (name, text) in [
        ("minuet_learner_checkpoints_total", "Checkpoints published"),
        (
            "minuet_learner_refused_checkpoints_total",
            "Checkpoints not published because ONNX Runtime and libtorch disagreed on them",
        ),
        ("minuet_learner_samples_total", "Samples trained on"),
        ("minuet_learner_steps_total", "Training steps"),
        (
            "minuet_learner_store_failures_total",
            "Failed requests to the replay store",
        ),
        (
            "minuet_learner_unusable_batches_total",
            "Batches that could not be trained on",
        ),
        (
            REDRAWN,
            "Batches that an earlier process was given too, by whether they have the same positions",
        ),
        (
            "minuet_learner_unusable_positions_total",
            "Positions that were left out of their batches because they are invalid",
        ),
        (DIVERGENCES, "Times that training has diverged"),
    ] {
        describe_counter!(name, text);
    }
    for (name, text) in [
        ("minuet_learner_step", "Number of the last training step"),
        (
            "minuet_learner_checkpoint_step",
            "Training step of the last checkpoint",
        ),
        (LOSS, "Training loss of a head"),
        (
            VALIDATION_LOSS,
            "Loss of a head on games that are held out of training",
        ),
        (
            VALIDATION_GAP,
            "Loss of a head on held-out games less its loss on games that training draws from",
        ),
        (
            "minuet_learner_gradient_norm",
            "Norm of the gradient before clipping",
        ),
        (
            "minuet_learner_target_entropy",
            "Entropy of the policy targets: the smallest policy loss that a network could have",
        ),
        ("minuet_learner_learning_rate", "Learning rate"),
        (
            "minuet_learner_samples_per_position_ratio",
            "Samples trained on for each position inserted",
        ),
        ("minuet_learner_samples_per_second", "Training speed"),
        (
            "minuet_learner_waiting",
            "1 while the learner waits for positions, 0 otherwise",
        ),
        (
            "minuet_learner_positions_inserted",
            "Positions inserted into the replay store",
        ),
        (
            "minuet_learner_window_positions",
            "Positions in the replay store's window",
        ),
        (
            "minuet_learner_samples_forgone",
            "Samples that were allowed for positions which have left the window, and will not be drawn",
        ),
        (
            "minuet_learner_prefetched_batches",
            "Batches that are packed and wait for training",
        ),
        (
            "minuet_learner_lease_token",
            "Token of the lease held on the model store; 0 while none is held",
        ),
    ] {
        describe_gauge!(name, text);
    }
    describe_histogram!(
        "minuet_learner_wait_seconds",
        Unit::Seconds,
        "Time that training waited for a batch"
    );
    describe_histogram!(
        "minuet_learner_step_seconds",
        Unit::Seconds,
        "Duration of a training step"
    );
}
