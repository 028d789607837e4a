//! Result of the benchmark, as JSON and as text.

use std::fmt::Write as _;

use serde::Serialize;

/// Complete result of the benchmark.
#[derive(Serialize)]
pub struct Report {
    pub bench: &'static str,
    pub game: String,
    pub batch: u16,
    pub rounds: u8,
    /// True if server and clients were pinned to a core each.
    pub is_pinned: bool,
    /// Bytes per position on the wire in requests of 64 positions, HTTP/2 and gRPC framing included.
    pub request_bytes_per_position: f64,
    pub reply_bytes_per_position: f64,
    /// Bytes of a request for one chess position and its reply together.
    pub chess_evaluation_bytes: usize,
    pub figures: Vec<Figures>,
}

/// Figures of one network on one provider under one load; medians over the rounds.
#[derive(Serialize)]
pub struct Figures {
    /// Blocks x filters.
    pub network: String,
    /// Streams x positions per request.
    pub load: String,
    pub asked_for: String,
    pub provider: String,
    /// Positions per second.
    pub direct: f64,
    pub served: f64,
    /// Positions per second of processor time.
    pub direct_per_cpu_second: f64,
    pub served_per_cpu_second: f64,
    /// Served / direct, by wall clock.
    pub ratio: f64,
    /// Served / direct, per second of processor time; other work on the machine disturbs it less than `ratio`.
    pub cpu_ratio: f64,
    /// Overhead of the server in microseconds of processor time per position, from `cpu_ratio`. For a model that takes
    /// hundreds of microseconds, 1 % of noise is more than the whole overhead.
    pub overhead_us_per_position: f64,
    /// Processor time of all threads except the one that runs the model, in microseconds per position.
    pub other_threads_us_per_position: f64,
    /// Share of time in which the device (the GPU, or the thread that runs the model) computed, 0 to 1; `None` if not known.
    pub device_busy_share: Option<f64>,
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// Figures of the overload test.
    pub overload: Option<Goodput>,
}

/// Figures under overload. Rates are positions per second.
#[derive(Serialize)]
pub struct Goodput {
    pub offered: f64,
    pub answered: f64,
    pub refused_share: f64,
    /// Rate answered under overload / greatest rate answered to the same clients.
    pub ratio: f64,
    pub cpu_ratio: f64,
    /// Median latency of answered requests, in milliseconds.
    pub p50_ms: f64,
    pub p99_ms: f64,
}

/// Formats the report as text.
pub fn text(report: &Report) -> String {
    let mut text = format!(
        "{}, batches of {}{}\n",
        report.game,
        report.batch,
        if report.is_pinned {
            ""
        } else {
            " (server and clients share a core)"
        },
    );
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "bytes on the wire for each position: {:.1} of the request, {:.1} of the reply; a single chess position takes {} in all",
        report.request_bytes_per_position, report.reply_bytes_per_position, report.chess_evaluation_bytes
    );
    let _ = writeln!(
        text,
        "{:<8} {:<14} {:<7} {:>9} {:>9} {:>6} {:>9} {:>9} {:>6} {:>8} {:>8}   {:>9} {:>9}",
        "network",
        "provider",
        "load",
        "direct/s",
        "served/s",
        "ratio",
        "cpu ratio",
        "other µs",
        "busy",
        "p50 ms",
        "p99 ms",
        "goodput",
        "p99 ms"
    );
    for figures in &report.figures {
        let busy = figures
            .device_busy_share
            .map_or_else(|| "-".into(), |share| format!("{:.0} %", 100.0 * share));
        let _ = write!(
            text,
            "{:<8} {:<14} {:<7} {:>9.0} {:>9.0} {:>6.3} {:>9.3} {:>9.2} {:>6} {:>8.2} {:>8.2}",
            figures.network,
            figures.provider,
            figures.load,
            figures.direct,
            figures.served,
            figures.ratio,
            figures.cpu_ratio,
            figures.other_threads_us_per_position,
            busy,
            figures.p50_ms,
            figures.p99_ms
        );
        if let Some(overload) = &figures.overload {
            let _ = write!(text, "   {:>9.3} {:>9.2}", overload.ratio, overload.p99_ms);
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busy_share_has_a_column_and_a_field() {
        let figures = |device_busy_share| Figures {
            network: "6x64".into(),
            load: "4x64".into(),
            asked_for: "cuda".into(),
            provider: "cuda".into(),
            direct: 2.0,
            served: 1.0,
            direct_per_cpu_second: 2.0,
            served_per_cpu_second: 1.0,
            ratio: 0.5,
            cpu_ratio: 0.5,
            overhead_us_per_position: 1.0,
            other_threads_us_per_position: 1.0,
            device_busy_share,
            p50_ms: 1.0,
            p99_ms: 2.0,
            overload: None,
        };
        let report = Report {
            bench: "inference",
            game: "chess".into(),
            batch: 64,
            rounds: 1,
            is_pinned: true,
            request_bytes_per_position: 1.0,
            reply_bytes_per_position: 1.0,
            chess_evaluation_bytes: 2,
            figures: vec![figures(Some(0.934)), figures(None)],
        };
        let text = text(&report);
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert!(lines[2].contains(&"busy"), "{text}");
        assert_eq!(lines[3][8..10], ["93", "%"], "{text}");
        assert_eq!(lines[4][8], "-", "{text}");
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["figures"][0]["device_busy_share"], 0.934);
    }
}
