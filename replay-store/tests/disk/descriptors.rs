//! A process without file descriptors: games are refused for a while, and the store goes on.

use crate::{
    Story, open, runtime,
    simulated::{Fault, Simulated},
};

#[test]
fn without_file_descriptors_games_are_refused_and_later_stored() {
    let disk = Simulated::default();
    disk.inject(Fault::None);
    let mut story = Story::default();
    let store = open(&disk).unwrap();
    story.live(&store, &runtime(), 6);
    assert!(story.refused.is_empty());
    disk.lack_descriptors(true);
    // Enough for several volumes.
    story.live(&store, &runtime(), 12);
    assert!(!story.failed, "the store goes on");
    assert!(!story.refused.is_empty() && !story.acknowledged.is_empty());
    let (refused, acknowledged) = (story.refused.len(), story.acknowledged.len());
    disk.lack_descriptors(false);
    story.live(&store, &runtime(), 12);
    assert_eq!(story.refused.len(), refused, "games are stored again");
    assert!(story.acknowledged.len() > acknowledged + 30);
    // Power is lost, or not.
    let lost = disk.lose_power(3);
    store.close().unwrap();
    for disk in [disk, lost] {
        let store = open(&disk).unwrap();
        story.holds(&store, "after a want of descriptors");
        store.close().unwrap();
    }
}
