//! A store that lost power in the middle of a batch, and whose disk is full when it starts again: it serves what was acknowledged.

use replay_store::{error::OpenError, error::VolumeError, store::SampleError};

use crate::{
    Story, open, runtime,
    simulated::{Fault, Simulated},
};

#[test]
fn it_starts_on_a_disk_that_is_full_wherever_power_went() {
    let runtime = runtime();
    let disk = Simulated::default();
    disk.inject(Fault::None);
    let store = open(&disk).unwrap();
    Story::default().live(&store, &runtime, 8);
    store.close().unwrap();
    let (operations, _) = disk.operations();
    let (mut starts, mut refused, mut cut) = (0, 0, 0);
    for at in 0..operations {
        for seed in 0..4 {
            // A first life, which leaves all its files behind, and a second one, in which power goes.
            let disk = Simulated::default();
            let mut story = Story::default();
            let store = open(&disk).unwrap();
            story.live(&store, &runtime, 2);
            store.close().unwrap();
            disk.inject(Fault::Power(at));
            if let Ok(store) = open(&disk) {
                story.live(&store, &runtime, 6);
                let _ = store.close();
            }
            let left = disk.lose_power(1_000 * seed + at);
            let used = left.used();
            left.limit(Some(used));
            let context = format!("operation {at}, seed {seed}");
            match open(&left) {
                Ok(store) => {
                    story.holds(&store, &context);
                    cut += u32::from(left.used() < used);
                    match store.batch(7, 0, 10) {
                        Ok(_) => story.sampled += 10,
                        Err(error) => assert_eq!(error, SampleError::Full, "{context}"),
                    }
                    drop(store);
                    // And once more, before there is room.
                    let store = open(&left).unwrap_or_else(|error| panic!("{context}, again: {error}"));
                    story.holds(&store, &context);
                    starts += 1;
                }
                // It had begun a volume, and there is no room even for an empty file.
                Err(OpenError::Volume {
                    source: VolumeError::Full,
                    ..
                }) => refused += 1,
                Err(error) => panic!("{context}: {error}"),
            }
            left.limit(None);
            let store = open(&left).unwrap_or_else(|error| panic!("{context}, with room: {error}"));
            story.failed = false;
            story.live(&store, &runtime, 2);
            assert!(!story.failed, "{context}");
            store.close().unwrap();
            let store = open(&left).unwrap();
            story.holds(&store, &format!("{context}, with room"));
            store.close().unwrap();
        }
    }
    println!(
        "{starts} starts on a full disk, {cut} times what an interrupted batch had left was cut off; \
         {refused} times there was no room for a volume's file"
    );
    assert!(cut > 0, "nothing was ever left");
    assert!(10 * refused < starts, "{refused} of {starts}");
}
