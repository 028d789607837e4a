//! Replacement of the module `telemetry` in a build without the feature `otlp`: no span is ever made, and a role that is
//! asked to send spans refuses to start.

use anyhow::bail;
use tonic::{codegen::http, metadata::MetadataMap};
use tracing::Span;
use tracing_subscriber::layer::Identity;

/// Target of the spans that are collected.
pub const TARGET: &str = "minuet::trace";

/// A connection to a collector. No value of this type exists in a build without the feature `otlp`.
#[derive(Clone, Copy, Debug)]
pub enum Telemetry {}

impl Telemetry {
    /// Returns an error, because spans need the feature `otlp`.
    ///
    /// # Errors
    /// Always.
    pub fn new(endpoint: &str, _share: f64, _name: &'static str) -> anyhow::Result<Self> {
        bail!(
            "cannot send spans to {endpoint}: this program was built without OpenTelemetry; build it with `make build FEATURES=otlp` (cargo: --features otlp)"
        )
    }

    /// Returns the layer of a subscriber which sends spans to the collector.
    pub(crate) fn layer(&self) -> Identity {
        match *self {}
    }

    /// Sends the remaining spans.
    pub fn end(self) {
        match self {}
    }
}

/// True if spans are collected: never in this build.
pub fn is_on() -> bool {
    false
}

/// Returns the span of an incoming call: none in this build.
pub(crate) fn call_span(_request: &http::Request<()>) -> Span {
    Span::none()
}

/// Writes the current trace into a call's metadata: nothing in this build.
pub(crate) fn inject(_metadata: &mut MetadataMap) {}

/// Spans of work that many calls share; none is made in this build.
pub mod steps {
    use std::time::Instant;

    /// A sampled call that caused other work. No value of this type exists in a build without the feature `otlp`.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum Cause {}

    impl Cause {
        /// Returns the call that the current task answers: `None` in this build.
        pub fn current() -> Option<Self> {
            None
        }
    }

    /// An attribute of a span; holds nothing in this build.
    #[derive(Clone, Copy, Debug)]
    pub struct KeyValue;

    impl KeyValue {
        /// Makes an attribute from a name and a value, which are dropped in this build.
        pub fn new<V>(_key: &'static str, _value: V) -> Self {
            Self
        }
    }

    /// One step of the work: name, begin and end.
    pub type Step = (&'static str, Instant, Instant);

    /// Records finished work as spans: nothing in this build.
    pub fn record_spans(
        _name: &'static str,
        _steps: &[Step],
        _causes: impl IntoIterator<Item = Cause>,
        _attributes: impl IntoIterator<Item = KeyValue>,
    ) {
    }
}
