//! No free file descriptor: games are stored or refused temporarily, and the store continues when there are descriptors again.

use crate::{Story, open, runtime, simulated::Simulated};

#[test]
fn a_store_without_descriptors_continues() {
    let disk = Simulated::default();
    let runtime = runtime();
    let mut story = Story::default();
    let store = open(&disk).unwrap();
    story.live(&store, &runtime, 5);
    let mut stored = 0;
    for round in 0..60u64 {
        // Descriptors run out before, or in the middle of, starting a volume and removing one.
        disk.limit_descriptors(Some(round % 12));
        let before = story.acknowledged.len();
        story.live(&store, &runtime, 6);
        assert!(!story.failed, "round {round}");
        stored += story.acknowledged.len() - before;
        story.refused.clear();
        // Power may be lost meanwhile.
        let left = disk.lose_power(round);
        let found = open(&left).unwrap();
        story.holds(&found, &format!("round {round}"));
        found.close().unwrap();
        disk.limit_descriptors(None);
        let before = story.acknowledged.len();
        story.live(&store, &runtime, 3);
        assert_eq!(
            story.acknowledged.len(),
            before + 9,
            "round {round}: the store recovers"
        );
    }
    // Games are refused only between a volume that could not be started and its removal.
    assert!(stored > 600, "{stored}");
    store.close().unwrap();
    let store = open(&disk).unwrap();
    story.holds(&store, "opened again");
    store.close().unwrap();
}
