//! `minuet grow`: a new run begins with the games of a run at work and its weights, or with a larger network on its games.

use std::{fs, path::Path, process::Command};

use checkpoints::Repository;
use serde_json::Value;

use crate::{
    stored_games::ids,
    support::{
        program::{fails, minuet, printed_json},
        run::{Run, tiny_run},
    },
};

fn command(from: &Path, run: &Path, settings: &[&str]) -> Command {
    let mut command = minuet("grow --from");
    command.arg(from).arg("--run").arg(run);
    command.args(settings.iter().flat_map(|setting| ["--set", setting]));
    command
}

fn grown(from: &Path, run: &Path, settings: &[&str]) -> Value {
    printed_json(command(from, run, settings).arg("--json"))
}

fn refused(from: &Path, run: &Path, settings: &[&str], words: &str) {
    fails(&mut command(from, run, settings), 2, words);
}

/// Trains the run for a step, and returns the number of filters of its newest network.
fn trained(run: &Path) -> Value {
    let mut up = Run::of_game("connect-four", run, &[]);
    up.wait_for("checkpoint", |event| event["step"].as_u64() >= Some(1));
    up.stop();
    let store = run.join("checkpoints");
    let newest = tokio::runtime::Runtime::new().unwrap().block_on(async {
        let repository = Repository::open(store.to_str().unwrap()).unwrap();
        repository.newest().await.unwrap().unwrap()
    });
    newest.draft.network["filters"].clone()
}

#[test]
fn a_run_begins_with_the_games_of_another_and_with_its_weights_if_the_sizes_agree() {
    let folder = tempfile::tempdir().unwrap();
    let [from, same, larger] = ["from", "same", "larger"].map(|name| folder.path().join(name));
    let mut run = Run::of_game("connect-four", &from, &tiny_run());
    run.wait_for("checkpoint", |event| event["step"].as_u64() >= Some(1));
    let copied = grown(&from, &same, &[]);
    assert!(copied["stored"].as_u64() > Some(0), "{copied}");
    let start = copied["start_from"].as_str().unwrap();
    assert!(start.ends_with("same/start.onnx"), "{copied}");
    run.stop();
    let before = fs::read(from.join("run.toml")).unwrap();
    let all = ids(&from, "");

    refused(&from, &from, &[], "has checkpoints");
    let typing_error = "did you mean `model.filters`";
    refused(&from, &larger, &["model.filter=9"], typing_error);
    refused(
        &from,
        &larger,
        &["game.options=0", "game.name=othello"],
        "the game and its rules",
    );
    refused(&folder.path().join("none"), &larger, &[], "--from ");
    assert!(!larger.exists());

    // A copy that was killed is completed by the same command.
    let mut killed = command(&from, &larger, &["model.filters=12"]).spawn().unwrap();
    while !larger.join("replay/store.json").exists() {
        assert!(killed.try_wait().unwrap().is_none_or(|status| status.success()));
        std::thread::yield_now();
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    refused(&from, &larger, &["model.filters=16"], "has other settings");
    let copied = grown(&from, &larger, &["model.filters=12"]);
    let both = copied["stored"].as_u64().unwrap() + copied["duplicates"].as_u64().unwrap();
    assert_eq!(
        (both, &copied["start_from"]),
        (all.len() as u64, &Value::from("")),
        "{copied}"
    );
    assert_eq!(ids(&larger, ""), all);
    assert_eq!(fs::read(from.join("run.toml")).unwrap(), before);

    assert_eq!(trained(&larger), 12);
    assert!(ids(&larger, "").is_superset(&all));
    refused(&from, &larger, &[], "has checkpoints");
    assert_eq!(trained(&same), 8);
}
