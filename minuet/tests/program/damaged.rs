//! `minuet games` on the damaged store of a stopped run: damage is reported with its count and exit status 3, nothing is changed, and
//! `--repair` repairs.

use std::{fs, path::Path};

use proto::{ids::hex, v1::Game};
use test_support::snapshot;

use crate::support::{
    program::{done, minuet},
    synthetic,
};
use replay_store::{
    exchange::archive::Reader,
    settings::Settings,
    store::{Store, append::Verdict},
};

const GAMES: u64 = 20;

/// Writes the folder of a stopped run, and flips a bit of one game. Returns the games; the damaged one is first.
fn damaged_run(folder: &Path) -> Vec<Game> {
    fs::write(folder.join("run.toml"), "").unwrap();
    let config = config::load(&folder.join("run.toml")).unwrap();
    let store = Store::open(Settings::from_config(&config)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut games: Vec<Game> = (0..GAMES).map(|number| synthetic::game(number, 20)).collect();
    for game in &games {
        assert_eq!(runtime.block_on(store.put(game)).unwrap(), Verdict::Stored);
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

/// Runs `minuet games`, checks its exit status, and returns what it printed to standard output and standard error.
#[track_caller]
fn ends_with(status: i32, run: &Path, words: &str, path: Option<&Path>) -> (String, String) {
    let done = done(minuet(&format!("games {words}")).args(path).arg("--run").arg(run));
    assert_eq!(done.code, Some(status), "{words}: {}\n{}", done.out, done.error);
    (done.out, done.error)
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
    let (lost, whole) = (hex(&games[0].id), hex(&games[1].id));
    let mut before = snapshot(&run);
    let archive = folder.path().join("games.minuet");
    let arrays = folder.path().join("arrays");

    let count = "1 acknowledged game cannot be read";
    for _ in 0..2 {
        let (listed, error) = ends_with(3, &run, "list --json --limit 100", None);
        assert_eq!(listed.lines().count() as u64, GAMES - 1);
        for part in [count, &lost, "--repair"] {
            assert!(error.contains(part), "{error}");
        }
    }
    let (show_whole, show_lost) = (format!("show {whole}"), format!("show {lost}"));
    let delete = format!("delete --id {whole}");
    let (shown, error) = ends_with(3, &run, &show_whole, None);
    assert!(shown.contains(&whole) && error.contains(count), "{shown}{error}");
    let (shown, error) = ends_with(3, &run, &show_lost, None);
    let unreadable = format!("{lost}: the game cannot be read");
    assert!(shown.is_empty() && error.contains(&unreadable), "{error}");
    let (_, error) = ends_with(3, &run, "export", Some(&archive));
    assert!(error.contains("the export is not complete"), "{error}");
    assert_eq!(games_in(&archive) as u64, GAMES - 1);
    ends_with(3, &run, "export --numpy", Some(&arrays));
    assert!(arrays.join("games.json").exists());
    assert_eq!(snapshot(&run), before);
    // Commands that write do not repair either. Without the index they read every game.
    let index = run.join("replay/index");
    for (words, path) in [("import", Some(&*archive)), (&delete, None)] {
        fs::remove_dir_all(&index).unwrap();
        let (_, error) = ends_with(3, &run, words, path);
        assert!(error.contains("nothing is changed"), "{error}");
    }
    let mut after = snapshot(&run);
    for files in [&mut before, &mut after] {
        files.retain(|path, _| !path.starts_with(&index));
    }
    assert_eq!(after, before);

    let (listed, error) = ends_with(0, &run, "list --json --limit 100 --repair", None);
    assert_eq!(listed.lines().count() as u64, GAMES - 1);
    assert!(error.contains(count) && error.contains("recorded now"), "{error}");
    let (_, error) = ends_with(0, &run, "list", None);
    assert!(error.is_empty(), "{error}");
    ends_with(0, &run, &show_whole, None);
    ends_with(1, &run, &show_lost, None);
    ends_with(0, &run, &delete, None);
    ends_with(0, &run, "export", Some(&archive));
    assert_eq!(games_in(&archive) as u64, GAMES - 2);
}
