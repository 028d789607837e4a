//! Outcomes as text for people, and as curves.

use std::fmt::Write as _;

use launcher::screen::figures::{or_dash, rate};

use super::{
    outcome::Outcome,
    plot::{Curve, Plot},
};

/// Formats outcomes as a table. A dash stands for what was left out because it was not measured.
pub fn text(outcomes: &[Outcome]) -> String {
    let mut text = format!(
        "{:>7} {:>7} {:>10} {:>11} {:>11} {:>11} {:>9} {:>9} {:>9} {:>7} {:>7}  {}\n",
        "actors",
        "servers",
        "latency ms",
        "positions/s",
        "evaluated/s",
        "stored/s",
        "trained/s",
        "p50 ms",
        "p99 ms",
        "batch",
        "device",
        "no time left",
    );
    for outcome in outcomes {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:>7} {:>7} {:>10} {:>11} {:>11} {:>11} {:>9} {:>9.2} {:>9.2} {:>7.1} {:>6.0}%  {}",
            outcome.actors,
            outcome.servers,
            outcome.latency_ms,
            rate(outcome.positions_per_second),
            rate(outcome.evaluations_per_second),
            or_dash(outcome.stored_per_second, rate),
            or_dash(outcome.samples_per_second, rate),
            outcome.request_p50_ms,
            outcome.request_p99_ms,
            outcome.positions_per_batch,
            100.0 * outcome.device_busy,
            if outcome.saturated.is_empty() {
                "–".into()
            } else {
                outcome.saturated.join(", ")
            },
        );
    }
    text
}

/// Curves of the positions a second over the actors: one for each number of servers and each latency.
pub fn by_actors(title: String, outcomes: &[Outcome]) -> Plot {
    let mut curves: Vec<Curve> = Vec::new();
    let has_latencies = outcomes
        .iter()
        .any(|other| other.latency_ms != outcomes[0].latency_ms);
    for outcome in outcomes {
        let servers = match outcome.servers {
            1 => "1 server".into(),
            many => format!("{many} servers"),
        };
        let name = if has_latencies {
            format!("{servers}, {} ms", outcome.latency_ms)
        } else {
            servers
        };
        let point = [outcome.actors as f64, outcome.positions_per_second];
        match curves.iter_mut().find(|curve| curve.name == name) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve {
                name,
                points: vec![point],
            }),
        }
    }
    Plot {
        title,
        across: "actors, one thread each",
        up: "positions a second",
        is_logarithmic: true,
        curves,
    }
}

/// Curves of the rates over the time.
pub fn by_time(title: String, outcome: &Outcome) -> Plot {
    let curve = |name: &str, of: fn(&super::outcome::Interval) -> f64| Curve {
        name: name.into(),
        points: outcome
            .timeline
            .iter()
            .map(|interval| [interval.until, of(interval)])
            .collect(),
    };
    let mut curves = vec![curve("positions played", |interval| interval.positions)];
    if outcome.stored_per_second.is_some() {
        curves.push(curve("positions stored", |interval| interval.stored));
    }
    if outcome.samples_per_second.is_some() {
        curves.push(curve("samples trained on", |interval| interval.samples));
    }
    Plot {
        title,
        across: "seconds",
        up: "a second",
        is_logarithmic: false,
        curves,
    }
}
