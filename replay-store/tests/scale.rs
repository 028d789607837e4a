//! Measures the index of a store with many small games: the time of opening with and without it, and of a page far from the beginning in
//! each order.
//!
//! `cargo test -p replay-store --test store scale -- --ignored --nocapture`; `GAMES` sets the number of games (1,000,000).

use std::{fs, time::Instant};

use proto::v1::GameSort;
use replay_store::{
    log::{
        files::Real,
        frame::Id,
        ledger::Ledger,
        volume::{Commit, NewGame, Volume},
    },
    record::{self, filter::Filter},
    store::Listing,
    window::catalog::Place,
};

use crate::common::{open, settings, synthetic};

/// Games in one volume of the measured store.
const VOLUME_GAMES: u64 = 125_000;

#[test]
#[ignore = "a measurement, which takes minutes"]
fn scale_of_the_index() {
    let games: u64 = std::env::var("GAMES")
        .ok()
        .and_then(|games| games.parse().ok())
        .unwrap_or(1_000_000);
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path(), 1 << 40);
    open(&settings).close().unwrap();
    fs::remove_dir_all(settings.folder.join("volumes")).unwrap();
    fs::remove_dir_all(settings.folder.join("index")).unwrap();
    write_volumes(&settings.folder.join("volumes"), games);

    let began = Instant::now();
    let store = open(&settings);
    println!(
        "{games} games: opened without an index in {:.2} s",
        began.elapsed().as_secs_f64()
    );
    assert_eq!(store.stats().games, games);
    let began = Instant::now();
    store.close().unwrap();
    println!("indexed in {:.1} s", began.elapsed().as_secs_f64());

    let began = Instant::now();
    let store = open(&settings);
    println!("opened with the index in {:.2} s", began.elapsed().as_secs_f64());
    assert_eq!(store.stats().games, games);
    for (sort, value) in [
        (GameSort::Time, 1_790_000_000_000 + games / 2),
        (GameSort::Length, 10),
        (GameSort::Surprise, 0.8f32.to_bits().into()),
    ] {
        let middle = Place {
            value,
            sequence: games / 2,
        };
        for after in [None, Some(middle), Some(middle), Some(middle)] {
            let listing = Listing {
                sort,
                descending: true,
                limit: 50,
                after,
            };
            let began = Instant::now();
            let page = store.page(&listing, &Filter::default());
            assert_eq!(page.games.len(), 50);
            println!(
                "{sort:?}: page {} in {:.1} ms",
                after.map_or("at the beginning", |_| "in the middle"),
                began.elapsed().as_secs_f64() * 1e3
            );
        }
    }
    store.close().unwrap();
    println!(
        "index: {} MiB, volumes: {} MiB",
        mib(&settings.folder.join("index")),
        mib(&settings.folder.join("volumes"))
    );
}

fn mib(folder: &std::path::Path) -> u64 {
    replay_store::log::room::taken(folder).unwrap() >> 20
}

/// Writes volumes of small games straight into the log.
fn write_volumes(folder: &std::path::Path, games: u64) {
    let model = synthetic::game(1, 10);
    let mut ledger = Ledger::new();
    let mut volume = None;
    let mut entries = Vec::new();
    for number in 1..=games {
        if number % VOLUME_GAMES == 1 {
            let path = folder.join(format!("{number:020}"));
            volume = Some(Volume::open(&Real, &path, number).unwrap());
        }
        let mut game = model.clone();
        let id: Id = u128::from(number)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
            .to_be_bytes();
        game.id = id.to_vec().into();
        game.finished_at_ms = 1_790_000_000_000 + number;
        game.actor = format!("actor-{}", number % 64);
        let surprise = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        game.policy_surprises = vec![surprise as f32 / 1e7; 10];
        let record = record::encode(game).unwrap();
        entries.push(NewGame {
            sequence: number,
            id,
            record,
        });
        ledger.next_sequence = number + 1;
        ledger.games_inserted = number;
        ledger.positions_inserted = number * 10;
        if entries.len() == 1_000 || number % VOLUME_GAMES == 0 || number == games {
            let commit = Commit {
                entries: &entries,
                lost: &[],
                deleted: &[],
                ledger: &ledger,
            };
            volume.as_ref().unwrap().commit(commit).unwrap();
            entries.clear();
        }
    }
}
