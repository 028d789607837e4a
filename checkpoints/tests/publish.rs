//! Publishing with interruptions, competitors and readers: a checkpoint is visible as a whole or not at all.

use std::{fs, sync::atomic::Ordering, time::Duration};

use crate::common::{Faulty, draft, files, folder, scenarios};
use bytes::Bytes;
use checkpoints::{Error, LATEST, MODEL, OPTIMIZER, Repository, WEIGHTS};
use object_store::{memory::InMemory, path::Path};

#[tokio::test]
async fn a_published_checkpoint_is_fetched_unchanged() {
    let (_home, repository) = folder();
    scenarios::a_published_checkpoint_is_fetched_unchanged(repository).await;
}

#[tokio::test(start_paused = true)]
async fn an_interruption_at_any_put_leaves_the_last_checkpoint_and_can_be_repeated() {
    // Three files, the manifest, the label: five puts.
    for puts in 0..5 {
        let store = Faulty::new(InMemory::new());
        let repository = Repository::with_store(store.clone(), Path::default());
        let old = repository.publish(draft(1), files(1)).await.unwrap();
        repository.set_label(LATEST, &old).await.unwrap();

        let publish = async {
            let version = repository.publish(draft(2), files(2)).await.unwrap();
            repository.set_label(LATEST, &version).await.unwrap();
        };
        store.puts_left.store(puts, Ordering::SeqCst);
        assert!(
            tokio::time::timeout(Duration::from_millis(50), publish)
                .await
                .is_err()
        );
        store.puts_left.store(usize::MAX, Ordering::SeqCst);

        let latest = repository.resolve(LATEST).await.unwrap();
        assert_eq!(latest.version, old, "after {puts} puts");
        let visible = repository.list().await.unwrap();
        assert_eq!(visible.len(), if puts < 4 { 1 } else { 2 }, "after {puts} puts");
        for manifest in visible {
            for name in [MODEL, WEIGHTS, OPTIMIZER] {
                repository.fetch(&manifest, name).await.unwrap();
            }
        }

        let version = repository.publish(draft(2), files(2)).await.unwrap();
        repository.set_label(LATEST, &version).await.unwrap();
        assert_eq!(repository.resolve(LATEST).await.unwrap().version, version);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn readers_during_publishing_see_whole_checkpoints_only() {
    let (_home, repository) = folder();
    scenarios::readers_during_publishing_see_whole_checkpoints_only(repository, 20).await;
}

#[tokio::test]
async fn damaged_bytes_are_refused() {
    let (home, repository) = folder();
    let version = repository.publish(draft(3), files(3)).await.unwrap();
    let manifest = repository.manifest(&version).await.unwrap();
    let file = home.path().join(format!("store/versions/{version}/{WEIGHTS}"));
    let good = fs::read(&file).unwrap();

    let mut bad = good.clone();
    bad[1234] ^= 1;
    fs::write(&file, &bad).unwrap();
    assert!(matches!(
        repository.fetch(&manifest, WEIGHTS).await,
        Err(Error::Damaged { reason, .. }) if reason.contains("sha-256")
    ));
    fs::write(&file, &good[..1999]).unwrap();
    assert!(matches!(
        repository.fetch(&manifest, WEIGHTS).await,
        Err(Error::Damaged { .. })
    ));
    fs::remove_file(&file).unwrap();
    assert!(matches!(
        repository.fetch(&manifest, WEIGHTS).await,
        Err(Error::NotFound { .. })
    ));
    fs::write(&file, &good).unwrap();
    assert!(repository.fetch(&manifest, WEIGHTS).await.is_ok());
}

#[tokio::test]
async fn two_publishers_of_one_version_end_with_one_whole_checkpoint() {
    let (_home, repository) = folder();
    scenarios::two_publishers_of_one_version_end_with_one_whole_checkpoint(repository).await;
}

#[tokio::test(start_paused = true)]
async fn files_of_competing_publishers_never_mix() {
    // For every interleaving, a visible manifest fits the files next to it.
    for pause_at in 0..4 {
        let store = Faulty::new(InMemory::new());
        let repository = Repository::with_store(store.clone(), Path::default());
        let mut others = files(5);
        others[1].1 = Bytes::from_static(b"other weights");
        store.puts_left.store(pause_at, Ordering::SeqCst);
        let slow = repository.publish(draft(5), files(5));
        assert!(
            tokio::time::timeout(Duration::from_millis(20), slow)
                .await
                .is_err()
        );
        store.puts_left.store(usize::MAX, Ordering::SeqCst);
        let fast = repository.publish(draft(5), others).await;
        if pause_at >= 2 {
            assert!(matches!(fast, Err(Error::Busy { .. })), "{pause_at}: {fast:?}");
        } else {
            fast.unwrap();
        }
        let again = repository.publish(draft(5), files(5)).await;
        assert_eq!(again.is_ok(), pause_at >= 2);
        for manifest in repository.list().await.unwrap() {
            for name in [MODEL, WEIGHTS, OPTIMIZER] {
                repository.fetch(&manifest, name).await.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn drafts_and_files_that_are_not_a_checkpoint_are_refused() {
    let (_home, repository) = folder();
    let only_weights = vec![(WEIGHTS, Bytes::new())];
    assert!(matches!(
        repository.publish(draft(1), only_weights).await,
        Err(Error::Refused(_))
    ));
    for name in ["manifest.json", "../x", "a/b", ""] {
        let files = vec![(MODEL, Bytes::new()), (name, Bytes::new())];
        assert!(repository.publish(draft(1), files).await.is_err(), "{name}");
    }
    let twice = vec![(MODEL, Bytes::new()), (MODEL, Bytes::new())];
    assert!(matches!(
        repository.publish(draft(1), twice).await,
        Err(Error::Refused(_))
    ));
    let missing = "000000000001-00000000".parse().unwrap();
    assert!(matches!(
        repository.set_label(LATEST, &missing).await,
        Err(Error::NotFound { .. })
    ));
    assert!(matches!(
        repository.set_label("../up", &missing).await,
        Err(Error::Name(_))
    ));
}
