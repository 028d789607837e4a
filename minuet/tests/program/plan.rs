//! `minuet plan` against this machine: a plan from figures that were measured one by one predicts a whole self-play.

use std::fs;

use serde_json::Value;

use crate::support::program::{fails, minuet, printed, printed_json};

/// Largest relative difference between the prediction and the measurement.
const WITHIN: f64 = 0.15;
/// Number of times that everything is measured anew, because other work disturbs single measurements.
const ATTEMPTS: usize = 4;

/// One thread plays, one evaluates, on ONNX Runtime's own CPU provider.
fn selfplay() -> Value {
    printed_json(&mut minuet(
        "bench selfplay --blocks 2 --filters 32 --warm-up 2 --seconds 6 --json \
         --set inference.provider=cpu --set inference.threads=1 --set actor.threads=1",
    ))
}

fn inference() -> Value {
    printed_json(&mut minuet(
        "bench inference --networks 2x32 --providers cpu --loads 3x64 --batch 128 --overload 0 \
         --rounds 3 --seconds 1 --json",
    ))
}

fn number(object: &Value, path: &str) -> f64 {
    object
        .pointer(path)
        .and_then(Value::as_f64)
        .unwrap_or_else(|| panic!("no {path} in {object}"))
}

/// Ratios of predicted to measured figures. The plan gets the positions of the measured self-play, and told nothing else
/// about it. Its processor time is compared, so the speed of the machine and other work on it have no part in the ratios.
fn ratios(figures: &[Value], whole: &Value) -> Vec<(&'static str, f64)> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("figures.jsonl");
    let lines: Vec<String> = figures.iter().map(Value::to_string).collect();
    fs::write(&file, lines.join("\n")).unwrap();
    let positions = number(whole, "/positions_per_second");
    let positions_per_day = (positions * 86_400.0).round();
    let words = format!("--network 2x32 --json --positions-per-day {positions_per_day} --measured");
    let plan = printed_json(minuet(&format!("plan --game paco-sako {words}")).arg(&file));
    let [actor, inference] = ["/actors/cores", "/inference/cores"].map(|path| number(&plan, path));
    let [actor_used, inference_used] = ["/actor_cores", "/inference_cores"].map(|path| number(whole, path));
    // Positions and visits that the plan promises for the processor time that self-play has used.
    let promised = (actor_used + inference_used) / (actor + inference);
    let share = |part: f64, other: f64| part / (part + other);
    vec![
        ("positions/s", promised),
        (
            "visits/s",
            promised * number(&plan, "/visits_per_second") / number(whole, "/visits_per_second"),
        ),
        (
            "share of the actor",
            share(actor, inference) / share(actor_used, inference_used),
        ),
        (
            "share of the server",
            share(inference, actor) / share(inference_used, actor_used),
        ),
    ]
}

#[test]
#[ignore = "measures this machine for half a minute, so other work on it can make it fail"]
fn a_plan_predicts_a_whole_self_play() {
    let mut seen = Vec::new();
    for _ in 0..ATTEMPTS {
        let figures = [selfplay(), inference()];
        let ratios = ratios(&figures, &selfplay());
        println!("{ratios:.3?}");
        if ratios
            .iter()
            .all(|(_, ratio)| (1.0 - WITHIN..=1.0 + WITHIN).contains(ratio))
        {
            return;
        }
        seen.push(ratios);
    }
    panic!("predicted / measured: {seen:.3?}");
}

#[test]
fn arguments_that_cannot_be_used_are_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let damaged = folder.path().join("figures.jsonl");
    fs::write(&damaged, "{\"bench\": \"selfplay\"").unwrap();
    let usual = "plan --game paco-sako --positions-per-day 1000000";
    for (words, code, said) in [
        ("plan --game paco-saco --positions-per-day 5", 2, "paco-sako"),
        (
            "plan --game chess --positions-per-day 0",
            2,
            "--positions-per-day",
        ),
        ("plan --game chess", 2, "--positions-per-day"),
        (&format!("{usual} --network 4x65"), 2, "paco-sako 4x64"),
        (
            &format!("{usual} --measured /nowhere/figures"),
            1,
            "cannot read /nowhere/figures",
        ),
    ] {
        fails(&mut minuet(words), code, said);
    }
    let said = "object 1 is not a result of `minuet bench";
    fails(minuet(usual).arg("--measured").arg(damaged), 1, said);
}

/// The table shows the needs of the object, and a dash for what is not known.
#[test]
fn table_and_object_are_one_plan() {
    let usual = "plan --game paco-sako --positions-per-day 10000000";
    let plan = printed_json(minuet(usual).arg("--json"));
    let text = printed(&mut minuet(usual));
    let line = |what: &str| {
        text.lines()
            .find(|line| line.starts_with(what))
            .unwrap_or_else(|| panic!("{what}: {text}"))
    };
    for (role, path) in [
        ("actors ", "/actors/cores"),
        ("inference ", "/inference/cores"),
        ("all ", "/cores"),
    ] {
        assert!(line(role).contains(&format!("{:.2} cores", number(&plan, path))));
    }
    assert!(line("paco-sako").contains("10,000,000 positions a day"));
    for unknown in plan["unknown"].as_array().unwrap() {
        for key in ["figure", "command"] {
            assert!(text.contains(unknown[key].as_str().unwrap()));
        }
    }
}
