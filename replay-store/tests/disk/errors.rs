//! Disk errors at each operation of a store in turn: one error, or an error of all later operations.

use crate::{
    Story, open, runtime,
    simulated::{Fault, Simulated},
};

#[test]
fn a_disk_error_stops_the_store_and_loses_no_acknowledged_game() {
    let disk = Simulated::default();
    disk.inject(Fault::None);
    let store = open(&disk).unwrap();
    Story::default().live(&store, &runtime(), 8);
    store.close().unwrap();
    let (operations, _) = disk.operations();
    let (mut injected, mut stopped) = (0, 0);
    for at in 0..operations {
        for fault in [Fault::Once(at), Fault::From(at)] {
            let disk = Simulated::default();
            disk.inject(fault);
            let mut story = Story::default();
            if let Ok(store) = open(&disk) {
                story.live(&store, &runtime(), 8);
                let closed = store.close();
                stopped += usize::from(story.failed || closed.is_err());
            } else {
                stopped += 1;
            }
            let (_, failed) = disk.operations();
            // Games that are queued together are committed in groups of varying size.
            injected += failed;
            // The process ends. Another process opens the same disk without faults, once after a loss of power and once without.
            for power in [false, true] {
                let disk = if power { disk.lose_power(at) } else { disk.clone() };
                disk.inject(Fault::None);
                let store = open(&disk).unwrap_or_else(|error| panic!("{fault:?}: {error}"));
                story.holds(&store, &format!("{fault:?}, power lost: {power}"));
                store.close().unwrap();
            }
        }
    }
    println!("{injected} errors injected, {stopped} stores stopped by them, no acknowledged game lost");
    assert!(stopped > 100 && injected > 100, "{stopped} stopped");
}
