//! Metrics of the server. Handles are made once, so that a request costs only atomic operations.

use std::time::Duration;

use metrics::{
    Counter, Gauge, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge,
    histogram,
};
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

const REFUSED: &str = "minuet_inference_refused_total";
const CACHE_POSITIONS: &str = "minuet_inference_cache_positions_total";
const PROVIDER: &str = "minuet_inference_provider_info";

/// Handles of all metrics.
#[derive(Debug)]
pub struct Metrics {
    requests: Counter,
    positions: Counter,
    /// Requests that were dropped because nobody waited for them. Late requests are counted as refused.
    pub(crate) cancelled: Counter,
    pub(crate) unread: Gauge,
    pub(crate) cache_entries: Gauge,
    pub(crate) exact_cache_use: CacheUse,
    pub(crate) not_finite: Counter,
    pub(crate) device_failures: Counter,
    /// Positions that wait.
    pub(crate) waiting: Gauge,
    /// Time that a request waited for the device.
    pub(crate) queue_seconds: Histogram,
    batches: Counter,
    batch_positions: Counter,
    batch_slots: Counter,
    device_seconds: Histogram,
    /// Open streams.
    pub(crate) streams: Gauge,
    /// Models that are served.
    pub(crate) loads: Counter,
    /// Models that could not be loaded.
    pub(crate) load_failures: Counter,
    step: Gauge,
    published: Gauge,
}

impl Metrics {
    /// Describes and registers every metric with the installed recorder.
    pub fn new() -> Self {
        const LOADS: &str = "minuet_inference_model_loads_total";
        describe_counter!(
            REFUSED,
            Unit::Count,
            "Requests refused, by the gRPC status code that they were answered with."
        );
        describe_counter!(LOADS, Unit::Count, "Models loaded, by the result.");
        describe_counter!(
            CACHE_POSITIONS,
            Unit::Count,
            "Positions looked up in the cache, by the name in the request and the result."
        );
        describe_gauge!(
            PROVIDER,
            Unit::Count,
            "1 for the provider that runs the default model."
        );
        for code in REFUSALS {
            refused(code).increment(0);
        }
        Self {
            requests: counted("minuet_inference_requests_total", "Requests answered."),
            positions: counted(
                "minuet_inference_positions_total",
                "Positions of requests answered.",
            ),
            cancelled: counted(
                "minuet_inference_cancelled_total",
                "Requests dropped because their clients had gone.",
            ),
            cache_entries: gauged(
                "minuet_inference_cache_entries",
                Unit::Count,
                "Evaluations in the cache.",
            ),
            exact_cache_use: CacheUse::new("by version"),
            unread: gauged(
                "minuet_inference_unread_bytes",
                Unit::Bytes,
                "Memory of large requests whose answers have not been read.",
            ),
            not_finite: counted(
                "minuet_inference_not_finite_total",
                "Requests for which the model gave infinities or NaN.",
            ),
            device_failures: counted(
                "minuet_inference_device_failures_total",
                "Batches that the device did not compute.",
            ),
            waiting: gauged(
                "minuet_inference_queue_positions",
                Unit::Count,
                "Positions that wait for the device.",
            ),
            queue_seconds: measured(
                "minuet_inference_queue_seconds",
                Unit::Seconds,
                "How long requests waited for the device.",
            ),
            batches: counted("minuet_inference_batches_total", "Batches executed."),
            batch_positions: counted(
                "minuet_inference_batch_positions_total",
                "Positions in executed batches, padding not counted.",
            ),
            batch_slots: counted(
                "minuet_inference_batch_slots_total",
                "Places in executed batches, padding counted.",
            ),
            device_seconds: measured(
                "minuet_inference_device_seconds",
                Unit::Seconds,
                "How much of the device's time a batch took: the time in which a thread computed it, divided by the number of threads.",
            ),
            streams: gauged("minuet_inference_streams", Unit::Count, "Streams that are open."),
            loads: counter!(LOADS, "result" => "served"),
            load_failures: counter!(LOADS, "result" => "refused"),
            step: gauged(
                "minuet_inference_model_step",
                Unit::Count,
                "Training step of the default model.",
            ),
            published: gauged(
                "minuet_inference_model_published_timestamp_seconds",
                Unit::Seconds,
                "When the default model was published, since the Unix epoch.",
            ),
        }
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

/// Describes and registers a counter.
fn counted(name: &'static str, help: &'static str) -> Counter {
    describe_counter!(name, Unit::Count, help);
    counter!(name)
}

/// Describes and registers a gauge.
fn gauged(name: &'static str, unit: Unit, help: &'static str) -> Gauge {
    describe_gauge!(name, unit, help);
    gauge!(name)
}

/// Describes and registers a histogram.
fn measured(name: &'static str, unit: Unit, help: &'static str) -> Histogram {
    describe_histogram!(name, unit, help);
    histogram!(name)
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}
