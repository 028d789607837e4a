//! Result of the benchmark, as JSON and as text.

use std::fmt::Write as _;

use serde::Serialize;

use crate::harness::{compared::Compared, onnxruntime};

/// Complete result of the benchmark.
#[derive(Serialize)]
pub struct Report {
    pub bench: &'static str,
    pub game: String,
    pub batch: u16,
    pub rounds: u8,
    /// True if server and clients were pinned to a core each.
    pub is_pinned: bool,
    /// Mean bytes per position in requests of 64 positions, framing included.
    pub request_bytes_per_position: f64,
    pub reply_bytes_per_position: f64,
    pub figures: Vec<Figures>,
}

/// Figures of one network on one provider under one load; medians over the rounds. Rates are positions per second.
#[derive(Serialize)]
pub struct Figures {
    /// Blocks x filters.
    pub network: String,
    /// Streams x positions per request.
    pub load: String,
    /// Positions in each batch of the direct calls: all that the load has in flight, at most the largest batch.
    pub direct_batch: usize,
    /// A bare gRPC server under the same load.
    pub bare: Bare,
    pub asked_for: String,
    pub provider: String,
    /// Size of the model's file.
    pub model_bytes: usize,
    /// Rate served to streams that have one request in flight each.
    pub served: f64,
    pub served_per_cpu_second: f64,
    /// Comparison with direct calls by Minuet's loader.
    pub direct: Compared,
    /// Comparison with ONNX Runtime's Python package.
    pub onnxruntime: onnxruntime::Figures,
    /// Overhead of the server in microseconds of processor time per position, from `direct.cpu_ratio`. For a model that takes
    /// hundreds of microseconds, 1 % of noise is more than the whole overhead.
    pub overhead_us_per_position: f64,
    /// Processor time of all threads except the one that runs the model, in microseconds per position.
    pub other_threads_us_per_position: f64,
    /// Share of time in which the device (the GPU, or the thread that runs the model) computed, 0 to 1; `None` if not known.
    pub device_busy_share: Option<f64>,
    pub latency: Latency,
    /// Figures of open loads.
    pub open: Option<Open>,
}

/// Figures of a gRPC server that answers at once and without a model.
#[derive(Serialize)]
pub struct Bare {
    /// Positions per second.
    pub served: f64,
    /// Processor time of the server, in microseconds per position.
    pub us_per_position: f64,
    pub latency: Latency,
}

/// Latency of answered requests.
#[derive(Clone, Copy, Serialize)]
pub struct Latency {
    pub p50_ms: f64,
    pub p99_ms: f64,
}

/// Figures of loads that are offered on a schedule. Latencies begin at the time on the schedule.
#[derive(Serialize)]
pub struct Open {
    /// Greatest offered rate that the server keeps up with.
    pub peak: f64,
    /// Latency at that rate.
    pub latency: Latency,
    pub overload: Vec<Overload>,
    pub swap: Swap,
}

/// Figures of a load above the highest rate.
#[derive(Serialize)]
pub struct Overload {
    /// Intended load, as a multiple of the highest rate.
    pub times: f64,
    /// Rate that the clients reached.
    pub offered: f64,
    pub answered: f64,
    pub refused_share: f64,
    /// Rate answered under overload / rate answered at the peak.
    pub ratio: f64,
    pub latency: Latency,
}

/// Figures of a load while the server loads and takes over a new model, at half of the highest rate. No request failed.
#[derive(Serialize)]
pub struct Swap {
    pub offered: f64,
    /// Positions refused.
    pub refused: u64,
    /// Time from the publication of the new model to its first answer, in seconds.
    pub seconds: f64,
    pub latency: Latency,
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
        "bytes on the wire for each position: {:.1} of the request, {:.1} of the reply",
        report.request_bytes_per_position, report.reply_bytes_per_position
    );
    let _ = writeln!(
        text,
        "{:<8} {:<14} {:<7} {:>9} {:>9} {:>6} {:>9} {:>9} {:>6} {:>9} {:>6} {:>8} {:>8} {:>9} {:>9}",
        "network",
        "provider",
        "load",
        "served/s",
        "direct/s",
        "ratio",
        "cpu ratio",
        "python/s",
        "ratio",
        "other µs",
        "busy",
        "p50 ms",
        "p99 ms",
        "bare µs",
        "p50 ms"
    );
    for figures in &report.figures {
        let busy = figures
            .device_busy_share
            .map_or_else(|| "-".into(), |share| format!("{:.0} %", 100.0 * share));
        let python = figures.onnxruntime.compared.as_ref();
        let (python, python_ratio) = python.map_or(("-".into(), "-".into()), |found| {
            (format!("{:.0}", found.per_second), format!("{:.3}", found.ratio))
        });
        let _ = writeln!(
            text,
            "{:<8} {:<14} {:<7} {:>9.0} {:>9.0} {:>6.3} {:>9.3} {python:>9} {python_ratio:>6} {:>9.2} {:>6} {:>8.2} {:>8.2} {:>9.2} {:>9.2}",
            figures.network,
            figures.provider,
            figures.load,
            figures.served,
            figures.direct.per_second,
            figures.direct.ratio,
            figures.direct.cpu_ratio,
            figures.other_threads_us_per_position,
            busy,
            figures.latency.p50_ms,
            figures.latency.p99_ms,
            figures.bare.us_per_position,
            figures.bare.latency.p50_ms
        );
        if let Some(reason) = &figures.onnxruntime.missing {
            let _ = writeln!(
                text,
                "  not compared with ONNX Runtime's Python package: {reason}"
            );
        }
        if let Some(open) = &figures.open {
            write_open(&mut text, open);
        }
    }
    text
}

fn write_open(text: &mut String, open: &Open) {
    let latency = |Latency { p50_ms, p99_ms }: Latency| format!("p50 {p50_ms:.2} ms, p99 {p99_ms:.2} ms");
    let _ = writeln!(
        text,
        "  keeps up with {:.0}/s, {}",
        open.peak,
        latency(open.latency)
    );
    for found in &open.overload {
        let _ = writeln!(
            text,
            "  at {} times that: {:.0}/s offered, {:.3} of it answered, {:.0} % refused, {}",
            found.times,
            found.offered,
            found.ratio,
            100.0 * found.refused_share,
            latency(found.latency)
        );
    }
    let swap = &open.swap;
    let _ = writeln!(
        text,
        "  during a swap of the model ({:.1} s, {:.0}/s): {} refused, {}",
        swap.seconds,
        swap.offered,
        swap.refused,
        latency(swap.latency)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(device_busy_share: Option<f64>) -> Figures {
        let latency = Latency {
            p50_ms: 1.0,
            p99_ms: 2.0,
        };
        Figures {
            network: "6x64".into(),
            load: "4x64".into(),
            direct_batch: 64,
            bare: Bare {
                served: 3.0,
                us_per_position: 1.0,
                latency,
            },
            asked_for: "cuda".into(),
            provider: "cuda".into(),
            model_bytes: 1_300_000,
            served: 1.0,
            served_per_cpu_second: 1.0,
            direct: Compared {
                per_second: 2.0,
                per_cpu_second: 2.0,
                ratio: 0.5,
                cpu_ratio: 0.5,
            },
            onnxruntime: onnxruntime::Figures {
                version: None,
                compared: None,
                missing: Some("no wheel".into()),
            },
            overhead_us_per_position: 1.0,
            other_threads_us_per_position: 1.0,
            device_busy_share,
            latency,
            open: Some(Open {
                peak: 1000.0,
                latency,
                overload: vec![Overload {
                    times: 2.0,
                    offered: 1990.0,
                    answered: 970.0,
                    refused_share: 0.5,
                    ratio: 0.97,
                    latency,
                }],
                swap: Swap {
                    offered: 500.0,
                    refused: 0,
                    seconds: 1.5,
                    latency,
                },
            }),
        }
    }

    #[test]
    fn the_text_and_the_json_have_all_figures() {
        let report = Report {
            bench: "inference",
            game: "chess".into(),
            batch: 64,
            rounds: 1,
            is_pinned: true,
            request_bytes_per_position: 1.0,
            reply_bytes_per_position: 1.0,
            figures: vec![figures(Some(0.934)), figures(None)],
        };
        let text = text(&report);
        for part in [
            " 93 % ",
            "not compared with ONNX Runtime's Python package: no wheel",
            "keeps up with 1000/s, p50 1.00 ms, p99 2.00 ms",
            "at 2 times that: 1990/s offered, 0.970 of it answered, 50 % refused",
            "during a swap of the model (1.5 s, 500/s): 0 refused",
        ] {
            assert!(text.contains(part), "{part} is missing from:\n{text}");
        }
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["figures"][0]["device_busy_share"], 0.934);
        assert!(json["figures"][0]["onnxruntime"]["compared"].is_null());
    }
}
