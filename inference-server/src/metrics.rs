//! Metrics of the server. Handles are made once, so that a request costs only atomic operations.

use std::time::Duration;

use metrics::{Counter, counter, describe_counter, describe_gauge, gauge};
use network::model::ModelInfo;
use tonic::Code;

/// Status codes of refused requests.
const REFUSALS: [Code; 7] = [
    Code::InvalidArgument,
    Code::Unavailable,
    Code::NotFound,
    Code::ResourceExhausted,
    Code::FailedPrecondition,
    Code::DeadlineExceeded,
    Code::Internal,
];

const LOADS: &str = "minuet_inference_model_loads_total";
const REFUSED: &str = "minuet_inference_refused_total";
const CACHE_POSITIONS: &str = "minuet_inference_cache_positions_total";
const PROVIDER: &str = "minuet_inference_provider_info";

service::metrics_table! {
    /// Handles of the metrics without labels.
    pub struct Metrics {
        /// Requests answered.
        requests: "minuet_inference_requests_total", counter;
        /// Positions of requests answered.
        positions: "minuet_inference_positions_total", counter;
        /// Requests dropped because their clients had gone.
        cancelled: "minuet_inference_cancelled_total", counter;
        /// Memory of large requests whose answers have not been read.
        unread: "minuet_inference_unread_bytes", gauge;
        /// Evaluations in the cache.
        cache_entries: "minuet_inference_cache_entries", gauge;
        /// Requests for which the model gave infinities or NaN.
        not_finite: "minuet_inference_not_finite_total", counter;
        /// Batches that the device did not compute.
        device_failures: "minuet_inference_device_failures_total", counter;
        /// Positions that wait for the device.
        waiting: "minuet_inference_queue_positions", gauge;
        /// Time that a request waited for the device.
        queue_seconds: "minuet_inference_queue_seconds", seconds;
        /// Batches executed.
        batches: "minuet_inference_batches_total", counter;
        /// Positions in executed batches, padding not counted.
        batch_positions: "minuet_inference_batch_positions_total", counter;
        /// Places in executed batches, padding counted.
        batch_slots: "minuet_inference_batch_slots_total", counter;
        /// Time of the device that a batch took: the time in which a thread computed it, divided by the number of threads.
        device_seconds: "minuet_inference_device_seconds", seconds;
        /// Streams that are open.
        streams: "minuet_inference_streams", gauge;
        /// Training step of the default model.
        step: "minuet_inference_model_step", gauge;
        /// When the default model was published, since the Unix epoch.
        published: "minuet_inference_model_published_timestamp_seconds", gauge;
        /// 1 while the newest checkpoint of the default name is refused: an older one is served, or none.
        newest_refused: "minuet_inference_model_newest_refused", gauge;
    }
}

impl Metrics {
    /// Describes and registers every metric with the installed recorder.
    pub fn new() -> Self {
        for (name, help) in [
            (
                REFUSED,
                "Requests refused, by the gRPC status code that they were answered with.",
            ),
            (LOADS, "Models loaded, by the result."),
            (
                CACHE_POSITIONS,
                "Positions looked up in the cache, by the name in the request and the result.",
            ),
        ] {
            describe_counter!(name, help);
        }
        describe_gauge!(PROVIDER, "1 for the provider that runs the default model.");
        for result in ["served", "refused"] {
            counter!(LOADS, "result" => result).increment(0);
        }
        for code in REFUSALS {
            refused(code).increment(0);
        }
        Self::registered()
    }

    /// Records an attempt to load a model.
    pub(crate) fn loaded(&self, is_served: bool) {
        let result = if is_served { "served" } else { "refused" };
        counter!(LOADS, "result" => result).increment(1);
    }

    /// Records an answered request of `positions` positions.
    pub(crate) fn answered(&self, positions: usize) {
        self.requests.increment(1);
        self.positions.increment(positions as u64);
    }

    /// Records a refusal that was sent to a client with this status code.
    pub(crate) fn refused(&self, code: Code) {
        refused(code).increment(1);
    }

    /// Records an executed batch of `slots` places, of which `positions` were not padding. `time` is its share of the device's
    /// time, so that the sum grows by one second a second if all threads compute.
    pub(crate) fn batch(&self, positions: usize, slots: usize, time: Duration) {
        self.batches.increment(1);
        self.batch_positions.increment(positions as u64);
        self.batch_slots.increment(slots as u64);
        self.device_seconds.record(time);
    }

    /// Shows the model of the default name, which replaces `before` and was published at this Unix time, in seconds.
    pub(crate) fn serves(&self, info: &ModelInfo, before: Option<&ModelInfo>, published_at: f64) {
        self.step.set(info.step as f64);
        self.published.set(published_at);
        let gauge = |info: &ModelInfo| gauge!(PROVIDER, "provider" => info.provider);
        if let Some(before) = before {
            gauge(before).set(0.0);
        }
        gauge(info).set(1.0);
    }
}

/// Cache hits and misses of one served name.
#[derive(Debug)]
pub(crate) struct CacheUse {
    hits: Counter,
    misses: Counter,
}

impl CacheUse {
    /// Registers the counters of the name `model`. All versions share one series, because a long run has one version per
    /// checkpoint.
    pub(crate) fn new(model: &str) -> Self {
        let count =
            |result: &'static str| counter!(CACHE_POSITIONS, "model" => model.to_owned(), "result" => result);
        Self {
            hits: count("hit"),
            misses: count("miss"),
        }
    }

    pub(crate) fn count(&self, hits: u64, misses: u64) {
        self.hits.increment(hits);
        self.misses.increment(misses);
    }
}

/// Returns the counter of refusals with a status code.
fn refused(code: Code) -> Counter {
    counter!(REFUSED, "code" => format!("{code:?}"))
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}
