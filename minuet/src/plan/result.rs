//! The table of a plan, for people. The needs are described in [`super::needs`].

use std::fmt::Write as _;

use launcher::screen::figures::{bytes, count, or_dash, rate};
use serde_json::Value;

/// Formats a plan as a table. A dash means that a figure is not known.
pub fn text(plan: &Value) -> String {
    let number = |path: &str| plan.pointer(path).and_then(Value::as_f64);
    let word = |path: &str| plan.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let list = |name: &str| plan[name].as_array().into_iter().flatten();
    let mut text = format!(
        "{}, network {}, {} positions a day\n\n",
        word("/game"),
        word("/network"),
        whole(number("/positions_per_day"))
    );
    let per_second = |path| or_dash(number(path), |value| format!("{}/s", rate(value)));
    let flow = |name: &str| {
        let value = number(&format!("/bytes_per_second/{name}"));
        or_dash(value, |value| format!("{}/s", bytes(value.round() as u64)))
    };
    let of = |path| match word(path) {
        "" => String::new(),
        name => format!(" ({name})"),
    };
    let servers = whole(number("/inference/servers"));
    let servers = match number("/inference/gpus") {
        Some(gpus) => format!("GPUs: {servers}, of which {gpus:.2} are busy"),
        None => format!("servers of one core: {servers}"),
    };
    let trainers = match number("/learner/gpus") {
        Some(gpus) => format!("{gpus:.2} of a GPU"),
        None => cores(number("/learner/cores")),
    };
    let disk = |size: f64| format!("{} a day", bytes(size.round() as u64));
    let rows = [
        ("positions", per_second("/positions_per_second")),
        ("visits", per_second("/visits_per_second")),
        ("evaluations", per_second("/evaluations_per_second")),
        ("training samples", per_second("/samples_per_second")),
        ("", String::new()),
        (
            "actors",
            format!(
                "{}; games in progress: {}, on threads: {}",
                cores(number("/actors/cores")),
                whole(number("/actors/games_in_progress")),
                whole(number("/actors/threads"))
            ),
        ),
        (
            "inference",
            format!(
                "{}; {servers}{}",
                cores(number("/inference/cores")),
                of("/inference/provider")
            ),
        ),
        (
            "replay store",
            format!(
                "{}; stores: {}",
                cores(number("/replay/cores")),
                whole(number("/replay/stores"))
            ),
        ),
        ("learner", format!("{trainers}{}", of("/learner/precision"))),
        ("all", cores(number("/cores"))),
        ("", String::new()),
        ("actors → inference", flow("actors_to_inference")),
        ("inference → actors", flow("inference_to_actors")),
        ("actors → replay", flow("actors_to_replay")),
        ("replay → learner", flow("replay_to_learner")),
        ("models → inference", flow("checkpoints_to_inference")),
        ("disk", or_dash(number("/disk_bytes_per_day"), disk)),
    ];
    for (what, need) in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", format!("{what:<20}{need}").trim_end());
    }
    for limit in list("limits").filter_map(Value::as_str) {
        let _ = writeln!(text, "\nlimit: {limit}");
    }
    text.push_str("\nfrom figures of\n");
    for source in list("sources") {
        let of = |key: &str, otherwise: &str| source[key].as_str().unwrap_or(otherwise).to_owned();
        let bench = of("bench", "");
        let (machine, commit) = (
            of("machine", "a machine without a name"),
            of("commit", "no commit"),
        );
        let command = of("command", &format!("minuet bench {bench}"));
        let _ = writeln!(text, "  {bench:<10} {machine}, {commit}: {command}");
    }
    if list("unknown").next().is_some() {
        text.push_str("\nnot known, and the command that measures it\n");
    }
    for unknown in list("unknown") {
        let of = |key: &str| unknown[key].as_str().unwrap_or_default();
        let _ = writeln!(text, "  {}\n      {}", of("figure"), of("command"));
    }
    text
}

fn whole(value: Option<f64>) -> String {
    or_dash(value, count)
}

fn cores(value: Option<f64>) -> String {
    or_dash(value, |value| match value < 0.01 {
        true => "less than 0.01 cores".into(),
        false => format!("{value:.2} cores"),
    })
}
