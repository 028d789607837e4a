//! Tests of the spool on a real disk: restarts, cut files, damage, a killed process, failing writes.

mod golden;

use std::{
    collections::HashSet,
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    thread,
    time::Duration,
};

use tokio_util::sync::CancellationToken;

use prost::Message as _;

use super::*;
use crate::metrics::Metrics;

pub fn game(number: u64) -> Finished {
    let mut id = [0; 16];
    id[8..].copy_from_slice(&number.to_be_bytes());
    let message = Game {
        id: id.to_vec().into(),
        game_number: number,
        // Of different lengths.
        rows: (0..(number % 7) as u32 * 3).collect(),
        ..Game::default()
    };
    Finished {
        id: GameId(id),
        bytes: message.encode_to_vec(),
    }
}

fn open(folder: &Path) -> (Spool, Recovered) {
    reopened(folder).unwrap()
}

/// Opens a spool. The child process of another test holds a copy of this process's locks until it runs its own program, so opening a
/// spool that was dropped a moment ago is tried again.
fn reopened(folder: &Path) -> anyhow::Result<(Spool, Recovered)> {
    for _ in 0..200 {
        match Spool::open(folder.into(), 1 << 20) {
            Err(error) if error.to_string().contains("another running actor") => {
                thread::sleep(Duration::from_millis(10));
            }
            opened => return opened,
        }
    }
    panic!("the spool stays locked");
}

/// Returns the numbers of the waiting games, in the order of sending.
pub fn waiting(spool: &Spool) -> Vec<u64> {
    let mut position = None;
    std::iter::from_fn(|| {
        let (next, id) = spool.next_after(position)?;
        position = Some(next);
        let game = spool.read(next).unwrap();
        assert_eq!(game.id, id.0.to_vec());
        Some(game.game_number)
    })
    .collect()
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "lock")
        .collect();
    names.sort();
    names
}

#[test]
fn games_are_read_in_order_and_removed_when_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let (spool, _) = open(folder.path());
    spool.append(&[game(5), game(3)]).unwrap();
    spool.append(&[game(9)]).unwrap();
    spool.append(&[game(1), game(2), game(7)]).unwrap();
    assert_eq!(waiting(&spool), [5, 3, 9, 1, 2, 7]);
    assert!(spool.acknowledge(game(3).id).unwrap());
    assert!(!spool.acknowledge(game(3).id).unwrap(), "only once");
    assert!(spool.acknowledge(game(9).id).unwrap());
    assert_eq!(waiting(&spool), [5, 1, 2, 7]);
    assert_eq!(spool.size().games, 4);
    drop(spool);

    // A file is removed with the last of its games: 3 shares a file with 5 and is sent again, 9 was alone.
    let (spool, recovered) = open(folder.path());
    assert_eq!(
        recovered,
        Recovered {
            games: 5,
            damage: vec![]
        }
    );
    assert_eq!(waiting(&spool), [5, 3, 1, 2, 7]);
    for number in [7, 5, 2, 3, 1] {
        assert!(spool.acknowledge(game(number).id).unwrap());
    }
    assert_eq!(spool.size(), Size::default());
    assert_eq!(files(folder.path()), Vec::<String>::new());
    spool.append(&[game(11)]).unwrap();
    assert_eq!(waiting(&spool), [11]);
}

#[test]
fn a_spool_of_a_newer_build_is_refused_and_nothing_is_changed() {
    for name in ["0000000000000002.games", "0000000000000002.tmp"] {
        let folder = tempfile::tempdir().unwrap();
        let (spool, _) = open(folder.path());
        spool.append(&[game(5), game(3)]).unwrap();
        drop(spool);
        let mut bytes = Vec::new();
        frame::append(GAME, &[&game(9).bytes], &mut bytes);
        frame::append(b'Q', &[b"unknown"], &mut bytes);
        fs::write(folder.path().join(name), &bytes).unwrap();
        let before = files(folder.path());
        let error = reopened(folder.path()).unwrap_err();
        assert!(error.to_string().contains("a newer one"), "{error}");
        assert_eq!(files(folder.path()), before);
        assert_eq!(fs::read(folder.path().join(name)).unwrap(), bytes);
    }
}

#[test]
fn a_file_cut_anywhere_keeps_its_whole_games() {
    let source = tempfile::tempdir().unwrap();
    let (spool, _) = open(source.path());
    spool.append(&[game(1), game(2), game(3)]).unwrap();
    spool.append(&[game(4)]).unwrap();
    drop(spool);
    let first = fs::read(source.path().join("0000000000000001.games")).unwrap();
    let second = fs::read(source.path().join("0000000000000002.games")).unwrap();
    let ends: Vec<usize> = frame::ranges(&first).map(|(range, _)| range.end).collect();

    for is_unfinished in [false, true] {
        for cut in 0..=first.len() {
            let folder = tempfile::tempdir().unwrap();
            let extension = if is_unfinished { "tmp" } else { "games" };
            let name = format!("0000000000000001.{extension}");
            fs::write(folder.path().join(name), &first[..cut]).unwrap();
            fs::write(folder.path().join("0000000000000002.games"), &second).unwrap();
            let (spool, recovered) = open(folder.path());
            let whole = ends.iter().filter(|&&end| end <= cut).count() as u64;
            let expected: Vec<u64> = (1..=whole).chain([4]).collect();
            assert_eq!(waiting(&spool), expected, "cut at {cut}");
            assert_eq!(recovered.games, whole + 1);
            // An unfinished file may end anywhere; a finished one may not.
            let is_torn = !is_unfinished && cut > 0 && !ends.contains(&cut);
            assert_eq!(recovered.damage.len(), usize::from(is_torn), "cut at {cut}");
            for number in expected {
                spool.acknowledge(game(number).id).unwrap();
            }
            let damaged = folder.path().join("damaged/0000000000000001.games");
            assert_eq!(damaged.exists(), is_torn, "cut at {cut}");
            assert_eq!(
                files(folder.path()).is_empty(),
                !is_torn,
                "{:?}",
                files(folder.path())
            );
        }
    }
}

#[test]
fn a_damaged_game_is_skipped_reported_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (spool, _) = open(folder.path());
    spool.append(&[game(1), game(2), game(3)]).unwrap();
    drop(spool);
    let path = folder.path().join("0000000000000001.games");
    let good = fs::read(&path).unwrap();
    let (second, _) = frame::ranges(&good).nth(1).unwrap();
    let mut bad = good.clone();
    bad[second.end - 1] ^= 1;
    fs::write(&path, &bad).unwrap();

    let (spool, recovered) = open(folder.path());
    assert_eq!(waiting(&spool), [1, 3]);
    assert_eq!(recovered.damage.len(), 1);
    assert!(
        recovered.damage[0].contains(&format!("{second:?} (wrong checksum)")),
        "{recovered:?}"
    );
    spool.acknowledge(game(1).id).unwrap();
    spool.acknowledge(game(3).id).unwrap();
    let kept = folder.path().join("damaged/0000000000000001.games");
    assert_eq!(fs::read(&kept).unwrap(), bad);
    assert_eq!(spool.size().set_aside, 4096);
    drop(spool);

    // The next file does not get the name of the damaged one.
    let (spool, recovered) = open(folder.path());
    assert_eq!(recovered, Recovered::default());
    spool.append(&[game(4)]).unwrap();
    assert!(folder.path().join("0000000000000002.games").exists());

    // Later damage is found when the game is read.
    let path = folder.path().join("0000000000000002.games");
    fs::write(&path, b"something else entirely").unwrap();
    let (position, _) = spool.next_after(None).unwrap();
    assert!(spool.read(position).is_err());
    assert_eq!(spool.next_after(None), None);
    assert!(folder.path().join("damaged/0000000000000002.games").exists());
    assert_eq!(spool.size().set_aside, 8192);
    // A user removes the damaged files.
    fs::remove_dir_all(folder.path().join("damaged")).unwrap();
    spool.wait_for_room(Duration::ZERO);
    assert_eq!(spool.size(), Size::default());
}

#[test]
fn a_refused_game_is_kept_apart() {
    let folder = tempfile::tempdir().unwrap();
    let (spool, _) = open(folder.path());
    spool.append(&[game(1), game(2)]).unwrap();
    let path = spool.refuse(game(1).id, "too odd").unwrap();
    assert_eq!(waiting(&spool), [2]);
    let kept = fs::read(&path).unwrap();
    assert_eq!(folder::game(&kept).unwrap().game_number, 1);
    assert_eq!(fs::read_to_string(path.with_extension("txt")).unwrap(), "too odd");
    assert!(spool.refuse(game(1).id, "again").is_err());
    spool.acknowledge(game(2).id).unwrap();
    assert_eq!(spool.size().set_aside, 8192);
    drop(spool);
    let (spool, recovered) = open(folder.path());
    assert_eq!((recovered.games, spool.size().set_aside), (0, 8192));
}

#[test]
fn a_second_process_cannot_open_the_spool() {
    let folder = tempfile::tempdir().unwrap();
    let (spool, _) = open(folder.path());
    let error = Spool::open(folder.path().into(), 1).unwrap_err().to_string();
    assert!(error.contains("another running actor"), "{error}");
    drop(spool);
    open(folder.path());
}

#[test]
fn failing_writes_pause_self_play_until_they_succeed() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("spool");
    let (spool, _) = open(&folder);
    let spool = Arc::new(spool);
    let metrics = Arc::new(Metrics::default());
    let stop = CancellationToken::new();
    let (games, writer) = start_writer(Arc::clone(&spool), 2, Arc::clone(&metrics), stop).unwrap();
    games.send(game(1)).unwrap();
    while spool.size().games < 1 {
        thread::yield_now();
    }
    durable::rename(&folder, parent.path().join("away")).unwrap();
    games.send(game(2)).unwrap();
    while metrics.paused.get() == 0 {
        thread::yield_now();
    }
    // The writer holds one game, the queue two; the next sender blocks.
    games.send(game(3)).unwrap();
    games.send(game(4)).unwrap();
    assert!(games.try_send(game(5)).is_err());
    durable::rename(parent.path().join("away"), &folder).unwrap();
    games.send(game(5)).unwrap();
    drop(games);
    writer.join().unwrap().unwrap();
    assert_eq!(waiting(&spool), [1, 2, 3, 4, 5]);
    assert_eq!((metrics.paused.get(), metrics.games.get()), (0, 5));
}

#[test]
fn games_lost_at_shutdown_are_counted() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("spool");
    let (spool, _) = open(&folder);
    let stop = CancellationToken::new();
    let (games, writer) = start_writer(Arc::new(spool), 4, Arc::default(), stop.clone()).unwrap();
    durable::rename(&folder, parent.path().join("away")).unwrap();
    for number in 0..3 {
        games.send(game(number)).unwrap();
    }
    stop.cancel();
    drop(games);
    let lost = writer.join().unwrap().unwrap_err();
    let lost = format!("{lost:#}");
    assert!(
        lost.starts_with("3 finished games are lost") && lost.contains("cannot write"),
        "{lost}"
    );
}

#[test]
fn a_full_spool_accepts_the_remaining_games_at_shutdown() {
    let folder = tempfile::tempdir().unwrap();
    let spool = Arc::new(Spool::open(folder.path().into(), 4096).unwrap().0);
    let metrics = Arc::new(Metrics::default());
    let stop = CancellationToken::new();
    let (games, writer) = start_writer(Arc::clone(&spool), 8, Arc::clone(&metrics), stop.clone()).unwrap();
    spool.append(&[game(0)]).unwrap();
    games.send(game(1)).unwrap();
    while metrics.paused.get() == 0 {
        thread::yield_now();
    }
    assert!(spool.is_full());
    games.send(game(2)).unwrap();
    stop.cancel();
    drop(games);
    writer.join().unwrap().unwrap();
    assert_eq!(waiting(&spool), [0, 1, 2]);
}

/// Environment variable with the folder that the killed process writes to.
const CHILD: &str = "MINUET_TEST_SPOOL";

#[test]
#[ignore = "is run, and killed, by the next test"]
fn appends_until_killed() {
    let Some(folder) = std::env::var_os(CHILD) else {
        return;
    };
    let (spool, _) = open(Path::new(&folder));
    let first = waiting(&spool).into_iter().max().map_or(0, |last| last + 1);
    for number in (first..).step_by(3) {
        let games: Vec<Finished> = (number..number + 3).map(game).collect();
        spool.append(&games).unwrap();
        println!("durable {}", number + 2);
    }
}

#[test]
fn a_killed_process_loses_no_game_that_was_durable() {
    let folder = tempfile::tempdir().unwrap();
    let mut promised = None;
    for round in 0..6 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "spool::tests::appends_until_killed",
                "--exact",
                "--ignored",
                "--nocapture",
            ])
            .env(CHILD, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut durable = lines
            .map_while(Result::ok)
            .filter_map(|line| line.strip_prefix("durable ")?.parse::<u64>().ok());
        for _ in 0..3 + round {
            promised = Some(durable.next().unwrap());
        }
        child.kill().unwrap();
        // Lines written before the kill count as well.
        promised = durable.last().or(promised);
        child.wait().unwrap();
        let (spool, recovered) = open(folder.path());
        let games = waiting(&spool);
        assert!(games.is_sorted() && recovered.damage.is_empty(), "{recovered:?}");
        let found: HashSet<u64> = games.into_iter().collect();
        assert!((0..=promised.unwrap()).all(|number| found.contains(&number)));
    }
}
