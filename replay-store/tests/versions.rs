//! Tests of upgrades and downgrades: a folder that a newer build wrote is refused by an older one, left unchanged, and opened again by
//! the newer one.
//!
//! The older build is simulated by this build without some of its formats.

use std::{fs, path::Path, time::Duration};

use proto::v1::Game;
use replay_store::{
    error::OpenError,
    formats::Formats,
    settings::Settings,
    store::{Opening, Store},
};

use crate::{
    common::{open, settings, snapshot, synthetic},
    restart::{close, put_all},
};

const ALL: Formats = Formats::THIS_BUILD;

/// Older builds, and the file that each of them must name.
const OLDER: &[(&str, Formats)] = &[
    (
        "store.json",
        Formats {
            folders: &[1, 2],
            ..ALL
        },
    ),
    (
        "ledger",
        Formats {
            frames: &[
                *b"MnG1", *b"MnG2", *b"MnI1", *b"MnI2", *b"MnC1", *b"MnC2", *b"MnL1",
            ],
            ..ALL
        },
    ),
    (
        "volumes",
        Formats {
            frames: &[
                *b"MnG1", *b"MnI1", *b"MnD1", *b"MnX1", *b"MnC1", *b"MnL1", *b"MnL2",
            ],
            ..ALL
        },
    ),
    (
        "volumes",
        Formats {
            frames: &[*b"MnG2", *b"MnI2", *b"MnL2"],
            ..ALL
        },
    ),
    ("volumes", Formats { records: &[1], ..ALL }),
    ("retired", Formats { ids: &[], ..ALL }),
    ("archived", Formats { markers: &[], ..ALL }),
];

/// Creates and closes a store with several volumes, retired ids and markers. Returns the games that it still has.
async fn filled(settings: &Settings) -> Vec<Game> {
    let games: Vec<Game> = (0..60).map(|number| synthetic::game(number, 10)).collect();
    let store = open(settings);
    // One commit for each game, so that the number of volumes does not depend on the speed of the machine.
    for game in &games {
        put_all(&store, std::slice::from_ref(game)).await;
    }
    while fs::read_dir(settings.folder.join("archived")).map_or(0, Iterator::count) < 4 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    close(store);
    let kept = open(settings);
    let id = |game: &Game| game.id.as_ref().try_into().unwrap();
    let games = games
        .into_iter()
        .filter(|game| kept.get(&id(game)).is_ok())
        .collect();
    close(kept);
    games
}

/// Opens the store as an older build does.
fn open_as(settings: &Settings, formats: Formats) -> Result<Store, OpenError> {
    let opening = Opening {
        formats,
        ..Opening::of(&settings.folder)
    };
    Store::open_with(settings.clone(), opening)
}

/// Checks that an older build refuses the folder and changes nothing, and that this build then finds every game.
fn check(settings: &Settings, games: &[Game], named: &str, formats: Formats) {
    let before = snapshot(&settings.folder);
    let error = open_as(settings, formats).unwrap_err();
    let OpenError::Newer { path, .. } = &error else {
        panic!("{named}: {error}")
    };
    assert!(path.starts_with(settings.folder.join(named)), "{named}: {error}");
    assert!(error.to_string().contains("a newer one"), "{error}");
    assert_eq!(snapshot(&settings.folder), before, "{named}");
    let store = open(settings);
    assert_eq!(store.losses(), [], "{named}");
    for game in games {
        let id = game.id.as_ref().try_into().unwrap();
        assert_eq!(store.get(&id).as_ref(), Ok(game), "{named}");
    }
    close(store);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_build_refuses_a_newer_folder_and_changes_nothing() {
    for with_index in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = Settings {
            archive: folder.path().join("archive").to_str().unwrap().into(),
            ..settings(folder.path(), 200)
        };
        if !with_index {
            settings.index = None;
        }
        let games = filled(&settings).await;
        assert!(games.len() >= 20);
        for &(named, formats) in OLDER {
            check(&settings, &games, named, formats);
        }
    }
}

/// A frame of a later version in the middle of a log is found by the scan. With an index, the check of the index against the log finds
/// it.
#[tokio::test(flavor = "multi_thread")]
async fn a_frame_of_a_later_version_anywhere_in_a_log_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path(), 400);
    let games = filled_without_archive(&settings).await;
    let log = first_log(&settings.folder);
    let whole = fs::read(&log).unwrap();
    let at = memchr::memmem::find(&whole, b"MnI2").unwrap();
    let mut bytes = whole.clone();
    bytes[at + 3] = b'3';
    let crc = crc32fast::hash(&bytes[at..at + 28]);
    bytes[at + 28..at + 32].copy_from_slice(&crc.to_le_bytes());
    fs::write(&log, &bytes).unwrap();
    let before = snapshot(&settings.folder);
    let error = Store::open(settings.clone()).unwrap_err();
    assert!(error.to_string().contains("frame MnI3"), "{error}");
    assert_eq!(snapshot(&settings.folder), before);
    // A frame with a wrong checksum is damage.
    bytes[at + 20] ^= 1;
    fs::write(&log, &bytes).unwrap();
    close(open(&settings));
    fs::write(&log, &whole).unwrap();
    let store = open(&settings);
    assert_eq!(store.stats().games, games.len() as u64);
    close(store);
}

async fn filled_without_archive(settings: &Settings) -> Vec<Game> {
    let games: Vec<Game> = (0..30).map(|number| synthetic::game(number, 10)).collect();
    let store = open(settings);
    put_all(&store, &games).await;
    close(store);
    games
}

fn first_log(folder: &Path) -> std::path::PathBuf {
    let volumes = fs::read_dir(folder.join("volumes")).unwrap();
    let mut logs: Vec<_> = volumes
        .map(|entry| entry.unwrap().path().join("games.log"))
        .collect();
    logs.sort();
    logs.remove(0)
}
