//! Spans of what many calls share: a batch, say, which crosses threads and belongs to no single caller's trace.
//!
//! Such a thing begins a trace of its own, of which `--trace-share` draws its share, and links to the calls that caused it.
//! It is told when it is over, with the moments that were noted on its way, so that nothing is done where nobody collects.

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

/// Links that one span may have; what is linked beyond them is left out.
const MOST_LINKS: usize = 128;

/// What makes such spans, while spans are collected.
pub(super) static TRACER: RwLock<Option<SdkTracer>> = RwLock::new(None);

/// A call that is collected, for others to say that it caused them.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause(SpanContext);

impl Cause {
    /// The call that this task answers now; `None` where it is not collected.
    pub fn current() -> Option<Self> {
        if !super::is_on() {
            return None;
        }
        let context = Span::current().context();
        let span = context.span().span_context().clone();
        (span.is_valid() && span.is_sampled()).then_some(Self(span))
    }
}

/// One step: what it is called, when it began and when it ended.
pub type Step = (&'static str, Instant, Instant);

/// Tells of something called `name` that is over and was done in `steps`: a span from the beginning of the first to the end
/// of the last, a span below it for each, and a link to each of `causes`, of which equal ones count once.
pub fn tell(
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
    // The two clocks are read together once, so that steps that follow each other do so in the collector too.
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
