//! Watching a label through failures, pruning, and swaps of labels.

use std::{sync::atomic::Ordering, time::Duration};

use crate::common::{Faulty, draft, files, folder};
use checkpoints::{Keep, LATEST, MODEL, Repository, Version};
use futures::StreamExt as _;
use object_store::{memory::InMemory, path::Path};

const POLL: Duration = Duration::from_millis(500);

async fn publish(repository: &Repository, step: u64) -> Version {
    let version = repository.publish(draft(step), files(step as u8)).await.unwrap();
    repository.set_label(LATEST, &version).await.unwrap();
    version
}

#[tokio::test(start_paused = true)]
async fn a_watch_yields_each_version_once_and_the_newest_of_several() {
    let repository = Repository::with_store(Faulty::new(InMemory::new()), Path::default());
    let mut watch = repository.watch(LATEST, POLL);
    let waiting = tokio::time::timeout(Duration::from_secs(10), watch.next()).await;
    assert!(waiting.is_err(), "there is no version yet");

    let first = publish(&repository, 1).await;
    assert_eq!(watch.next().await.unwrap().version, first);
    let waiting = tokio::time::timeout(Duration::from_secs(10), watch.next()).await;
    assert!(waiting.is_err(), "one version was yielded twice");

    publish(&repository, 2).await;
    let third = publish(&repository, 3).await;
    assert_eq!(watch.next().await.unwrap().version, third);

    repository.set_label(LATEST, &first).await.unwrap();
    assert_eq!(
        watch.next().await.unwrap().version,
        first,
        "a label moved back is followed"
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_survives_an_outage_and_polls_less_often() {
    let store = Faulty::new(InMemory::new());
    let repository = Repository::with_store(store.clone(), Path::default());
    let mut watch = repository.watch(LATEST, POLL);
    let first = publish(&repository, 1).await;
    assert_eq!(watch.next().await.unwrap().version, first);

    store.is_down.store(true, Ordering::SeqCst);
    let reads = store.reads.load(Ordering::SeqCst);
    let waiting = tokio::time::timeout(Duration::from_secs(3600), watch.next()).await;
    assert!(waiting.is_err());
    let asked = store.reads.load(Ordering::SeqCst) - reads;
    // Every half second would be 7200 times; every 30 seconds is 120.
    assert!((100..150).contains(&asked), "asked {asked} times in an hour");

    store.is_down.store(false, Ordering::SeqCst);
    let second = publish(&repository, 2).await;
    assert_eq!(watch.next().await.unwrap().version, second);
}

#[tokio::test]
async fn pruning_keeps_the_newest_the_labelled_and_the_resumable_checkpoint() {
    let (home, repository) = folder();
    let mut versions = Vec::new();
    for step in 0..6 {
        versions.push(publish(&repository, step).await);
    }
    repository.set_label("best", &versions[1]).await.unwrap();
    // The newest checkpoint stays even if the label points at an older one.
    repository.set_label(LATEST, &versions[0]).await.unwrap();

    assert!(repository.prune(0).await.unwrap().checkpoints.is_empty());
    let pruned = repository.prune(2).await.unwrap();
    assert_eq!(pruned.checkpoints, [versions[3].clone(), versions[2].clone()]);
    let left: Vec<Version> = repository
        .list()
        .await
        .unwrap()
        .into_iter()
        .map(|manifest| manifest.version)
        .collect();
    assert_eq!(
        left,
        [&versions[0], &versions[1], &versions[4], &versions[5]].map(Clone::clone)
    );
    assert_eq!(repository.newest().await.unwrap().unwrap().version, versions[5]);
    let folders = std::fs::read_dir(home.path().join("store/versions"))
        .unwrap()
        .count();
    assert_eq!(folders, 4, "the folders are gone as well");
    for manifest in repository.list().await.unwrap() {
        repository.fetch(&manifest, MODEL).await.unwrap();
    }
}

#[tokio::test]
async fn pruning_keeps_older_checkpoints_within_a_budget() {
    let (_home, repository) = folder();
    for step in 0..10 {
        publish(&repository, step).await;
    }
    let steps_left = async |more, from_step| {
        let newest = 2;
        let keep = Keep {
            newest,
            more,
            from_step,
        };
        repository.prune(keep).await.unwrap();
        let left = repository.list().await.unwrap();
        let mut left: Vec<u64> = left.iter().map(|manifest| manifest.draft.step).collect();
        left.sort_unstable();
        left
    };
    // Steps 2 to 7 are needed, and all of them are within the budget.
    assert_eq!(steps_left(7, 2).await, [2, 3, 4, 5, 6, 7, 8, 9]);
    // The newest of them stay within a smaller budget.
    assert_eq!(steps_left(4, 2).await, [4, 5, 6, 7, 8, 9]);
    assert_eq!(steps_left(4, 7).await, [7, 8, 9]);
    assert_eq!(steps_left(4, 9).await, [8, 9]);
}

#[tokio::test(start_paused = true)]
async fn the_requests_of_a_pruning_do_not_grow_with_the_number_of_checkpoints() {
    for keep in [0, 3, 1000] {
        let store = Faulty::new(InMemory::new());
        let repository = Repository::with_store(store.clone(), Path::default());
        let prune = async || {
            let before = (
                store.reads.load(Ordering::SeqCst),
                store.listings.load(Ordering::SeqCst),
            );
            repository.prune(keep).await.unwrap();
            let reads = store.reads.load(Ordering::SeqCst) - before.0;
            (reads, store.listings.load(Ordering::SeqCst) - before.1)
        };
        let mut asked = Vec::new();
        for step in 0..40 {
            publish(&repository, step).await;
            asked.push(prune().await);
        }
        assert_eq!(asked[39], asked[5], "keep {keep}: {asked:?}");
        if keep == 0 {
            assert_eq!(asked[39], (0, 0), "no checkpoint must be removed");
        }
        let left = repository.list().await.unwrap().len();
        assert_eq!(left, if keep == 3 { 3 } else { 40 });
        // Leftovers are searched for by the first call, and again after an hour.
        assert_eq!(asked[0].1, 1, "keep {keep}: {asked:?}");
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(prune().await.1, 1);
        assert_eq!(prune().await.1, 0);
    }
}

/// That one of several writers wins is a scenario of its own.
#[tokio::test]
async fn a_swap_moves_a_label_only_from_the_expected_version() {
    let (_home, repository) = folder();
    let mut versions = Vec::new();
    for step in 1..=3 {
        versions.push(publish(&repository, step).await);
    }
    let [best, other, stranger] = [0, 1, 2].map(|at| &versions[at]);
    let swap = async |from, to| repository.swap_label("best", from, to).await;
    assert!(swap(None, best).await.unwrap());
    assert!(!swap(None, other).await.unwrap());
    assert!(!swap(Some(stranger), other).await.unwrap());
    assert_eq!(repository.label("best").await.unwrap().as_ref(), Some(best));
    assert!(swap(Some(best), other).await.unwrap());
    // The reply was lost, and the call is repeated.
    assert!(swap(Some(best), other).await.unwrap());
    let nowhere: Version = "000000000099-00000000".parse().unwrap();
    let refused = swap(Some(other), &nowhere).await;
    assert!(matches!(refused, Err(checkpoints::Error::NotFound { .. })));
}
