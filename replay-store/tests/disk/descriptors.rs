//! A process without file descriptors: games are stored or refused temporarily, and the store continues.

use replay_store::log::files::Files as _;

use crate::{
    Story, open, runtime, settings,
    simulated::{Fault, Simulated},
};

#[test]
fn without_file_descriptors_games_are_refused_and_later_stored() {
    let disk = Simulated::default();
    disk.inject(Fault::None);
    let runtime = runtime();
    let mut story = Story::default();
    let store = open(&disk).unwrap();
    story.live(&store, &runtime, 6);
    assert!(story.refused.is_empty());
    let (mut stored, mut refused) = (0, 0);
    for round in 0..60u64 {
        // Descriptors run out before or while a volume is started or removed.
        disk.limit_descriptors(Some(round % 12));
        let before = story.acknowledged.len();
        story.live(&store, &runtime, 6);
        assert!(!story.failed, "round {round}: the store continues");
        stored += story.acknowledged.len() - before;
        refused += story.refused.len();
        story.refused.clear();
        // Power may be lost in the meantime.
        let left = disk.lose_power(round);
        let found = open(&left).unwrap();
        story.holds(&found, &format!("round {round}"));
        found.close().unwrap();
        disk.limit_descriptors(None);
        let before = story.acknowledged.len();
        story.live(&store, &runtime, 3);
        let now = story.acknowledged.len();
        assert_eq!(now, before + 9, "round {round}: games are stored again");
    }
    assert!(
        stored > 300 && refused > 100,
        "{stored} stored, {refused} refused"
    );
    let volumes = disk.list(&settings().folder.join("volumes")).unwrap();
    assert!(
        volumes.iter().all(|volume| volume.path.extension().is_none()),
        "{volumes:?}"
    );
    store.close().unwrap();
    let store = open(&disk).unwrap();
    story.holds(&store, "opened again");
    store.close().unwrap();
}
