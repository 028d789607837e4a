//! What the server says about itself. Handles are made once: on the way of a request there are only atomics.

use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};
use tonic::Code;

use crate::{model::ModelInfo, refusal::Refusal};

/// The server's metrics.
#[derive(Debug)]
pub struct Metrics {
    requests: Counter,
    positions: Counter,
    invalid: Counter,
    unavailable: Counter,
    unknown_model: Counter,
    queue_full: Counter,
    internal: Counter,
    cancelled: Counter,
    not_finite: Counter,
    device_failures: Counter,
    waiting: Gauge,
    queue_seconds: Histogram,
    batches: Counter,
    batch_positions: Counter,
    batch_slots: Counter,
    batch_size: Histogram,
    device_seconds: Histogram,
    streams: Gauge,
    loads: Counter,
    load_failures: Counter,
    load_seconds: Histogram,
    step: Gauge,
    digest: Gauge,
}

impl Metrics {
    /// Handles of the recorder that is installed by now.
    pub fn new() -> Self {
        let refused = |code: Code| counter!("minuet_inference_refused_total", "code" => format!("{code:?}"));
        Self {
            requests: counter!("minuet_inference_requests_total"),
            positions: counter!("minuet_inference_positions_total"),
            invalid: refused(Code::InvalidArgument),
            unavailable: refused(Code::Unavailable),
            unknown_model: refused(Code::NotFound),
            queue_full: refused(Code::ResourceExhausted),
            internal: refused(Code::Internal),
            cancelled: counter!("minuet_inference_cancelled_total"),
            not_finite: counter!("minuet_inference_not_finite_total"),
            device_failures: counter!("minuet_inference_device_failures_total"),
            waiting: gauge!("minuet_inference_queue_positions"),
            queue_seconds: histogram!("minuet_inference_queue_seconds"),
            batches: counter!("minuet_inference_batches_total"),
            batch_positions: counter!("minuet_inference_batch_positions_total"),
            batch_slots: counter!("minuet_inference_batch_slots_total"),
            batch_size: histogram!("minuet_inference_batch_size"),
            device_seconds: histogram!("minuet_inference_device_seconds"),
            streams: gauge!("minuet_inference_streams"),
            loads: counter!("minuet_inference_model_loads_total", "result" => "served"),
            load_failures: counter!("minuet_inference_model_loads_total", "result" => "refused"),
            load_seconds: histogram!("minuet_inference_model_load_seconds"),
            step: gauge!("minuet_inference_model_step"),
            digest: gauge!("minuet_inference_model_digest"),
        }
    }

    /// A request was answered.
    pub(crate) fn answered(&self, positions: usize) {
        self.requests.increment(1);
        self.positions.increment(positions as u64);
    }

    /// A request was refused before it was queued.
    pub(crate) fn refused(&self, refusal: &Refusal) {
        let counter = match refusal.code() {
            Code::InvalidArgument => &self.invalid,
            Code::Unavailable => &self.unavailable,
            Code::NotFound => &self.unknown_model,
            Code::ResourceExhausted => &self.queue_full,
            _ => &self.internal,
        };
        counter.increment(1);
    }

    /// A request was answered with an error of the device.
    pub(crate) fn failed(&self) {
        self.internal.increment(1);
    }

    /// A model gave what is not finite.
    pub(crate) fn not_finite(&self) {
        self.not_finite.increment(1);
        self.internal.increment(1);
    }

    /// The device did not compute a batch.
    pub(crate) fn device_failed(&self) {
        self.device_failures.increment(1);
    }

    /// Requests were dropped because nobody waited for them any more.
    pub(crate) fn cancelled(&self, requests: u64) {
        if requests > 0 {
            self.cancelled.increment(requests);
        }
    }

    /// So many positions wait.
    pub(crate) fn waiting(&self, positions: usize) {
        self.waiting.set(positions as f64);
    }

    /// A request waited so long for the device.
    pub(crate) fn queued_for(&self, time: Duration) {
        self.queue_seconds.record(time);
    }

    /// The device executed a batch of `slots`, of which `positions` were no padding.
    pub(crate) fn batch(&self, positions: usize, slots: usize, time: Duration) {
        self.batches.increment(1);
        self.batch_positions.increment(positions as u64);
        self.batch_slots.increment(slots as u64);
        self.batch_size.record(positions as f64);
        self.device_seconds.record(time);
    }

    /// A stream began (1) or ended (-1).
    pub(crate) fn streams(&self, change: f64) {
        self.streams.increment(change);
    }

    /// A model was loaded and is served from now on. Its version, `{step}-{digest}`, is given as two numbers: as a label
    /// it would make one more series with every checkpoint of a long run.
    pub(crate) fn serves(&self, info: &ModelInfo, before: Option<&ModelInfo>, time: Duration) {
        self.loads.increment(1);
        self.load_seconds.record(time);
        let digest = info.version.rsplit('-').next();
        let digest = digest.and_then(|digest| u32::from_str_radix(digest, 16).ok());
        self.digest.set(f64::from(digest.unwrap_or_default()));
        self.step.set(info.step as f64);
        let gauge = |info: &ModelInfo| gauge!("minuet_inference_provider_info", "provider" => info.provider);
        if let Some(before) = before {
            gauge(before).set(0.0);
        }
        gauge(info).set(1.0);
    }

    /// A model was refused.
    pub(crate) fn refused_model(&self) {
        self.load_failures.increment(1);
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}
