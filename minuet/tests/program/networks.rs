//! Networks that come with Minuet: each is played by its game's name, and beats the reference in its `provenance.json`.

use std::{collections::BTreeSet, fs, path::PathBuf};

use serde_json::Value;

use crate::support::program::{minuet, printed_json};

/// Games in a match. A network that scores four fifths fails one match of 10,000.
const GAMES: &str = "40";
/// Visits in a match of two levels. With 100 visits many games of Paco Ŝako end by repetition.
const LEVEL_VISITS: u32 = 16;
/// Largest network, in bytes.
const MAX_BYTES: u64 = 2 << 20;

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

/// Plays a match, and returns the score of the first player, in [0, 1].
fn score(game: &str, first: &str, second: &str) -> f64 {
    let place = tempfile::tempdir().unwrap();
    let mut command = minuet("arena --json --game");
    command.args([game, first, second, "--games", GAMES, "--folder"]);
    let report = printed_json(command.arg(place.path().join("match")));
    report["pairings"][0]["estimate"]["score"].as_f64().unwrap()
}

#[test]
fn every_game_comes_with_a_network_that_beats_its_reference() {
    let names: BTreeSet<String> = networks().into_iter().map(|(name, _)| name).collect();
    for &game in games::registry::NAMES {
        assert!(names.contains(game), "networks/{game}");
    }
    for (game, folder) in networks() {
        assert!(
            fs::metadata(folder.join("model.onnx")).unwrap().len() <= MAX_BYTES,
            "{game}"
        );
        let text = fs::read_to_string(folder.join("provenance.json")).unwrap();
        let provenance: Value = serde_json::from_str(&text).unwrap();
        let visits = provenance["visits_in_matches"].as_u64().unwrap();
        let network = format!("{game},visits={visits}");
        let score = score(&game, &network, provenance["reference"].as_str().unwrap());
        assert!(score > 0.5, "{game}: {score} against {}", provenance["reference"]);
    }
}

/// The levels are checkpoints of one training, so the last one is stronger than the first. The closest match, in chess, ended 24–6–10, so a score
/// below the bound has a probability below one in a thousand.
#[test]
fn the_strongest_level_does_not_lose_to_the_weakest() {
    for (game, folder) in networks() {
        if !folder.join("beginner").is_dir() {
            continue;
        }
        let strong = format!("{game},visits={LEVEL_VISITS}");
        let score = score(&game, &strong, &format!("{game}@beginner,visits={LEVEL_VISITS}"));
        assert!(score > 0.45, "{game}: {score}");
    }
}

/// A query by the game's name is answered by the version in the manifest.
#[test]
fn the_name_of_a_game_stands_for_its_network() {
    for (game, folder) in networks() {
        for (name, folder) in [
            (game.clone(), folder.clone()),
            (format!("{game}@medium"), folder.join("medium")),
            (format!("{game}@beginner"), folder.join("beginner")),
        ] {
            let Ok(manifest) = fs::read_to_string(folder.join("manifest.json")) else {
                continue;
            };
            let manifest: Value = serde_json::from_str(&manifest).unwrap();
            let answer = printed_json(minuet("query --json").arg(&name));
            assert_eq!(answer["version"], manifest["version"], "{name}");
            assert_eq!(answer["game"], manifest["game"]);
        }
    }
}
