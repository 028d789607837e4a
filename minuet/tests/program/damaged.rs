//! `minuet games` on the damaged store of a stopped run: damage is reported with its count and exit status 3, nothing is changed, and
//! `--repair` repairs.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use proto::v1::Game;

use crate::support::synthetic;
use replay_store::{exchange::archive::Reader, settings::Settings, store::Store};

const GAMES: u64 = 20;

/// Writes the folder of a stopped run, and flips a bit of one game. Returns the games; the damaged one is first.
fn damaged_run(folder: &Path) -> Vec<Game> {
    fs::write(folder.join("run.toml"), "").unwrap();
    let config = config::load(&folder.join("run.toml")).unwrap();
    let store = Store::open(Settings::from_config(&config)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut games: Vec<Game> = (0..GAMES).map(|number| synthetic::game(number, 20)).collect();
    for game in &games {
        runtime.block_on(store.put(game)).unwrap();
    }
    store.close().unwrap();
    let log = folder.join("replay/volumes/00000000000000000001/games.log");
    let mut bytes = fs::read(&log).unwrap();
    let parts: Vec<usize> = bytes
        .windows(4)
        .enumerate()
        .filter_map(|(at, magic)| (magic == b"MnG1").then_some(at))
        .collect();
    assert_eq!(parts.len() as u64, GAMES);
    bytes[parts[7] + 60] ^= 1;
    fs::write(&log, bytes).unwrap();
    games.swap(0, 7);
    games
}

/// All files of a folder and their contents. The lock is left out.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.append(&mut snapshot(&path));
        } else if path.file_name().is_some_and(|name| name != "lock") {
            files.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    files
}

fn hex(game: &Game) -> String {
    game.id.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn minuet(run: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_minuet"))
        .arg("games")
        .args(arguments)
        .arg("--run")
        .arg(run)
        .output()
        .unwrap()
}

/// Runs a command, checks its exit status, and returns what it printed to standard output and standard error.
fn ends_with(status: i32, run: &Path, arguments: &[&str]) -> (String, String) {
    let done = minuet(run, arguments);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, error) = (text(done.stdout), text(done.stderr));
    assert_eq!(done.status.code(), Some(status), "{arguments:?}: {out}\n{error}");
    (out, error)
}

fn games_in(archive: &Path) -> usize {
    let reader = Reader::new(fs::File::open(archive).unwrap()).unwrap();
    reader.map(Result::unwrap).count()
}

#[test]
fn damage_of_a_stopped_run_is_reported_and_left_alone_until_it_is_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    fs::create_dir(&run).unwrap();
    let games = damaged_run(&run);
    let (lost, whole) = (hex(&games[0]), hex(&games[1]));
    let mut before = snapshot(&run);
    let archive = folder.path().join("games.minuet");
    let arrays = folder.path().join("arrays");

    let count = "1 acknowledged game cannot be read";
    for _ in 0..2 {
        let (listed, error) = ends_with(3, &run, &["list", "--json", "--limit", "100"]);
        assert_eq!(listed.lines().count() as u64, GAMES - 1);
        assert!(error.contains(count) && error.contains(&lost), "{error}");
        assert!(error.contains("--repair"), "{error}");
    }
    let (shown, error) = ends_with(3, &run, &["show", &whole]);
    assert!(shown.contains(&whole) && error.contains(count), "{shown}{error}");
    let (shown, error) = ends_with(3, &run, &["show", &lost]);
    assert!(
        shown.is_empty() && error.contains(&format!("{lost}: the game cannot be read")),
        "{error}"
    );
    let (_, error) = ends_with(3, &run, &["export", archive.to_str().unwrap()]);
    assert!(error.contains("the export is not complete"), "{error}");
    assert_eq!(games_in(&archive) as u64, GAMES - 1);
    ends_with(3, &run, &["export", "--numpy", arrays.to_str().unwrap()]);
    assert!(arrays.join("games.json").exists());
    assert_eq!(snapshot(&run), before);
    // Commands that write do not repair either. Without the index they read every game.
    let index = run.join("replay/index");
    for arguments in [
        ["import", archive.to_str().unwrap()].as_slice(),
        &["delete", "--id", &whole],
    ] {
        fs::remove_dir_all(&index).unwrap();
        let (_, error) = ends_with(3, &run, arguments);
        assert!(error.contains("nothing is changed"), "{error}");
    }
    let mut after = snapshot(&run);
    for files in [&mut before, &mut after] {
        files.retain(|path, _| !path.starts_with(&index));
    }
    assert_eq!(after, before);

    let (listed, error) = ends_with(0, &run, &["list", "--json", "--limit", "100", "--repair"]);
    assert_eq!(listed.lines().count() as u64, GAMES - 1);
    assert!(error.contains(count) && error.contains("recorded now"), "{error}");
    let (_, error) = ends_with(0, &run, &["list"]);
    assert!(error.is_empty(), "{error}");
    ends_with(0, &run, &["show", &whole]);
    ends_with(1, &run, &["show", &lost]);
    ends_with(0, &run, &["delete", "--id", &whole]);
    ends_with(0, &run, &["export", archive.to_str().unwrap()]);
    assert_eq!(games_in(&archive) as u64, GAMES - 2);
}
