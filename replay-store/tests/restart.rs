//! Restarts, retirement of games, and refusals for lack of disk space.

use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::common::{close, id, open, put_all, settings, synthetic};
use proto::v1::Game;
use replay_store::{
    log::room::{Probe, Space},
    record::filter::Filter,
    store::append::Verdict,
    store::{GetError, Opening, SampleError, Store},
};

pub fn volumes(folder: &Path) -> usize {
    std::fs::read_dir(folder.join("replay/volumes")).unwrap().count()
}

#[tokio::test(flavor = "multi_thread")]
async fn restarts_do_not_change_a_sliding_window() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path(), 2_000);
    let games: Vec<Game> = (0..400)
        .map(|number| synthetic::game(number, 15 + number as usize % 20))
        .collect();
    let mut store = open(&settings);
    for (round, part) in games.chunks(80).enumerate() {
        put_all(&store, part).await;
        let before = store.stats();
        let batch = store.batch(5, round as u64, 64).unwrap();
        let listed = store.list(0, 1000, false, &Filter::default());
        close(store);

        store = open(&settings);
        assert_eq!(store.losses(), []);
        let after = store.stats();
        assert_eq!(after.positions_sampled, 64 * (round as u64 + 1));
        assert_eq!(
            proto::v1::StatsReply {
                disk_bytes: 0,
                positions_sampled: 0,
                ..after
            },
            proto::v1::StatsReply {
                disk_bytes: 0,
                positions_sampled: 0,
                ..before
            }
        );
        assert_eq!(store.list(0, 1000, false, &Filter::default()), listed);
        assert!(round == 0 || (2_000..2_040).contains(&after.window_positions));
        assert_eq!(batch.window_positions, after.window_positions);
    }
    // A volume ends with the commit that brings it to an eighth of the window, and a commit holds up to seven games of at most 34
    // positions. So a window takes six to eight volumes. One more is being filled, and up to two are not completely retired yet.
    assert!(
        (5..=11).contains(&volumes(folder.path())),
        "{}",
        volumes(folder.path())
    );
    let stats = store.stats();
    assert_eq!(stats.games_inserted, 400);
    let positions: usize = games.iter().map(|game| game.actions.len()).sum();
    assert_eq!(stats.positions_inserted, positions as u64);

    // Games of removed volumes are unknown. A game of the window that is sent again is a duplicate, after a restart too.
    assert_eq!(store.get(&id(&games[0])), Err(GetError::Unknown));
    assert_eq!(store.get(&id(&games[399])).unwrap(), games[399]);
    assert_eq!(store.put(&games[399]).await.unwrap(), Verdict::Duplicate);
    close(store);
    let store = open(&settings);
    assert_eq!(store.put(&games[398]).await.unwrap(), Verdict::Duplicate);
    assert_eq!(store.stats().duplicates, 2);
    close(store);
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_of_a_seed_are_equal_after_a_restart_and_without_a_cache() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(folder.path(), 2_000);
    let store = open(&settings);
    assert_eq!(store.batch(1, 1, 5), Err(SampleError::Empty));
    let games: Vec<Game> = (0..150).map(|number| synthetic::game(number, 20)).collect();
    put_all(&store, &games).await;
    let batch = store.batch(3, 9, 500).unwrap();
    close(store);
    for cache_bytes in [settings.cache_bytes, 0] {
        settings.cache_bytes = cache_bytes;
        let store = open(&settings);
        assert_eq!(store.batch(3, 9, 500).unwrap(), batch);
        close(store);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_smaller_window_takes_effect_and_removes_volumes() {
    let folder = tempfile::tempdir().unwrap();
    let wide = settings(folder.path(), 4_000);
    let games: Vec<Game> = (0..200).map(|number| synthetic::game(number, 20)).collect();
    let store = open(&wide);
    put_all(&store, &games).await;
    let before = store.stats();
    assert!(volumes(folder.path()) >= 8);
    close(store);
    let narrow = settings(folder.path(), 500);
    let store = open(&narrow);
    assert_eq!(store.stats().window_positions, 500);
    // The writer removes retired volumes when it starts; closing waits for this.
    close(store);
    let store = open(&narrow);
    let after = store.stats();
    assert!(volumes(folder.path()) <= 3, "{}", volumes(folder.path()));
    assert_eq!(after.positions_inserted, before.positions_inserted);
    assert_eq!(store.put(&games[199]).await.unwrap(), Verdict::Duplicate);
    close(store);
}

#[tokio::test(flavor = "multi_thread")]
async fn games_without_targets_are_retired_too() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&settings(folder.path(), 100));
    for number in 0..400 {
        let mut game = synthetic::game(number, 5);
        game.visit_counts.fill(0);
        game.visit_actions.clear();
        game.visits.clear();
        assert_eq!(store.put(&game).await.unwrap(), Verdict::Stored);
    }
    let stats = store.stats();
    assert_eq!((stats.games, stats.window_positions), (100, 0));
    assert_eq!(store.batch(1, 1, 1), Err(SampleError::Empty));
    close(store);
}

/// A disk whose free space is set by the test.
struct Disk {
    free: Arc<AtomicU64>,
    used: Arc<AtomicU64>,
}

impl Probe for Disk {
    fn space(&mut self) -> io::Result<Space> {
        Ok(Space {
            used: self.used.load(Ordering::SeqCst),
            free: self.free.load(Ordering::SeqCst),
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_games_serves_samples_and_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let (free, used) = (Arc::new(AtomicU64::new(1 << 40)), Arc::new(AtomicU64::new(0)));
    let disk = Disk {
        free: Arc::clone(&free),
        used: Arc::clone(&used),
    };
    let mut settings = settings(folder.path(), 1_000);
    settings.min_free_bytes = 256 << 20;
    settings.max_disk_bytes = 1 << 30;
    let opening = Opening {
        probe: Box::new(disk),
        ..Opening::of(&settings.folder)
    };
    let store = Store::open_with(settings, opening).unwrap();
    assert_eq!(store.put(&synthetic::game(0, 20)).await.unwrap(), Verdict::Stored);
    for (what, free_now, used_now, words) in [
        ("disk", 100 << 20, 0, "replay.min_free_mib"),
        ("limit", 1 << 40, 2 << 30, "replay.max_disk_mib"),
    ] {
        free.store(free_now, Ordering::SeqCst);
        used.store(used_now, Ordering::SeqCst);
        let game = synthetic::game(free_now - 1, 20);
        // A measurement is valid for a short time, so the first games may still be accepted.
        let mut number = 0;
        let reason = loop {
            match store
                .put(&synthetic::game(free_now + used_now + number, 20))
                .await
                .unwrap()
            {
                Verdict::Refused { reason, retry: true } => break reason,
                Verdict::Stored => number += 1,
                other => panic!("{what}: {other:?}"),
            }
        };
        assert!(reason.contains(words), "{reason}");
        assert!(store.batch(1, number, 50).is_ok());
        free.store(1 << 40, Ordering::SeqCst);
        used.store(0, Ordering::SeqCst);
        while store.put(&game).await.unwrap() != Verdict::Stored {
            tokio::task::yield_now().await;
        }
    }
    close(store);
}
