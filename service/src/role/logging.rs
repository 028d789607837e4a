//! Log lines to stderr, and panics among them.

use std::{backtrace::Backtrace, io::IsTerminal, panic};

use tracing_subscriber::{EnvFilter, fmt};

use super::LogFormat;
use crate::contain::is_contained;

/// Filters log lines, in the syntax of tracing's `EnvFilter`.
const FILTER_VARIABLE: &str = "MINUET_LOG";
/// What is logged otherwise. A reader that gives up on a metrics page is no news.
const FILTER: &str = "info,metrics_exporter_prometheus=error";

/// Starts logging; from here on a panic in any thread is logged and ends the process with exit code 1, since a
/// role that lost a thread would go on only in appearance. (But for those that are contained: [`crate::contain`].)
pub(super) fn start(format: LogFormat) {
    let filter = EnvFilter::try_from_env(FILTER_VARIABLE).unwrap_or_else(|_| EnvFilter::new(FILTER));
    let lines = fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // A log that cannot be written must not become a panic.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal());
    // An error means that logging was started before: then that one stays.
    let _ = match format {
        LogFormat::Pretty => lines.try_init(),
        LogFormat::Json => lines.json().try_init(),
    };
    panic::set_hook(Box::new(|what| {
        let backtrace = Backtrace::capture();
        tracing::error!("{what}\n{backtrace}");
        if !is_contained() {
            std::process::exit(1);
        }
    }));
}
