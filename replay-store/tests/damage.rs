//! Damage on the disk loses only the damaged games, and is reported.

use std::{collections::BTreeSet, fs};

use crate::common::{copy_folder, id, logs, open, put_all_blocking, settings, synthetic};
use proto::v1::Game;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use replay_store::{settings::Settings, store::GetError, store::append::Verdict};

/// Creates and closes a store of `count` games in many commits. Returns the games.
fn filled(settings: &Settings, count: u64) -> Vec<Game> {
    let games: Vec<Game> = (0..count)
        .map(|number| synthetic::game(number, 30 + number as usize % 50))
        .collect();
    let store = open(settings);
    put_all_blocking(&store, &games);
    store.close().unwrap();
    games
}

/// Opens the store, and checks that every game is either equal to the stored one or reported lost. Returns the number of lost games.
fn count_losses(settings: &Settings, games: &[Game], context: &str) -> u64 {
    // With an index, damage is found only when the game is read.
    let store = open(settings);
    let early = store.losses().to_vec();
    for game in games {
        match store.get(&id(game)) {
            Ok(found) => assert_eq!(&found, game, "{context}"),
            Err(GetError::Unknown | GetError::Damaged { .. }) => {}
            Err(error) => panic!("{context}: {error}"),
        }
    }
    store.close().unwrap();

    let store = open(settings);
    let losses: Vec<_> = early.iter().chain(store.losses()).copied().collect();
    let reported: BTreeSet<u64> = losses.iter().map(|loss| loss.sequence).collect();
    assert_eq!(
        reported.len(),
        losses.len(),
        "{context}: a loss is reported twice"
    );
    let mut missing = 0;
    for game in games {
        match store.get(&id(game)) {
            Ok(found) => assert_eq!(&found, game, "{context}"),
            Err(GetError::Unknown) => missing += 1,
            Err(error) => panic!("{context}: {error}"),
        }
    }
    assert_eq!(
        missing,
        reported.len(),
        "{context}: losses are reported, all and only"
    );
    for loss in losses {
        if let Some(named) = loss.id {
            let lost = games.iter().find(|game| id(game) == named).unwrap();
            assert_eq!(store.get(&named), Err(GetError::Unknown), "{context}");
            assert_eq!(lost.id.len(), 16);
        }
    }
    let stats = store.stats();
    assert_eq!(stats.damaged_games, reported.len() as u64, "{context}");
    assert_eq!(stats.games_inserted, games.len() as u64, "{context}");
    if stats.games > 0 {
        assert!(store.batch(1, 1, 200).is_ok(), "{context}");
    }
    // Lost games may be sent again and get new sequence numbers.
    if let Some(again) = games.iter().find(|game| store.get(&id(game)).is_err()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(
            runtime.block_on(store.put(again)).unwrap(),
            Verdict::Stored,
            "{context}"
        );
        assert_eq!(&store.get(&id(again)).unwrap(), again, "{context}");
    }
    store.close().unwrap();
    // A loss is reported once.
    let store = open(settings);
    assert_eq!(store.losses(), [], "{context}");
    assert_eq!(store.stats().damaged_games, reported.len() as u64, "{context}");
    store.close().unwrap();
    reported.len() as u64
}

#[test]
fn flipped_bytes_lose_only_the_games_that_contain_them() {
    let folder = tempfile::tempdir().unwrap();
    let whole = settings(&folder.path().join("whole"), 4_000);
    let games = filled(&whole, 70);
    let mut random = ChaCha8Rng::seed_from_u64(2);
    let mut lost = Vec::new();
    for round in 0..16 {
        let hurt = settings(&folder.path().join("hurt"), 4_000);
        copy_folder(&whole.folder, &hurt.folder);
        let flips = 1 + round % 3;
        for _ in 0..flips {
            let files = logs(&hurt);
            let file = &files[random.random_range(0..files.len())];
            let mut bytes = fs::read(file).unwrap();
            let written = bytes.iter().rposition(|&byte| byte != 0).unwrap();
            let at = random.random_range(0..written);
            bytes[at] ^= 1 << random.random_range(0..8);
            fs::write(file, bytes).unwrap();
        }
        let gone = count_losses(&hurt, &games, &format!("round {round}"));
        assert!(gone <= flips, "round {round}: {flips} flips cost {gone} games");
        lost.push(gone);
        fs::remove_dir_all(folder.path().join("hurt")).unwrap();
    }
    println!("games lost by 1, 2, 3 flips in turn: {lost:?}");
}

#[test]
fn zeroed_sectors_lose_only_the_games_in_them() {
    let folder = tempfile::tempdir().unwrap();
    let whole = settings(&folder.path().join("whole"), 4_000);
    let games = filled(&whole, 70);
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let mut lost = Vec::new();
    for round in 0..12 {
        let hurt = settings(&folder.path().join("hurt"), 4_000);
        copy_folder(&whole.folder, &hurt.folder);
        let files = logs(&hurt);
        let file = &files[random.random_range(0..files.len())];
        let mut bytes = fs::read(file).unwrap();
        let written = bytes.iter().rposition(|&byte| byte != 0).unwrap();
        let at = random.random_range(0..written) / 4096 * 4096;
        let end = (at + 4096).min(bytes.len());
        bytes[at..end].fill(0);
        fs::write(file, bytes).unwrap();
        let gone = count_losses(&hurt, &games, &format!("round {round}"));
        // The 4 KiB contain at most five whole frames, because each has more than 700 bytes, and parts of two others.
        assert!(gone <= 7, "round {round}: {gone} games");
        lost.push(gone);
        fs::remove_dir_all(folder.path().join("hurt")).unwrap();
    }
    println!("games lost by a zeroed page: {lost:?}");
}

#[test]
fn a_truncated_log_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let whole = settings(&folder.path().join("whole"), 4_000);
    let games = filled(&whole, 67);
    // The newest volume, and the last sealed one.
    for youngest in [1, 2] {
        let mut lost = Vec::new();
        for keep in [0.0, 0.3, 0.6, 0.9] {
            let hurt = settings(&folder.path().join("hurt"), 4_000);
            copy_folder(&whole.folder, &hurt.folder);
            let files = logs(&hurt);
            let file = &files[files.len() - youngest];
            let bytes = fs::read(file).unwrap();
            let written = bytes.iter().rposition(|&byte| byte != 0).unwrap();
            fs::write(file, &bytes[..(written as f64 * keep) as usize]).unwrap();
            lost.push(count_losses(&hurt, &games, &format!("{keep} kept")));
            fs::remove_dir_all(folder.path().join("hurt")).unwrap();
        }
        assert!(
            lost[0] > 0 && lost.is_sorted_by(|more, less| more >= less),
            "{lost:?}"
        );
        println!("games lost with 0, 0.3, 0.6, 0.9 of a file kept: {lost:?}");
    }
}

#[test]
fn loss_or_damage_of_other_files_loses_no_game() {
    let folder = tempfile::tempdir().unwrap();
    let whole = settings(&folder.path().join("whole"), 1_500);
    let games = filled(&whole, 70);
    let expected = {
        let store = open(&whole);
        let stats = store.stats();
        store.close().unwrap();
        stats
    };
    let hurt = settings(&folder.path().join("hurt"), 1_500);
    let hurts: [(&str, &dyn Fn()); 2] = [
        ("no ledger file", &|| {
            fs::remove_file(hurt.folder.join("ledger")).unwrap()
        }),
        ("a ledger file of noise", &|| {
            fs::write(hurt.folder.join("ledger"), [0x55; 8192]).unwrap();
        }),
    ];
    for (what, damage) in hurts {
        copy_folder(&whole.folder, &hurt.folder);
        damage();
        let store = open(&hurt);
        assert_eq!(store.losses(), [], "{what}");
        let stats = store.stats();
        assert_eq!(
            (
                stats.games,
                stats.window_positions,
                stats.games_inserted,
                stats.positions_inserted
            ),
            (
                expected.games,
                expected.window_positions,
                expected.games_inserted,
                expected.positions_inserted
            ),
            "{what}"
        );
        assert_eq!(&store.get(&id(&games[69])).unwrap(), &games[69], "{what}");
        store.close().unwrap();
        fs::remove_dir_all(&hurt.folder).unwrap();
    }
}

#[test]
fn a_removed_volume_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path(), 4_000);
    let games = filled(&settings, 70);
    let middle = logs(&settings)[2].parent().unwrap().to_path_buf();
    fs::remove_dir_all(middle).unwrap();
    let lost = count_losses(&settings, &games, "a volume removed");
    assert!((5..20).contains(&lost), "{lost} games lost");
}
