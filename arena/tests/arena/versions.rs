//! Match folders of other builds. Golden folders are those that released builds wrote; every later build reads them.
//!
//! `cargo test -p arena --test arena write_a_golden_folder -- --ignored` writes the folder of this release.

use std::fs;

use arena::matches::{MatchFolder, Plan};
use test_support::{all_golden, new_golden};

use super::playing::Match;

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

fn small_match() -> Match {
    let players = ["random", "random,name=other"];
    Match::new("connect-four", &players, 2, 2, &mut super::common::networks())
}

#[test]
#[ignore = "writes the golden folder of this release; run it when the format changes"]
fn write_a_golden_folder() {
    let folder = new_golden(CRATE, "match");
    assert_eq!(small_match().play(&folder, 1, 1).len(), 4);
    fs::remove_file(folder.join("lock")).unwrap();
}

#[test]
fn every_golden_match_is_read() {
    for golden in all_golden(CRATE, "match") {
        let folder = tempfile::tempdir().unwrap();
        for file in ["match.json", "games.jsonl"] {
            fs::copy(golden.join(file), folder.path().join(file)).unwrap();
        }
        let plan: Plan = serde_json::from_slice(&fs::read(golden.join("match.json")).unwrap()).unwrap();
        let opened = MatchFolder::open(folder.path(), &plan).unwrap();
        let games: Vec<u64> = opened.records().keys().copied().collect();
        assert_eq!(games, [0, 1, 2, 3], "{}", golden.display());
        let lines = fs::read_to_string(golden.join("games.jsonl")).unwrap();
        for line in lines.lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let record = &opened.records()[&line["game"].as_u64().unwrap()];
            assert_eq!(
                serde_json::to_value(record).unwrap(),
                line,
                "{}",
                golden.display()
            );
        }
    }
}

#[test]
fn a_match_that_a_newer_build_began_is_refused_and_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let playing = small_match();
    let folder = home.path().join("match");
    playing.play(&folder, 1, 1);
    let plan = folder.join("match.json");
    let text = fs::read_to_string(&plan).unwrap();
    let newer = text.replace("\"schema\": 1", "\"schema\": 2, \"clock\": {\"seconds\": 3}");
    fs::write(&plan, &newer).unwrap();
    // A torn line is removed only by a build that knows the format.
    let games = fs::read_to_string(folder.join("games.jsonl")).unwrap() + "{\"game\":9";
    fs::write(folder.join("games.jsonl"), &games).unwrap();
    let error = playing.folder(&folder).unwrap_err();
    assert!(error.to_string().contains("is of schema 2"), "{error}");
    assert_eq!(fs::read_to_string(&plan).unwrap(), newer);
    assert_eq!(fs::read_to_string(folder.join("games.jsonl")).unwrap(), games);
    fs::write(&plan, text).unwrap();
    assert_eq!(playing.folder(&folder).unwrap().records().len(), 4);
}
