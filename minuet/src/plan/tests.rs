//! Plans of figures so round that every need can be checked by hand.

use serde_json::Value;

use super::{measured::Measured, needs::Demand};

/// 100 visits a position, a quarter of them evaluated, 20 µs a visit.
const SELFPLAY: &str = r#"{"bench": "selfplay", "game": "chess", "network": "random weights 4x64", "leaves": 4, "actor_threads": 2,
    "games_in_progress": 128, "visits_per_second": 5000, "fresh_evaluations_per_second": 1250, "positions_per_second": 50,
    "rows_per_request": 40, "actor_us_per_visit": 20, "machine": "a desk", "command": "minuet bench selfplay", "commit": "abc"}"#;
/// The faster provider evaluates 1,250 for each second of processor time in requests of 64, 600 in single ones.
const INFERENCE: &str = r#"{"bench": "inference", "game": "chess", "request_bytes_per_position": 70, "reply_bytes_per_position": 30,
    "figures": [
        {"network": "4x64", "load": "4x64", "provider": "cpu", "served": 900, "served_per_cpu_second": 900},
        {"network": "4x64", "load": "64x1", "provider": "openvino-bf16", "served": 500, "served_per_cpu_second": 600},
        {"network": "4x64", "load": "4x64", "provider": "openvino-bf16", "served": 1000, "served_per_cpu_second": 1250,
         "model_bytes": 1000000},
        {"network": "9x9", "load": "4x64", "provider": "cuda", "served": 10000, "served_per_cpu_second": 50000}
    ]}"#;
const REPLAY: &str = r#"{"bench": "replay", "game": "chess", "appended": {"per_cpu_second": 10000},
    "sampled": {"per_cpu_second": 40000}, "message_bytes": 80, "disk_bytes": 50, "batch_bytes": 400}"#;
const TRAINING: &str = r#"{"bench": "training", "game": "chess", "network": "4x64", "figures": [
        {"precision": "f32", "samples": 1000, "samples_per_cpu_second": 1100},
        {"precision": "bf16", "samples": 2000, "samples_per_cpu_second": 2500}
    ]}"#;

fn measured(objects: &[&str]) -> anyhow::Result<Measured> {
    Measured::parse(objects.join("\n").as_bytes(), "figures.jsonl")
}

/// A hundred positions and two hundred samples a second.
fn demand(network: &str) -> Demand {
    Demand {
        game: "chess".into(),
        network: network.into(),
        positions_per_day: 8_640_000,
        samples_per_position: 2.0,
        visits: 100,
        batch: 256,
        checkpoint_steps: 50,
    }
}

fn plan(objects: &[&str]) -> Value {
    demand("4x64").plan(&measured(objects).unwrap()).unwrap()
}

#[track_caller]
fn is(found: &Value, expected: f64) {
    let found = found.as_f64().expect("a figure");
    assert!(
        (found - expected).abs() < 1e-9 * expected.max(1.0),
        "{found} instead of {expected}"
    );
}

#[test]
fn every_need_is_a_rate_times_a_cost() {
    let plan = plan(&[SELFPLAY, INFERENCE, REPLAY, TRAINING]);
    is(&plan["positions_per_second"], 100.0);
    is(&plan["visits_per_second"], 10_000.0);
    is(&plan["evaluations_per_second"], 2_500.0);
    is(&plan["samples_per_second"], 200.0);
    // 10,000 visits of 20 µs.
    is(&plan["actors"]["cores"], 0.2);
    assert_eq!(plan["inference"]["servers"], 2);
    is(&plan["inference"]["cores"], 2.0);
    assert_eq!(plan["inference"]["gpus"], Value::Null);
    // Two servers with 256 rows in flight, four of each game; a thread holds 64 games.
    assert_eq!(plan["actors"]["games_in_progress"], 128);
    assert_eq!(plan["actors"]["threads"], 2);
    // 100 / 10,000 + 200 / 40,000.
    is(&plan["replay"]["cores"], 0.015);
    is(&plan["learner"]["share"], 0.08);
    assert_eq!(plan["learner"]["precision"], "bf16");
    is(&plan["cores"], 0.2 + 2.0 + 0.015 + 0.08);
    let bytes = &plan["bytes_per_second"];
    is(&bytes["actors_to_inference"], 175_000.0);
    is(&bytes["inference_to_actors"], 75_000.0);
    is(&bytes["actors_to_replay"], 8_000.0);
    is(&bytes["replay_to_learner"], 80_000.0);
    // A checkpoint every 64 seconds, to two servers.
    is(&bytes["checkpoints_to_inference"], 2_000_000.0 / 64.0);
    is(&plan["disk_bytes_per_day"], 432_000_000.0);
    let none = Value::Array(Vec::new());
    assert_eq!([&plan["unknown"], &plan["limits"]], [&none; 2], "{plan}");
    assert_eq!(plan["sources"].as_array().unwrap().len(), 4);
    assert_eq!(plan["sources"][0]["machine"], "a desk");
}

/// Ten times the positions need ten times as much of everything.
#[test]
fn needs_grow_with_the_positions_and_one_store_and_one_learner_have_limits() {
    let measured = measured(&[SELFPLAY, INFERENCE, REPLAY, TRAINING]).unwrap();
    let one = demand("4x64").plan(&measured).unwrap();
    let many = Demand {
        positions_per_day: 864_000_000_000,
        ..demand("4x64")
    };
    let many = many.plan(&measured).unwrap();
    is(&many["cores"], 1e5 * one["cores"].as_f64().unwrap());
    is(&many["learner"]["share"], 8_000.0);
    assert_eq!(many["inference"]["servers"], 200_000);
    let limits = many["limits"].as_array().unwrap();
    let said: Vec<&str> = limits.iter().map(|limit| limit.as_str().unwrap()).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("1500.0 cores") && said[1].contains("8000.0 cores"));
}

#[test]
fn gpus_are_counted_by_the_clock() {
    let on_gpu = TRAINING.replace("\"4x64\"", "\"9x9\", \"device\": \"cuda\"");
    let play = SELFPLAY.replace("4x64", "9x9");
    let plan = demand("9x9")
        .plan(&measured(&[&play, INFERENCE, REPLAY, &on_gpu]).unwrap())
        .unwrap();
    is(&plan["inference"]["gpus"], 0.25);
    is(&plan["inference"]["cores"], 0.05);
    assert_eq!(plan["inference"]["servers"], 1);
    // 200 samples a second of 2,000 by the clock.
    is(&plan["learner"]["gpus"], 0.1);
    assert_eq!(plan["learner"]["cores"], Value::Null);
    is(&plan["cores"], 0.2 + 0.05 + 0.015);
}

#[test]
fn what_was_not_measured_is_named_with_its_command_and_never_guessed() {
    let unknown = |plan: &Value, key: &str| -> Vec<String> {
        let unknown = plan["unknown"].as_array().unwrap().iter();
        unknown.map(|one| one[key].as_str().unwrap().to_owned()).collect()
    };
    let commands = |plan: &Value| unknown(plan, "command");
    let only_selfplay = plan(&[SELFPLAY]);
    assert_eq!(
        commands(&only_selfplay),
        [
            "minuet bench inference --game chess --networks 4x64 --overload 0 --json",
            "minuet bench replay --game chess --json",
            "minuet bench training --game chess --blocks 4 --filters 64 --batch 256 --json",
        ]
    );
    is(&only_selfplay["actors"]["cores"], 0.2);
    assert_eq!(only_selfplay["actors"]["games_in_progress"], Value::Null);
    assert_eq!(only_selfplay["cores"], Value::Null);
    assert_eq!(only_selfplay["inference"]["servers"], Value::Null);
    let without_selfplay = plan(&[INFERENCE, REPLAY, TRAINING]);
    assert_eq!(
        commands(&without_selfplay),
        ["minuet bench selfplay --game chess --blocks 4 --filters 64 --visits 100 --json"]
    );
    assert_eq!(without_selfplay["visits_per_second"], Value::Null);
    assert_eq!(without_selfplay["inference"]["cores"], Value::Null);
    is(&without_selfplay["learner"]["share"], 0.08);
    let older = [
        INFERENCE.replace("model_bytes", "size"),
        REPLAY.replace("batch_bytes", "size"),
    ];
    let older = plan(&[SELFPLAY, &older[0], &older[1], TRAINING]);
    assert_eq!(
        unknown(&older, "figure"),
        ["bytes of a model", "bytes of a sample"]
    );
    // Figures of another game are no figures of this one.
    let other = plan(&[SELFPLAY, INFERENCE, &REPLAY.replace("chess", "othello"), TRAINING]);
    assert_eq!(other["disk_bytes_per_day"], Value::Null);
    assert!(commands(&other).contains(&"minuet bench replay --game chess --json".into()));
}

#[test]
fn the_last_result_of_a_kind_counts_and_other_benchmarks_are_skipped() {
    let faster = SELFPLAY.replace("\"actor_us_per_visit\": 20", "\"actor_us_per_visit\": 10");
    let plan = plan(&[SELFPLAY, r#"{"bench": "games", "games": []}"#, &faster]);
    is(&plan["actors"]["cores"], 0.1);
}

/// The load whose requests are most like those of self-play, of the fastest provider.
#[test]
fn the_load_is_that_of_self_play() {
    let single = SELFPLAY.replace("\"rows_per_request\": 40", "\"rows_per_request\": 2");
    let plan = plan(&[&single, INFERENCE]);
    assert_eq!(plan["inference"]["provider"], "openvino-bf16");
    assert_eq!(plan["inference"]["servers"], 5);
    is(&plan["inference"]["cores"], 2_500.0 / 600.0);
}

#[test]
fn a_network_of_which_nothing_was_measured_is_an_error_that_names_the_others() {
    let measured = measured(&[SELFPLAY, INFERENCE]).unwrap();
    for network in ["6x64", "four"] {
        let error = demand(network).plan(&measured).unwrap_err().to_string();
        assert!(
            error.contains(network) && error.contains("measured are chess 4x64, chess 9x9;"),
            "{error}"
        );
    }
}

#[test]
fn damaged_files_are_errors_that_name_the_object() {
    let said = |objects: &[&str]| measured(objects).unwrap_err().to_string();
    assert!(said(&[]).contains("figures.jsonl is empty"));
    let cut = &INFERENCE[..INFERENCE.len() / 2];
    assert!(said(&[SELFPLAY, cut]).contains("object 2 is not a result of"));
    for damaged in [
        "[1, 2]",
        "7",
        "not JSON",
        r#"{"game": "chess"}"#,
        r#"{"bench": "selfplay"}"#,
    ] {
        assert!(
            said(&[damaged]).contains("object 1 is not a result of"),
            "{damaged}"
        );
    }
    let zero = REPLAY.replace("\"disk_bytes\": 50", "\"disk_bytes\": 0");
    assert!(said(&[SELFPLAY, &zero]).contains("object 2: `disk_bytes` is 0 and must be above 0"));
    let no_load = INFERENCE.replace("64x1", "64x0");
    assert!(said(&[&no_load]).contains("object 1 is not a result of"));
}

#[test]
fn shipped_figures_have_an_origin_and_plan_the_default_run() {
    let shipped = Measured::shipped().unwrap();
    let plan = Demand {
        game: "paco-sako".into(),
        ..demand("4x64")
    }
    .plan(&shipped)
    .unwrap();
    assert!(plan["cores"].is_f64(), "{}", plan["unknown"]);
    for source in plan["sources"].as_array().unwrap() {
        for key in ["machine", "command", "commit"] {
            assert!(source[key].is_string(), "{source}");
        }
    }
}
