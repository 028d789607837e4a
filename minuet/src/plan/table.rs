//! A plan as text for people.

use std::fmt::Write as _;

use launcher::screen::figures::{bytes, count, or_dash, rate};

use super::result::Plan;

/// Formats a plan as a table. A dash means that a figure is not known.
pub fn text(plan: &Plan) -> String {
    let mut text = format!(
        "{}, network {}, {} positions a day\n\n",
        plan.game,
        plan.network,
        count(plan.positions_per_day as f64)
    );
    let per_second = |value| or_dash(value, |value| format!("{}/s", rate(value)));
    let cores = |value| {
        or_dash(value, |value: f64| {
            if value < 0.01 {
                "less than 0.01 cores".into()
            } else {
                format!("{value:.2} cores")
            }
        })
    };
    let number = |value| or_dash(value, |value: u64| count(value as f64));
    let flow = |value| or_dash(value, |value: f64| format!("{}/s", bytes(value.round() as u64)));
    let (inference, learner) = (&plan.inference, &plan.learner);
    let of = |name: &Option<String>| {
        name.as_ref()
            .map_or_else(String::new, |name| format!(" ({name})"))
    };
    let servers = match inference.gpus {
        Some(gpus) => format!("GPUs: {}, of which {gpus:.2} are busy", number(inference.servers)),
        None => format!("servers of one core: {}", number(inference.servers)),
    };
    let rows = [
        ("positions", per_second(Some(plan.positions_per_second))),
        ("visits", per_second(plan.visits_per_second)),
        ("evaluations", per_second(plan.evaluations_per_second)),
        ("training samples", per_second(Some(plan.samples_per_second))),
        ("", String::new()),
        (
            "actors",
            format!(
                "{}; games in progress: {}, on threads: {}",
                cores(plan.actors.cores),
                number(plan.actors.games_in_progress),
                number(plan.actors.threads)
            ),
        ),
        (
            "inference",
            format!("{}; {servers}{}", cores(inference.cores), of(&inference.provider)),
        ),
        (
            "replay store",
            format!("{}; stores: {}", cores(plan.replay.cores), plan.replay.stores),
        ),
        (
            "learner",
            match learner.gpus {
                Some(gpus) => format!("{gpus:.2} of a GPU{}", of(&learner.precision)),
                None => format!("{}{}", cores(learner.cores), of(&learner.precision)),
            },
        ),
        ("all", cores(plan.cores)),
        ("", String::new()),
        (
            "actors → inference",
            flow(plan.bytes_per_second.actors_to_inference),
        ),
        (
            "inference → actors",
            flow(plan.bytes_per_second.inference_to_actors),
        ),
        ("actors → replay", flow(plan.bytes_per_second.actors_to_replay)),
        ("replay → learner", flow(plan.bytes_per_second.replay_to_learner)),
        (
            "models → inference",
            flow(plan.bytes_per_second.checkpoints_to_inference),
        ),
        (
            "disk",
            or_dash(plan.disk_bytes_per_day, |size| {
                format!("{} a day", bytes(size.round() as u64))
            }),
        ),
    ];
    for (what, need) in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", format!("{what:<20}{need}").trim_end());
    }
    for limit in &plan.limits {
        let _ = writeln!(text, "\nlimit: {limit}");
    }
    text.push_str("\nfrom figures of\n");
    for source in &plan.sources {
        let _ = writeln!(text, "  {source}");
    }
    if !plan.unknown.is_empty() {
        text.push_str("\nnot known, and the command that measures it\n");
    }
    for unknown in &plan.unknown {
        let _ = writeln!(text, "  {}\n      {}", unknown.figure, unknown.command);
    }
    text
}
