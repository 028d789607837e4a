//! Networks that come with Minuet: each is played by its game's name, and beats the reference in its `provenance.json`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::{
    collections::BTreeSet,
    fs,
    path::PathBuf,
    process::{Command, Output},
};

use serde_json::Value;

/// Games in a match. A network that scores four fifths fails one match of 10,000.
const GAMES: &str = "40";
/// Largest network, in bytes.
const MAX_BYTES: u64 = 2 << 20;

fn minuet(arguments: &[&str]) -> Output {
    let done = Command::new(env!("CARGO_BIN_EXE_minuet"))
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    done
}

fn networks() -> Vec<(String, PathBuf)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../networks");
    let mut found: Vec<(String, PathBuf)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir())
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.path()))
        .collect();
    found.sort();
    found
}

#[test]
fn board_games_come_with_a_network() {
    let names: BTreeSet<String> = networks().into_iter().map(|(name, _)| name).collect();
    for game in ["connect-four", "gomoku", "othello", "paco-sako"] {
        assert!(names.contains(game), "no networks/{game}");
    }
}

#[test]
fn each_network_beats_its_reference() {
    for (game, folder) in networks() {
        assert!(
            fs::metadata(folder.join("model.onnx")).unwrap().len() <= MAX_BYTES,
            "{game}"
        );
        let text = fs::read_to_string(folder.join("provenance.json")).unwrap();
        let provenance: Value = serde_json::from_str(&text).unwrap();
        let visits = provenance["visits_in_matches"].as_u64().unwrap();
        let network = format!("{game},visits={visits}");
        let place = tempfile::tempdir().unwrap();
        let done = minuet(&[
            "arena",
            "--game",
            &game,
            &network,
            provenance["reference"].as_str().unwrap(),
            "--games",
            GAMES,
            "--json",
            "--folder",
            place.path().join("match").to_str().unwrap(),
        ]);
        let report: Value = serde_json::from_slice(&done.stdout).unwrap();
        let score = report["pairings"][0]["estimate"]["score"].as_f64().unwrap();
        assert!(score > 0.5, "{game}: {score} against {}", provenance["reference"]);
    }
}

/// A query by the game's name is answered by the version in the manifest.
#[test]
fn the_name_of_a_game_stands_for_its_network() {
    for (game, folder) in networks() {
        let manifest: Value =
            serde_json::from_str(&fs::read_to_string(folder.join("manifest.json")).unwrap()).unwrap();
        let answer: Value = serde_json::from_slice(&minuet(&["query", &game, "--json"]).stdout).unwrap();
        assert_eq!(answer["version"], manifest["version"], "{game}");
        assert_eq!(answer["game"], manifest["game"]);
    }
}
