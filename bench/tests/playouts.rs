//! `minuet bench playouts` as a process, with its baselines.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::process::Command;

use serde_json::Value;

fn run(arguments: &[&str]) -> Value {
    let words = "playouts --game connect-four --leaves 2 --cache 1 --blocks 1 --filters 8 --visits 30 --games 3 \
                 --provider cpu --seconds 0.05 --rounds 1 --json";
    let mut command = Command::new(env!("CARGO_BIN_EXE_minuet-bench"));
    let output = command
        .args(words.split_whitespace())
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["network"], "random weights 1x8");
    assert_eq!(report["measured"].as_array().unwrap().len(), 1);
    report["measured"][0].clone()
}

/// The sources of playouts and of decision nodes' evaluations sum to their totals.
#[test]
fn every_playout_is_accounted_for() {
    let one = run(&[]);
    let count = |name: &str| one[name].as_u64().unwrap_or_else(|| panic!("no {name} in {one}"));
    assert_eq!(one["provider"], "cpu");
    assert!(count("playouts") > 0 && one["single"]["cpu_ratio"].as_f64() > Some(0.0));
    assert!(one["batch"].as_f64() <= Some(6.0));
    // Leaves in flight at the beginning or end of a round are counted in part.
    let slack = 2 * 6;
    let answered = count("fresh") + count("cache_hits") + count("duplicates");
    assert!(answered.abs_diff(count("asked")) <= slack, "{one}");
    let visits = count("asked") + count("gray") + count("terminal") - count("root_evaluations");
    assert!(visits.abs_diff(count("playouts")) <= slack, "{one}");
    assert_eq!(one["onnxruntime"]["missing"], "no --python was given");
}

#[test]
fn onnx_runtime_is_measured_too() {
    let Some(python) = test_support::python("onnxruntime") else {
        return;
    };
    let one = run(&["--python", python.to_str().unwrap()]);
    let found = &one["onnxruntime"];
    assert!(found["missing"].is_null(), "{found}");
    assert_eq!(found["version"], "1.24.1");
    assert!(found["compared"]["cpu_ratio"].as_f64() > Some(0.0), "{found}");
}
