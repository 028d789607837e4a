//! Spans of work shared by many calls, such as a batch, which crosses threads and belongs to no single caller's trace.
//!
//! Such work begins a trace of its own, which is collected with the probability `--trace-share`, and links to the calls that
//! caused it. Its spans are made after it ends, from recorded instants, so it costs nothing if nobody collects.

use std::time::{Duration, Instant, SystemTime};

use opentelemetry::{
    Context,
    trace::{Link, Span as _, SpanBuilder, SpanContext, TraceContextExt as _, Tracer as _},
};
pub use opentelemetry::{KeyValue, Value};
use parking_lot::RwLock;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use opentelemetry_sdk::trace::SdkTracer;

/// Largest number of links of a span; further links are left out.
const MOST_LINKS: usize = 128;

/// Tracer of these spans; `None` unless spans are collected.
pub(super) static TRACER: RwLock<Option<SdkTracer>> = RwLock::new(None);

/// A collected call that caused other work.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause(SpanContext);

impl Cause {
    /// Returns the call that the current task answers; `None` if it is not collected.
    pub fn current() -> Option<Self> {
        if !super::is_on() {
            return None;
        }
        let context = Span::current().context();
        let span = context.span().span_context().clone();
        (span.is_valid() && span.is_sampled()).then_some(Self(span))
    }
}

/// One step of the work: name, begin and end.
pub type Step = (&'static str, Instant, Instant);

/// Records finished work called `name` as spans: one from the beginning of the first step to the end of the last, with a child
/// span for each step and a link to each distinct call in `causes`.
pub fn record_spans(
    name: &'static str,
    steps: &[Step],
    causes: impl IntoIterator<Item = Cause>,
    attributes: impl IntoIterator<Item = KeyValue>,
) {
    let (Some(tracer), Some(&(_, began, _)), Some(&(_, _, ended))) =
        (TRACER.read().clone(), steps.first(), steps.last())
    else {
        return;
    };
    // Both clocks are read together once, so that consecutive steps stay consecutive in the collector.
    let (now, clock) = (Instant::now(), SystemTime::now());
    let at = |moment: Instant| {
        let ago: Duration = now.saturating_duration_since(moment);
        clock.checked_sub(ago).unwrap_or(SystemTime::UNIX_EPOCH)
    };
    let mut links: Vec<Link> = Vec::new();
    for Cause(cause) in causes {
        let is_new = !links.iter().any(|link| link.span_context == cause);
        if is_new && links.len() < MOST_LINKS {
            links.push(Link::with_context(cause));
        }
    }
    let whole = SpanBuilder::from_name(name)
        .with_start_time(at(began))
        .with_links(links)
        .with_attributes(attributes);
    let context = Context::new().with_span(tracer.build_with_context(whole, &Context::new()));
    if context.span().span_context().is_sampled() {
        for &(name, began, ended) in steps {
            let step = SpanBuilder::from_name(name).with_start_time(at(began));
            tracer
                .build_with_context(step, &context)
                .end_with_timestamp(at(ended));
        }
    }
    context.span().end_with_timestamp(at(ended));
}
