//! Golden folders: stores and archives that released builds wrote. Every later build reads them.
//!
//! | folder | written by |
//! |---|---|
//! | `0.1` | release 0.1: version 1 of every format |
//!
//! `cargo test -p replay-store --test store write_a_golden_folder -- --ignored` writes the folder of this release.

mod write;

use std::{fs, path::Path};

use replay_store::{
    exchange::archive::Reader,
    settings::Settings,
    store::{GetError, Store, append::Verdict},
};
use serde_json::Value;
use test_support::{all_golden, new_golden, own_golden};

use crate::common::{close, copy_folder, id, open, snapshot, synthetic};
use write::{fingerprint, golden_settings, hex};

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

#[test]
#[ignore = "writes the golden folder of this release; run it when a format changes"]
fn write_a_golden_folder() {
    write::write(&new_golden(CRATE, ""));
}

#[test]
fn there_is_a_golden_folder_of_this_release_in_the_current_format() {
    let text = fs::read_to_string(own_golden(CRATE, "store/store.json")).unwrap();
    let found: Value = serde_json::from_str(&text).unwrap();
    let made = tempfile::tempdir().unwrap();
    let settings = crate::common::settings(made.path(), 64);
    open(&settings).close().unwrap();
    let text = fs::read_to_string(settings.folder.join("store.json")).unwrap();
    let current: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(found["version"], current["version"], "write a new golden folder");
}

/// Copies a golden store and returns the settings of the copy. The copy is not archived again.
fn copy(golden: &Path, to: &Path) -> Settings {
    copy_folder(golden, to);
    Settings {
        archive: String::new(),
        ..golden_settings(to)
    }
}

fn expected(golden: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(golden.join("expected.json")).unwrap()).unwrap()
}

/// Checks a golden store's games and counts.
fn check(store: &Store, expected: &Value, context: &str) {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(exported) = store.export((from, u64::MAX), 64, &Default::default()) {
        from = exported.next;
        found.extend(exported.games);
    }
    let games = expected["games"].as_array().unwrap();
    assert_eq!(found.len(), games.len(), "{context}");
    for (stored, expected) in found.iter().zip(games) {
        let game = stored.game.as_ref().unwrap();
        assert_eq!(expected["sequence"], stored.sequence, "{context}");
        assert_eq!(expected["id"], hex(game), "{context}");
        assert_eq!(expected["crc32"], fingerprint(game), "{context}");
        assert_eq!(store.get(&id(game)).as_ref(), Ok(game), "{context}");
    }
    for known in expected["known"].as_array().unwrap() {
        let id = u128::from_str_radix(known.as_str().unwrap(), 16).unwrap();
        assert_ne!(store.get(&id.to_be_bytes()), Err(GetError::Unknown), "{context}");
    }
    let stats = store.stats();
    for (name, count) in [
        ("games_inserted", stats.games_inserted),
        ("positions_inserted", stats.positions_inserted),
        ("positions_sampled", stats.positions_sampled),
        ("duplicates", stats.duplicates),
        ("damaged_games", stats.damaged_games),
    ] {
        assert_eq!(expected[name], count, "{context}: {name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_golden_store_is_read_and_written_on() {
    for golden in all_golden(CRATE, "") {
        let context = golden.display().to_string();
        let expected = expected(&golden);
        let folder = tempfile::tempdir().unwrap();
        let settings = copy(&golden, folder.path());
        let before = snapshot(&settings.folder);
        let store = Store::open_to_read(settings.clone()).unwrap();
        assert!(store.damage().is_none(), "{context}: {:?}", store.damage());
        check(&store, &expected, &context);
        close(store);
        assert_eq!(snapshot(&settings.folder), before, "{context}");

        let store = open(&settings);
        check(&store, &expected, &context);
        let more = synthetic::game(900, 5);
        assert_eq!(store.put(&more).await.unwrap(), Verdict::Stored, "{context}");
        close(store);
        let store = open(&settings);
        assert_eq!(store.get(&id(&more)), Ok(more), "{context}");
        assert_eq!(store.losses(), [], "{context}");
        assert_eq!(
            expected["games_inserted"].as_u64().unwrap() + 1,
            store.stats().games_inserted
        );
        close(store);
    }
}

#[test]
fn every_golden_archive_is_read() {
    for golden in all_golden(CRATE, "") {
        let archive = fs::File::open(golden.join("games.minuet")).unwrap();
        let reader = Reader::new(archive).unwrap();
        assert_eq!(
            (reader.header().game.as_str(), reader.header().options),
            ("paco-sako", 1)
        );
        let games: Vec<String> = reader.map(|game| fingerprint(&game.unwrap())).collect();
        let expected = expected(&golden);
        let sums = expected["games"]
            .as_array()
            .unwrap()
            .iter()
            .map(|game| game["crc32"].as_str().unwrap());
        assert_eq!(games, sums.collect::<Vec<_>>(), "{}", golden.display());
    }
}
