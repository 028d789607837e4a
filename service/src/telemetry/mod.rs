//! Spans for a collector: what happened to one call on its way through the processes, by OpenTelemetry's protocol (OTLP).
//!
//! Off unless a collector is named (`--trace-to`, or `OTEL_EXPORTER_OTLP_ENDPOINT`). Spans have a target of their own
//! ([`TARGET`]), which the log leaves out and which costs a load and a branch where nobody collects. A caller's trace is taken
//! from and given on in `traceparent` (W3C Trace Context), so an actor's question and the server's answer are one trace. Of
//! traces that begin here a share is drawn (`--trace-share`); whoever begins one elsewhere decides for all of it.
//! What many calls share has spans of its own: [`steps`].

pub mod steps;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use opentelemetry::{
    KeyValue,
    propagation::{Extractor, Injector, TextMapPropagator as _},
    trace::TracerProvider as _,
};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::{
    Resource,
    propagation::TraceContextPropagator,
    trace::{Sampler, SdkTracerProvider},
};
use tokio::runtime::Runtime;
use tonic::{
    codegen::http,
    metadata::{AsciiMetadataKey, MetadataMap},
};
use tracing::{Level, Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::{Layer, filter::Targets, registry::LookupSpan};

/// Target of the spans that are collected.
pub const TARGET: &str = "minuet::trace";

/// At the end, a collector gets this long to take what is left.
const LAST_WORDS: Duration = Duration::from_secs(3);

static IS_ON: AtomicBool = AtomicBool::new(false);

/// A collector that cannot be sent to.
#[derive(Debug, thiserror::Error)]
#[error("cannot send spans to {endpoint}: {reason}")]
pub struct TelemetryError {
    /// Where they would go.
    pub endpoint: String,
    /// Why not.
    pub reason: String,
}

/// What sends spans. They are sent in batches by a thread of its own, and dropped where the collector does not keep up.
#[derive(Debug)]
pub struct Telemetry {
    provider: SdkTracerProvider,
    /// The exporter's connection lives here, apart from the role's work.
    runtime: Runtime,
}

impl Telemetry {
    /// Spans of the service called `name` go to `endpoint` (`http://host:4317`); of traces that begin here, `share` of 1.
    ///
    /// # Errors
    /// [`TelemetryError`] for an endpoint that is none. A collector that is away is not an error.
    pub fn new(endpoint: &str, share: f64, name: &'static str) -> Result<Self, TelemetryError> {
        let refused = |reason: String| TelemetryError {
            endpoint: endpoint.to_owned(),
            reason,
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("otlp")
            .enable_all()
            .build()
            .map_err(|error| refused(error.to_string()))?;
        let exporter = {
            let _entered = runtime.enter();
            SpanExporter::builder()
                .with_tonic()
                .with_endpoint(endpoint)
                .build()
                .map_err(|error| refused(error.to_string()))?
        };
        let resource = Resource::builder()
            .with_service_name(format!("minuet-{name}"))
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .with_attribute(KeyValue::new("process.pid", i64::from(std::process::id())))
            .build();
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(share))))
            .with_resource(resource)
            .build();
        *steps::TRACER.write() = Some(provider.tracer("minuet"));
        IS_ON.store(true, Ordering::Relaxed);
        Ok(Self { provider, runtime })
    }

    /// Returns the layer of a subscriber which sends the spans of [`TARGET`] to the collector.
    pub(crate) fn layer<S>(&self) -> impl Layer<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer("minuet"))
            .with_location(false)
            .with_threads(false)
            .with_filter(Targets::new().with_target(TARGET, Level::INFO))
    }

    /// Sends what is left.
    pub fn end(self) {
        IS_ON.store(false, Ordering::Relaxed);
        *steps::TRACER.write() = None;
        if let Err(error) = self.provider.shutdown_with_timeout(LAST_WORDS) {
            tracing::warn!(%error, "the last spans were not sent");
        }
        self.runtime.shutdown_background();
    }
}

/// Whether spans are collected at all.
pub fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// The span of a call that came in, within the caller's trace where it names one.
pub(crate) fn call_span(request: &http::Request<()>) -> Span {
    if !is_on() {
        return Span::none();
    }
    let span = tracing::info_span!(
        target: TARGET,
        "call",
        otel.name = request.uri().path().trim_start_matches('/'),
        otel.kind = "server",
        rpc.system = "grpc",
    );
    let parent = TraceContextPropagator::new().extract(&Headers(request.headers()));
    // It fails where the span is not collected, and then nothing is missing.
    drop(span.set_parent(parent));
    span
}

/// Says in a call's metadata which trace it belongs to: that of the current span.
pub(crate) fn inject(metadata: &mut MetadataMap) {
    if is_on() {
        let context = Span::current().context();
        TraceContextPropagator::new().inject_context(&context, &mut Metadata(metadata));
    }
}

struct Headers<'a>(&'a http::HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(http::HeaderName::as_str).collect()
    }
}

struct Metadata<'a>(&'a mut MetadataMap);

impl Injector for Metadata<'_> {
    fn set(&mut self, key: &str, value: String) {
        let key = AsciiMetadataKey::from_bytes(key.as_bytes());
        if let (Ok(key), Ok(value)) = (key, value.parse()) {
            self.0.insert(key, value);
        }
    }
}
