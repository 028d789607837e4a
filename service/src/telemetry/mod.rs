//! Spans of calls for a collector, sent by OpenTelemetry's protocol (OTLP).
//!
//! Off unless a collector is named (`--trace-to`, or `OTEL_EXPORTER_OTLP_ENDPOINT`). Spans have a target of their own
//! ([`TARGET`]), which the log leaves out. Without a collector a span costs one load and one branch. The header `traceparent`
//! (W3C Trace Context) passes a trace from caller to server, so an actor's request and the server's reply are one trace.
//! `--trace-share` is the share of traces begun in this process that is collected; a trace begun by a caller is collected if
//! the caller collects it. Work shared by several calls has spans of its own: [`steps`].

pub mod steps;

use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use anyhow::Context as _;
use opentelemetry::{KeyValue, propagation::TextMapPropagator as _, trace::TracerProvider as _};
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

/// Target of collected spans.
pub const TARGET: &str = "minuet::trace";

/// Time limit for sending the remaining spans when the process ends.
const LAST_WORDS: Duration = Duration::from_secs(3);

static IS_ON: AtomicBool = AtomicBool::new(false);

/// Connection to a collector. A thread of its own sends spans in batches, and drops spans if the collector is too slow.
#[derive(Debug)]
pub struct Telemetry {
    provider: SdkTracerProvider,
    /// Runtime of the exporter's connection, separate from the role's runtime.
    runtime: Runtime,
}

impl Telemetry {
    /// Starts to send the spans of the service `name` to `endpoint` (`http://host:4317`), for the share `share` (0 to 1) of
    /// traces begun in this process.
    ///
    /// # Errors
    /// The endpoint is malformed. An unreachable collector is not an error.
    pub fn new(endpoint: &str, share: f64, name: &'static str) -> anyhow::Result<Self> {
        let refused = || format!("cannot send spans to {endpoint}");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("otlp")
            .enable_all()
            .build()
            .with_context(refused)?;
        let exporter = {
            let _entered = runtime.enter();
            SpanExporter::builder()
                .with_tonic()
                .with_endpoint(endpoint)
                .build()
                .with_context(refused)?
        };
        let resource = Resource::builder()
            .with_service_name(format!("minuet-{name}"))
            .with_attribute(KeyValue::new("service.version", crate::release::version()))
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

    /// Sends the remaining spans.
    pub fn end(self) {
        IS_ON.store(false, Ordering::Relaxed);
        *steps::TRACER.write() = None;
        if let Err(error) = self.provider.shutdown_with_timeout(LAST_WORDS) {
            tracing::warn!(%error, "the last spans were not sent");
        }
        self.runtime.shutdown_background();
    }
}

/// True if spans are collected.
pub fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// Returns the span of an incoming call, within the caller's trace if the request names one.
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
    let headers = request.headers();
    let fields = ["traceparent", "tracestate"].into_iter().filter_map(|name| {
        let value = headers.get(name)?.to_str().ok()?;
        Some((name.to_owned(), value.to_owned()))
    });
    let parent = TraceContextPropagator::new().extract(&fields.collect::<HashMap<String, String>>());
    // An error means that the span is not collected, so it needs no parent.
    drop(span.set_parent(parent));
    span
}

/// Writes the current span's trace into a call's metadata.
pub(crate) fn inject(metadata: &mut MetadataMap) {
    if !is_on() {
        return;
    }
    let mut fields: HashMap<String, String> = HashMap::new();
    TraceContextPropagator::new().inject_context(&Span::current().context(), &mut fields);
    for (name, value) in fields {
        if let (Ok(name), Ok(value)) = (AsciiMetadataKey::from_bytes(name.as_bytes()), value.parse()) {
            metadata.insert(name, value);
        }
    }
}
