//! `minuet grow` beside a running run (stopped and continued), and on the stored games of a stopped run (killed and continued).

use std::{
    fs,
    io::{BufRead as _, BufReader, Lines},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

use checkpoints::{Manifest, Repository, Version};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::run::{Run, tiny_run};

/// A running `minuet grow --json`. Dropping it kills it.
struct Grow {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

fn command(run: &Path, arguments: &[&str]) -> Command {
    // A job in the background of a shell ignores SIGINT, and so do its children unless they are told otherwise.
    let mut command = Command::new("env");
    command
        .arg("--default-signal=INT")
        .arg(env!("CARGO_BIN_EXE_minuet"));
    command.args(["grow", "--run"]).arg(run).args(arguments);
    command
}

impl Grow {
    fn start(run: &Path, arguments: &[&str]) -> Self {
        let mut command = command(run, arguments);
        let mut child = command.arg("--json").stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Waits for the next event of this kind that `fits`.
    fn wait_for(&mut self, kind: &str, fits: impl Fn(&Value) -> bool) -> Value {
        for line in self.lines.by_ref().map_while(Result::ok) {
            let event: Value = serde_json::from_str(&line).unwrap();
            if event["event"] == kind && fits(&event) {
                return event;
            }
        }
        panic!("no {kind} event; it ended with {:?}", self.child.wait())
    }

    fn kill(mut self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        self.child.wait().unwrap();
    }

    fn end(mut self) {
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Grow {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn newest(run: &Path) -> Manifest {
    let store = run.join("checkpoints");
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let repository = Repository::open(store.to_str().unwrap()).unwrap();
        repository.newest().await.unwrap().unwrap()
    })
}

fn label(run: &Path, label: &str) -> Option<Version> {
    let store = run.join("checkpoints");
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let repository = Repository::open(store.to_str().unwrap()).unwrap();
        repository.label(label).await.unwrap()
    })
}

fn settings() -> Vec<&'static str> {
    let mut settings = tiny_run();
    settings.extend([
        "rating.visits=2",
        "rating.max_games=40",
        "rating.games_per_thread=8",
        "rating.provider=\"cpu\"",
    ]);
    settings
}

fn output(run: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = command(run, arguments).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

#[test]
fn a_larger_network_trains_beside_the_run_survives_ctrl_c_and_takes_over() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run::of_game("connect-four", folder.path(), &settings());
    run.wait_for("checkpoint", |event| event["step"].as_u64() >= Some(1));
    let text = fs::read_to_string(folder.path().join("run.toml")).unwrap();

    // No network passes with this margin.
    let larger = ["--set", "model.filters=12", "--margin", "1"];
    let mut grow = Grow::start(folder.path(), &larger);
    grow.wait_for("growing", |event| event["beside"] == true);
    let trained = grow.wait_for("checkpoint", |event| event["step"].as_u64() >= Some(5));
    let trained = trained["step"].as_u64().unwrap();
    let (code, error) = output(folder.path(), &["--abort"]);
    assert_eq!(
        (code, error.contains("another `minuet grow`")),
        (Some(1), true),
        "{error}"
    );
    grow.kill(Signal::INT);

    // Nothing of the run has changed.
    assert_eq!(fs::read_to_string(folder.path().join("run.toml")).unwrap(), text);
    let before = newest(folder.path());
    assert_eq!(before.draft.network["filters"], 8, "{}", before.draft.network);
    run.wait_for("checkpoint", |event| {
        event["step"].as_u64() > Some(before.draft.step)
    });
    let (code, error) = output(folder.path(), &["--set", "model.filters=16"]);
    assert_eq!(
        (code, error.contains("model.filters=12")),
        (Some(2), true),
        "{error}"
    );

    // The same command continues, and with this margin almost any network passes.
    let mut grow = Grow::start(folder.path(), &["--margin", "700"]);
    let growing = grow.wait_for("growing", |_| true);
    assert_eq!(growing["set"], serde_json::json!(["model.filters=12"]));
    let first = grow.wait_for("checkpoint", |_| true);
    assert!(first["step"].as_u64() >= Some(trained), "{first}");
    grow.wait_for("played", |event| event["good_enough"] == true);
    let taken = grow.wait_for("taken-over", |_| true);
    grow.end();
    assert!(!folder.path().join("learner-grown").exists());
    assert!(
        label(folder.path(), "grown").is_none(),
        "its line is removed from the store"
    );

    // The run's learner ends, and the next one resumes from the larger network.
    run.wait_for("role-exited", |event| event["name"] == "learner");
    let step = step_of(&taken["version"]);
    run.wait_for("checkpoint", |event| event["step"].as_u64() > Some(step));
    run.wait_for("serving", |event| step_of(&event["version"]) > step);
    let now = fs::read_to_string(folder.path().join("run.toml")).unwrap();
    assert_eq!(now, text.replace("\nfilters = 8\n", "\nfilters = 12\n"));
    let after = newest(folder.path());
    assert_eq!(after.draft.network["filters"], 12);
    assert!(
        after.draft.step > step && after.token > before.token + 1,
        "{after:?}"
    );
    assert!(after.draft.positions_seen > before.draft.positions_seen);
    run.stop();

    // A later start of the run resumes from it too.
    let mut run = Run::of_game("connect-four", folder.path(), &[]);
    run.wait_for("checkpoint", |event| {
        event["step"].as_u64() > Some(after.draft.step)
    });
    run.stop();
}

#[test]
fn a_larger_network_trains_on_the_stored_games_and_can_be_deleted_until_its_takeover() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run::of_game("connect-four", folder.path(), &settings());
    run.wait_for("checkpoint", |event| event["step"].as_u64() >= Some(1));
    run.stop();
    let text = fs::read_to_string(folder.path().join("run.toml")).unwrap();
    let before = newest(folder.path());
    for (arguments, words) in [
        (&["--set", "model.filters=8"][..], "changes nothing in [model]"),
        (&["--set", "search.visits=8"], "only [model] and [learner]"),
        (&["--set", "model.filter=9"], "did you mean `model.filters`"),
        (&[], "--set changes nothing in [model]"),
        (&["--set", "model.blocks=2", "--margin", "0"], "1..=1000"),
    ] {
        let (code, error) = output(folder.path(), arguments);
        assert_eq!((code, error.contains(words)), (Some(2), true), "{error}");
        assert!(!folder.path().join("learner-grown").exists(), "{arguments:?}");
    }

    let larger = ["--set", "model.blocks=2", "--margin", "1"];
    let mut grow = Grow::start(folder.path(), &larger);
    grow.wait_for("growing", |event| event["beside"] == false);
    grow.wait_for("checkpoint", |event| event["step"].as_u64() >= Some(1));
    let up = Command::new(env!("CARGO_BIN_EXE_minuet"))
        .args(["up", "--no-studio", "--run"])
        .arg(folder.path())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&up.stderr);
    assert!(error.contains("works in"), "{error}");
    grow.kill(Signal::KILL);
    assert!(label(folder.path(), "grown").is_some());

    let (code, told) = output(folder.path(), &["--abort"]);
    assert_eq!(
        (code, told.contains("the run is unchanged")),
        (Some(0), true),
        "{told}"
    );
    assert!(!folder.path().join("learner-grown").exists());
    assert_eq!(fs::read_to_string(folder.path().join("run.toml")).unwrap(), text);
    assert_eq!(newest(folder.path()), before);
    assert!(label(folder.path(), "grown").is_none());
    let (code, told) = output(folder.path(), &["--abort"]);
    assert_eq!(
        (code, told.contains("there is no larger network")),
        (Some(0), true),
        "{told}"
    );

    // The command is killed as its takeover begins, and `minuet up` completes it.
    let mut grow = Grow::start(folder.path(), &larger);
    grow.wait_for("checkpoint", |event| event["step"].as_u64() >= Some(1));
    grow.kill(Signal::KILL);
    let state = serde_json::json!({"set": ["model.blocks=2"], "candidate": label(folder.path(), "grown")});
    fs::write(folder.path().join("learner-grown/grow.json"), state.to_string()).unwrap();
    let (code, error) = output(folder.path(), &["--abort"]);
    assert_eq!(
        (code, error.contains("the takeover has begun")),
        (Some(1), true),
        "{error}"
    );
    let mut run = Run::of_game("connect-four", folder.path(), &[]);
    run.wait_for("checkpoint", |event| {
        event["step"].as_u64() > Some(before.draft.step + 1)
    });
    run.stop();
    assert_eq!(newest(folder.path()).draft.network["blocks"], 2);
    let now = fs::read_to_string(folder.path().join("run.toml")).unwrap();
    assert_eq!(now, text.replace("\nblocks = 1\n", "\nblocks = 2\n"));
    assert!(!folder.path().join("learner-grown").exists());
}

/// The training step in a version's name.
fn step_of(version: &Value) -> u64 {
    let (step, _) = version.as_str().unwrap().split_once('-').unwrap();
    step.parse().unwrap()
}
