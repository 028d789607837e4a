//! Log lines to stderr, panics among them, and spans to a collector where one is named.

use std::{backtrace::Backtrace, io::IsTerminal, panic};

use tracing_subscriber::{
    EnvFilter, Layer as _, filter::Targets, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

use super::LogFormat;
use crate::{
    contain::is_contained,
    telemetry::{TARGET, Telemetry},
};

/// Filters log lines, in the syntax of tracing's `EnvFilter`.
const FILTER_VARIABLE: &str = "MINUET_LOG";
/// What is logged otherwise. A reader that gives up on a metrics page is no news; spans are for collectors.
const FILTER: &str =
    "info,metrics_exporter_prometheus=error,minuet::trace=off,opentelemetry_sdk=warn,opentelemetry_otlp=warn";

/// Starts logging; from here on a panic in any thread is logged and ends the process with exit code 1, since a
/// role that lost a thread would go on only in appearance. (But for those that are contained: [`crate::contain`].)
pub(super) fn start(format: LogFormat, telemetry: Option<&Telemetry>) {
    let filter = EnvFilter::try_from_env(FILTER_VARIABLE).unwrap_or_else(|_| EnvFilter::new(FILTER));
    let lines = fmt::layer()
        .with_writer(std::io::stderr)
        // A log that cannot be written must not become a panic.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal());
    let lines = match format {
        LogFormat::Pretty => lines.with_filter(filter).boxed(),
        LogFormat::Json => lines.json().with_filter(filter).boxed(),
    };
    let spans = telemetry.map(|telemetry| {
        tracing_opentelemetry::layer()
            .with_tracer(telemetry.tracer())
            .with_location(false)
            .with_threads(false)
            .with_filter(Targets::new().with_target(TARGET, tracing::Level::INFO))
    });
    // An error means that logging was started before: then that one stays.
    let _ = tracing_subscriber::registry().with(lines).with(spans).try_init();
    panic::set_hook(Box::new(|what| {
        let backtrace = Backtrace::capture();
        tracing::error!("{what}\n{backtrace}");
        if !is_contained() {
            std::process::exit(1);
        }
    }));
}
