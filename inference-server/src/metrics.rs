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

const LOADS: &str = "minuet_inference_model_loads_total";
const REFUSED: &str = "minuet_inference_refused_total";
const CACHE_POSITIONS: &str = "minuet_inference_cache_positions_total";
const PROVIDER: &str = "minuet_inference_provider_info";

/// Writes the struct of all metrics from one table: help text, field, kind, name and unit of each.
macro_rules! metrics {
    ($(#[doc = $help:literal] $field:ident: $kind:ident = $name:literal, $unit:ident;)+) => {
        /// Handles of all metrics.
        #[derive(Debug)]
        pub struct Metrics {
            $(#[doc = $help] pub(crate) $field: $kind,)+
            pub(crate) exact_cache_use: CacheUse,
            /// Models that are served.
            pub(crate) loads: Counter,
            /// Models that could not be loaded.
            pub(crate) load_failures: Counter,
        }

        impl Metrics {
            /// Describes and registers every metric with the installed recorder.
            pub fn new() -> Self {
                describe_labelled();
                Self {
                    $($field: metrics!(@$kind, $name, Unit::$unit, $help.trim()),)+
                    exact_cache_use: CacheUse::new("by version"),
                    loads: counter!(LOADS, "result" => "served"),
                    load_failures: counter!(LOADS, "result" => "refused"),
                }
            }
        }
    };
    (@Counter, $name:literal, $unit:expr, $help:expr) => {{
        describe_counter!($name, $unit, $help);
        counter!($name)
    }};
    (@Gauge, $name:literal, $unit:expr, $help:expr) => {{
        describe_gauge!($name, $unit, $help);
        gauge!($name)
    }};
    (@Histogram, $name:literal, $unit:expr, $help:expr) => {{
        describe_histogram!($name, $unit, $help);
        histogram!($name)
    }};
}

metrics! {
    /// Requests answered.
    requests: Counter = "minuet_inference_requests_total", Count;
    /// Positions of requests answered.
    positions: Counter = "minuet_inference_positions_total", Count;
    /// Requests dropped because their clients had gone.
    cancelled: Counter = "minuet_inference_cancelled_total", Count;
    /// Memory of large requests whose answers have not been read.
    unread: Gauge = "minuet_inference_unread_bytes", Bytes;
    /// Evaluations in the cache.
    cache_entries: Gauge = "minuet_inference_cache_entries", Count;
    /// Requests for which the model gave infinities or NaN.
    not_finite: Counter = "minuet_inference_not_finite_total", Count;
    /// Batches that the device did not compute.
    device_failures: Counter = "minuet_inference_device_failures_total", Count;
    /// Positions that wait for the device.
    waiting: Gauge = "minuet_inference_queue_positions", Count;
    /// Time that a request waited for the device.
    queue_seconds: Histogram = "minuet_inference_queue_seconds", Seconds;
    /// Batches executed.
    batches: Counter = "minuet_inference_batches_total", Count;
    /// Positions in executed batches, padding not counted.
    batch_positions: Counter = "minuet_inference_batch_positions_total", Count;
    /// Places in executed batches, padding counted.
    batch_slots: Counter = "minuet_inference_batch_slots_total", Count;
    /// Time of the device that a batch took: the time in which a thread computed it, divided by the number of threads.
    device_seconds: Histogram = "minuet_inference_device_seconds", Seconds;
    /// Streams that are open.
    streams: Gauge = "minuet_inference_streams", Count;
    /// Training step of the default model.
    step: Gauge = "minuet_inference_model_step", Count;
    /// When the default model was published, since the Unix epoch.
    published: Gauge = "minuet_inference_model_published_timestamp_seconds", Seconds;
}

/// Describes the metrics with labels.
fn describe_labelled() {
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
        describe_counter!(name, Unit::Count, help);
    }
    describe_gauge!(
        PROVIDER,
        Unit::Count,
        "1 for the provider that runs the default model."
    );
    for code in REFUSALS {
        refused(code).increment(0);
    }
}

impl Metrics {
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
