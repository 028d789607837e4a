//! A store that lost power during a commit and starts on a full disk: it serves all acknowledged games.

use replay_store::{error::OpenError, error::VolumeError, store::SampleError};

use crate::{
    Story, open, runtime,
    simulated::{Fault, Simulated},
};

#[test]
fn a_store_starts_on_a_full_disk_after_any_loss_of_power() {
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
            // The first run creates all files; power is lost in the second run.
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
                    // Opening it again on the full disk has the same result.
                    let store = open(&left).unwrap_or_else(|error| panic!("{context}, again: {error}"));
                    story.holds(&store, &context);
                    starts += 1;
                }
                // Power was lost while a volume was created, and there is no space for even an empty file.
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
