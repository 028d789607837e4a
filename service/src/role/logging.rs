//! Writes log lines, panics included, to stderr, and sends spans to a collector if one is named.

use std::{backtrace::Backtrace, io::IsTerminal, panic};

use tracing_subscriber::{
    Layer as _, filter::Targets, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

use super::LogFormat;
use crate::{
    errors::is_contained,
    telemetry::{TARGET, Telemetry},
};

/// Environment variable that filters log lines: levels by target, separated by commas, for example `info,h2=warn`.
const FILTER_VARIABLE: &str = "MINUET_LOG";

/// Returns the filter used where the environment sets none: level info, without spans.
fn default_filter() -> Targets {
    use tracing::{Level, level_filters::LevelFilter};

    Targets::new()
        .with_default(Level::INFO)
        .with_target(TARGET, LevelFilter::OFF)
        // Each connection that it ends because its peer misbehaves is a warning, so a peer could fill a disk.
        .with_target("h2", Level::ERROR)
        .with_target("opentelemetry_sdk", Level::WARN)
        .with_target("opentelemetry_otlp", Level::WARN)
}

/// Starts logging. From then on a panic in any thread is logged and ends the process with exit code 1, because a role that has
/// lost a thread would only appear to work. Panics inside [`crate::contain`] do not end the process.
pub(super) fn start(format: LogFormat, telemetry: Option<&Telemetry>) {
    let chosen = std::env::var(FILTER_VARIABLE).ok();
    let (filter, misread) = match chosen.as_ref().map(|chosen| chosen.parse::<Targets>()) {
        None => (default_filter(), None),
        Some(Ok(filter)) => (filter, None),
        Some(Err(error)) => (default_filter(), Some(error)),
    };
    let lines = fmt::layer()
        .with_writer(std::io::stderr)
        // A log that cannot be written must not become a panic.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal());
    let lines = match format {
        LogFormat::Pretty => lines.with_filter(filter).boxed(),
        LogFormat::Json => lines.json().with_filter(filter).boxed(),
    };
    let spans = telemetry.map(|telemetry| telemetry.layer());
    // An error means that logging was started before; the first settings stay in use.
    let _ = tracing_subscriber::registry().with(lines).with(spans).try_init();
    if let Some(error) = misread {
        tracing::warn!(filter = chosen, %error, "{FILTER_VARIABLE} cannot be used; lines of level info are logged");
    }
    panic::set_hook(Box::new(|what| {
        let backtrace = Backtrace::capture();
        tracing::error!("{what}\n{backtrace}");
        if !is_contained() {
            #[expect(
                clippy::disallowed_methods,
                reason = "a panic outside of a contained task leaves no usable state"
            )]
            std::process::exit(1);
        }
    }));
}
