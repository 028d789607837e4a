//! The laboratory with its real processes: equal results for equal experiments, and a run that is killed and continued.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs,
    io::{self, BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use serde_json::Value;

const EXPERIMENT: &str = r#"
question = "Do more visits help?"
game = "connect-four"
seeds = [1]
budget = { evaluations = 6000, samples = 100000 }
round_positions = 60
[rating]
every = 3000
visits = 5
games = 2
against = ["random"]
control_games = 4
solver_positions = 2
[settings]
"model.blocks" = 1
"model.filters" = 8
"model.global_pooling" = 2
"model.value_hidden" = 8
"search.visits" = 6
"actor.games_per_thread" = 8
"learner.batch_size" = 16
"learner.threads" = 1
"learner.min_positions" = 60
"learner.checkpoint_steps" = 5
"learner.samples_per_position" = 2.0
[[arm]]
name = "control"
[[arm]]
name = "visits-12"
settings = { "search.visits" = 12, "search.solver" = true, "search.stop_when_solved" = true, "search.exact_leaves" = true }
"#;

fn lab(folder: &Path, results: &str) -> Command {
    let file = folder.join("experiment.toml");
    fs::write(&file, EXPERIMENT).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_minuet-bench"));
    command
        .arg("lab")
        .arg(file)
        .arg("--folder")
        .arg(folder.join(results));
    command
}

/// Runs the experiment to its end and returns its result.
fn finish(folder: &Path, results: &str) -> Value {
    let output = lab(folder, results).output().unwrap();
    let logs = || fs::read_to_string(folder.join(results).join("control-1/log"));
    assert!(output.status.success(), "{output:?} {:?}", logs());
    let result = fs::read(folder.join(results).join("result.json")).unwrap();
    serde_json::from_slice(&result).unwrap()
}

#[test]
fn an_experiment_gives_the_same_networks_when_it_is_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|results| finish(folder.path(), results));
    let versions = |result: &Value| -> Vec<String> {
        let arms = result.as_array().unwrap().iter();
        arms.flat_map(|arm| arm["runs"][0][1]["ratings"].as_array().unwrap())
            .map(|rated| format!("{} {}", rated["version"], rated["spent"]["evaluations"]))
            .collect()
    };
    // The name of a version holds the digest of its network.
    assert_eq!(versions(&first), versions(&second));
    for (number, arm) in first.as_array().unwrap().iter().enumerate() {
        let state = &arm["runs"][0][1];
        assert_eq!(state["is_complete"], true);
        let spent = &state["spent"];
        let count = |name: &str| spent[name].as_u64().unwrap();
        assert!(count("evaluations") >= 6000, "{spent}");
        assert_eq!(count("samples"), 16 * count("steps"));
        assert!(count("samples") <= 2 * count("positions"), "{spent}");
        assert!(
            count("samples") + 16 > 2 * (count("positions") - 60) / 100 * 90,
            "{spent}"
        );
        let visits = ["evaluations", "cached", "duplicates", "gray", "terminal"].map(count);
        // Each decision evaluates its root in addition to its visits, unless that evaluation is known already.
        assert!(visits.iter().sum::<u64>() >= count("visits"), "{spent}");
        let last = state["ratings"].as_array().unwrap().last().unwrap();
        assert_eq!(last["matches"][0]["games"].as_array().unwrap().len(), 3);
        assert!(last["optimal_alone"].is_f64(), "{last}");
        // The last network of every other arm plays that of the first arm.
        let control = &last["matches"][1];
        assert_eq!(control.is_null(), number == 0, "{last}");
        if number > 0 {
            assert_eq!(control["against"], "control");
            let games = control["games"].as_array().unwrap().iter();
            assert_eq!(games.map(|games| games.as_u64().unwrap()).sum::<u64>(), 4);
        }
    }
    // The games of lock step are recorded as those of an actor.
    let check = Command::new(Path::new(env!("CARGO_BIN_EXE_minuet-bench")).with_file_name("minuet"))
        .args(["games", "check", "--strict", "--newest", "100", "--run"])
        .arg(folder.path().join("first/control-1"))
        .output()
        .unwrap();
    assert!(check.status.success(), "{check:?}");
    let table = fs::read_to_string(folder.path().join("first/table.md")).unwrap();
    assert!(
        table.contains("| control | 1 |") && table.contains("| visits-12 | 1 |"),
        "{table}"
    );
}

/// Returns the lines of JSON on standard output, and the text on standard error.
fn finish_with_points(folder: &Path) -> (Vec<Value>, String) {
    let output = lab(folder, "results").arg("--json").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let points = lines.lines().map(|line| serde_json::from_str(line).unwrap());
    (points.collect(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_killed_experiment_is_continued_and_prints_every_point() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = lab(folder.path(), "results")
        .arg("--json")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A run has spent half of its budget.
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    // The runs hold standard error open, and end because their parent has ended.
    io::copy(&mut child.stderr.take().unwrap(), &mut io::sink()).unwrap();

    let (points, said) = finish_with_points(folder.path());
    assert!(points.contains(&first), "{first} is not in {points:#?}");
    assert!(said.contains("| visits-12 | 1 |"), "{said}");
    let result = fs::read(folder.path().join("results/result.json")).unwrap();
    let result: Value = serde_json::from_slice(&result).unwrap();
    for arm in result.as_array().unwrap() {
        let state = &arm["runs"][0][1];
        assert_eq!(state["is_complete"], true);
        let is_of_arm = |point: &&Value| point["arm"] == arm["arm"] && point["reference"] != "control";
        let of_arm: Vec<&Value> = points.iter().filter(is_of_arm).collect();
        let rated = state["ratings"].as_array().unwrap();
        assert_eq!(of_arm.len(), rated.len());
        for (point, rated) in of_arm.into_iter().zip(rated) {
            let (spent, played) = (&rated["spent"], &rated["matches"][0]);
            assert_eq!(point["seed"], 1);
            assert_eq!(point["reference"], "random");
            for count in ["evaluations", "samples", "visits", "cached", "gray", "terminal"] {
                assert_eq!(point[count], spent[count], "{count} of {point}");
            }
            let seconds = |of: &str| spent[of].as_f64().unwrap();
            let sum = seconds("self_play_cpu_seconds") + seconds("learner_cpu_seconds");
            assert!(
                (point["cpu_seconds"].as_f64().unwrap() - sum).abs() < 1e-6,
                "{point}"
            );
            assert_eq!(
                [&point["won"], &point["drawn"], &point["lost"]],
                [0, 1, 2].map(|at| &played["games"][at])
            );
            assert_eq!(point["elo"], played["elo"]);
            assert_eq!(point["elo_interval"], played["elo_interval"]);
            assert_eq!(point["optimal_alone"], rated["optimal_alone"]);
            assert_eq!(point["version"], rated["version"]);
        }
    }
    // A complete experiment prints the same once more.
    let (again, said) = finish_with_points(folder.path());
    assert!(said.contains("2 runs, 2 complete"), "{said}");
    let sorted = |points: &[Value]| {
        let mut lines: Vec<String> = points.iter().map(Value::to_string).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&again), sorted(&points));
}

#[test]
fn another_experiment_does_not_continue_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    fs::create_dir(&results).unwrap();
    fs::write(results.join("experiment.toml"), "question = \"another\"").unwrap();
    let output = lab(folder.path(), "results").output().unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("holds another experiment"), "{text}");
}
