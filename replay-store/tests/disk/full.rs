//! A full disk: games are refused temporarily, batches are served, and the store continues when there is space again.

use replay_store::{store::Store, store::append::Verdict};
use test_support::SmallDisk;

use crate::{
    Story, common, open, runtime,
    simulated::{Fault, Simulated},
};

#[test]
fn a_full_disk_refuses_games_and_serves_batches_until_there_is_space() {
    let disk = Simulated::default();
    let runtime = runtime();
    let mut story = Story::default();
    let store = open(&disk).unwrap();
    story.live(&store, &runtime, 5);
    let mut refused = 0;
    for round in 0..40u64 {
        // The remaining space is small and differs from round to round, so that the disk becomes full at every kind of write.
        disk.limit(Some(disk.used() + (round as usize * 613) % 6_000));
        story.live(&store, &runtime, 4);
        assert!(!story.failed, "round {round}");
        refused += std::mem::take(&mut story.refused).len();
        assert!(
            store.batch(9, round, 30).is_ok(),
            "round {round}: samples are served"
        );
        story.sampled += 30;
        // Power may be lost while the disk is full.
        let left = disk.lose_power(round);
        let found = open(&left).unwrap();
        story.holds(&found, &format!("round {round}"));
        found.close().unwrap();
        disk.limit(None);
        let before = story.acknowledged.len();
        story.live(&store, &runtime, 1);
        assert_eq!(
            story.acknowledged.len(),
            before + 3,
            "round {round}: it recovers at once"
        );
    }
    assert!(refused > 40, "{refused}");
    store.close().unwrap();
    disk.inject(Fault::None);
    let store = open(&disk).unwrap();
    story.holds(&store, "opened again");
    store.close().unwrap();
    println!(
        "{refused} games refused by a full disk, {} stored",
        story.acknowledged.len()
    );
}

#[test]
fn a_full_real_file_system_refuses_games_too() {
    let Some(small) = SmallDisk::mount(4) else {
        return;
    };
    let runtime = runtime();
    let settings = common::settings(small.path(), 1_000_000);
    let store = Store::open(settings.clone()).unwrap();
    let mut stored = Vec::new();
    let mut number = 0;
    let reason = loop {
        match runtime
            .block_on(store.put(&common::synthetic::game(number, 60)))
            .unwrap()
        {
            Verdict::Stored => stored.push(number),
            Verdict::Refused { reason, retry: true } => break reason,
            other => panic!("{other:?}"),
        }
        number += 1;
        assert!(number < 100_000, "it is never full");
    };
    assert_eq!(reason, "the disk is full");
    assert!(store.batch(1, 1, 100).is_ok());
    // Space becomes free.
    small.resize(8);
    let verdict = runtime
        .block_on(store.put(&common::synthetic::game(number, 60)))
        .unwrap();
    assert_eq!(verdict, Verdict::Stored);
    store.close().unwrap();
    let store = Store::open(settings).unwrap();
    assert_eq!(store.losses(), []);
    assert_eq!(store.stats().games, stored.len() as u64 + 1);
    store.close().unwrap();
    println!("{} games until 4 MiB were full", stored.len());
}
