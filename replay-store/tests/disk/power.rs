//! Loss of power at each operation of a store in turn, and repeated losses of power on the same disk.

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::{
    Story, open, runtime,
    simulated::{Fault, Simulated},
};

/// Runs a store until power is lost at operation `at`. Returns the disk after the loss.
fn until_power_is_lost(disk: &Simulated, story: &mut Story, at: u64, seed: u64) -> Simulated {
    let runtime = runtime();
    disk.inject(Fault::Power(at));
    if let Ok(store) = open(disk) {
        story.failed = false;
        story.live(&store, &runtime, 12);
        // Closing may fail as well.
        let _ = store.close();
    }
    disk.lose_power(seed)
}

#[test]
fn a_loss_of_power_at_any_operation_loses_no_acknowledged_game() {
    // Counts the operations of a run without faults.
    let disk = Simulated::default();
    disk.inject(Fault::None);
    let mut story = Story::default();
    let store = open(&disk).unwrap();
    story.live(&store, &runtime(), 12);
    store.close().unwrap();
    let (operations, _) = disk.operations();
    assert!(operations > 60, "{operations}");
    let (mut crashes, mut acknowledged) = (0, 0);
    for at in 0..operations {
        for seed in 0..4 {
            let mut story = Story::default();
            let left = until_power_is_lost(&Simulated::default(), &mut story, at, seed * 1_000 + at);
            let store = open(&left).unwrap_or_else(|error| panic!("operation {at}, seed {seed}: {error}"));
            story.holds(&store, &format!("operation {at}, seed {seed}"));
            crashes += 1;
            acknowledged += story.acknowledged.len();
            // The store continues.
            story.failed = false;
            story.live(&store, &runtime(), 2);
            assert!(!story.failed);
            store.close().unwrap();
        }
    }
    println!("{crashes} losses of power, {acknowledged} games acknowledged before them, none lost");
}

#[test]
fn repeated_losses_of_power_lose_no_acknowledged_game() {
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let mut losses = 0;
    for life in 0..8 {
        let mut disk = Simulated::default();
        let mut story = Story::default();
        for round in 0..12 {
            let at = random.random_range(0..140);
            disk = until_power_is_lost(&disk, &mut story, at, random.random());
            losses += 1;
            // Opening may be interrupted several times.
            let copy = disk.lose_power(0);
            let store = open(&copy).unwrap_or_else(|error| panic!("life {life}, round {round}: {error}"));
            story.holds(&store, &format!("life {life}, round {round}"));
            drop(store);
        }
    }
    println!("{losses} losses of power in 8 lives");
}
