//! Tests for every kind of store.
#![allow(dead_code, missing_docs)]

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use checkpoints::{Draft, Error, LATEST, LeaseTimes, MODEL, OPTIMIZER, Repository, Version, WEIGHTS};
use futures::StreamExt as _;

use super::{draft, files};

pub async fn a_published_checkpoint_is_fetched_unchanged(repository: Repository) {
    assert!(matches!(
        repository.resolve(LATEST).await,
        Err(Error::NotFound { .. })
    ));
    let version = repository.publish(draft(1500), files(7)).await.unwrap();
    assert!(matches!(
        repository.resolve(LATEST).await,
        Err(Error::NotFound { .. })
    ));
    repository.set_label(LATEST, &version).await.unwrap();

    let manifest = repository.resolve(LATEST).await.unwrap();
    assert_eq!(manifest, repository.resolve(version.as_str()).await.unwrap());
    assert_eq!(
        (
            manifest.draft.step,
            manifest.draft.positions_seen,
            manifest.draft.games_seen
        ),
        (1500, 384_000, 150)
    );
    assert_eq!(manifest.draft.learner_state["batch"], 1500);
    assert!(version.as_str().starts_with("000000001500-"));
    for (name, bytes) in files(7) {
        assert_eq!(repository.fetch(&manifest, name).await.unwrap(), bytes);
    }
    assert!(matches!(
        repository.fetch(&manifest, "other").await,
        Err(Error::NotFound { .. })
    ));
    assert_eq!(repository.newest().await.unwrap().unwrap(), manifest);
}

pub async fn readers_during_publishing_see_whole_checkpoints_only(repository: Repository, publishes: u64) {
    let is_done = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let (repository, is_done) = (repository.clone(), is_done.clone());
            tokio::spawn(async move {
                let mut seen = 0;
                loop {
                    let is_last = is_done.load(Ordering::SeqCst);
                    for manifest in repository.list().await.unwrap() {
                        for name in [MODEL, WEIGHTS, OPTIMIZER] {
                            repository.fetch(&manifest, name).await.unwrap();
                        }
                        seen += 1;
                    }
                    if let Some(version) = repository.label(LATEST).await.unwrap() {
                        repository.manifest(&version).await.unwrap();
                    }
                    if is_last {
                        return seen;
                    }
                }
            })
        })
        .collect();
    for step in 0..publishes {
        let version = repository.publish(draft(step), files(step as u8)).await.unwrap();
        repository.set_label(LATEST, &version).await.unwrap();
    }
    is_done.store(true, Ordering::SeqCst);
    for reader in readers {
        assert!(reader.await.unwrap() >= publishes);
    }
}

pub async fn two_publishers_of_one_version_end_with_one_whole_checkpoint(repository: Repository) {
    let same = futures::future::join_all((0..4).map(|_| repository.publish(draft(9), files(9)))).await;
    let version = same[0].as_ref().unwrap().clone();
    assert!(same.into_iter().all(|published| published.unwrap() == version));

    // Equal network and step, but another optimiser state. The visible checkpoint must not change.
    let mut others = files(9);
    others[2].1 = Bytes::from_static(b"other");
    assert!(matches!(
        repository.publish(draft(9), others).await,
        Err(Error::Refused(reason)) if reason.contains(OPTIMIZER)
    ));
    let manifest = repository.manifest(&version).await.unwrap();
    for (name, bytes) in files(9) {
        assert_eq!(repository.fetch(&manifest, name).await.unwrap(), bytes);
    }
}

pub async fn a_watch_follows_the_label_and_old_checkpoints_go(repository: Repository) {
    let mut watch = repository.watch(LATEST, Duration::from_millis(20));
    let mut versions = Vec::new();
    for step in 0..4 {
        let version = repository.publish(draft(step), files(step as u8)).await.unwrap();
        repository.set_label(LATEST, &version).await.unwrap();
        assert_eq!(watch.next().await.unwrap().version, version);
        versions.push(version);
    }
    repository.set_label("best", &versions[0]).await.unwrap();
    let pruned = repository.prune(2).await.unwrap();
    assert_eq!(pruned.checkpoints, [versions[1].clone()]);
    let left: Vec<Version> = repository
        .list()
        .await
        .unwrap()
        .into_iter()
        .map(|manifest| manifest.version)
        .collect();
    assert_eq!(left, [&versions[0], &versions[2], &versions[3]].map(Clone::clone));
}

/// A holder that lost its lease can neither publish nor move the label, and gets an error.
pub async fn a_replaced_lease_holder_cannot_publish(repository: Repository, times: LeaseTimes) {
    let first = repository.lease("one", times).await.unwrap();
    let version = first.publish(draft(1), files(1)).await.unwrap();
    first.set_label(&version).await.unwrap();

    // A restarted process with the same holder name does not wait, although the lease was not released.
    let second = repository.lease("one", times).await.unwrap();
    assert!(second.token() > first.token());
    for refused in [
        first.publish(draft(2), files(2)).await.map(drop),
        first.set_label(&version).await,
        first.check().await,
    ] {
        assert!(matches!(refused, Err(Error::Fenced { .. })), "{refused:?}");
        assert!(!refused.unwrap_err().is_transient());
    }
    assert!(matches!(first.lost().await, Error::Fenced { token: 1, found: 2 }));
    // Releasing a lost lease does not affect its present holder.
    first.release().await.unwrap();
    second.check().await.unwrap();
    let next = second.publish(draft(2), files(3)).await.unwrap();
    second.set_label(&next).await.unwrap();
    assert_eq!(repository.resolve(LATEST).await.unwrap().version, next);
    assert_eq!(repository.resolve(LATEST).await.unwrap().token, second.token());
    second.release().await.unwrap();

    // After a release the next holder does not wait, whatever its name.
    let third = repository.lease("two", times).await.unwrap();
    assert_eq!(third.token(), second.token() + 1);
    third.release().await.unwrap();
}

/// If several writers move a label from the same version at the same time, exactly one succeeds. If several holders take the lease at the
/// same time, exactly one keeps it.
pub async fn of_writers_that_race_exactly_one_wins(repository: Repository, times: LeaseTimes) {
    let mut versions = Vec::new();
    for step in 0..6 {
        versions.push(repository.publish(draft(step), files(step as u8)).await.unwrap());
    }
    repository.set_label(LATEST, &versions[0]).await.unwrap();
    for round in 0..5 {
        let from = repository.label(LATEST).await.unwrap().unwrap();
        let others: Vec<&Version> = versions.iter().filter(|version| **version != from).collect();
        let moves = others
            .iter()
            .map(|to| repository.swap_label(LATEST, Some(&from), to));
        let moved = futures::future::try_join_all(moves).await.unwrap();
        let winners: Vec<&Version> = others
            .into_iter()
            .zip(moved)
            .filter_map(|(to, is_there)| is_there.then_some(to))
            .collect();
        assert_eq!(winners.len(), 1, "round {round}: {winners:?}");
        assert_eq!(repository.label(LATEST).await.unwrap().as_ref(), Some(winners[0]));

        // Holders of one name do not wait for each other. One that is overtaken while it takes the lease does not get it.
        let taking = (0..5).map(|_| repository.lease("one", times));
        let mut leases = Vec::new();
        for taken in futures::future::join_all(taking).await {
            match taken {
                Ok(lease) => leases.push(lease),
                Err(error) => assert!(matches!(error, Error::Fenced { .. }), "round {round}: {error}"),
            }
        }
        let tokens: BTreeSet<u64> = leases.iter().map(|lease| lease.token()).collect();
        assert_eq!(tokens.len(), leases.len(), "round {round}: {tokens:?}");
        let mut kept = Vec::new();
        for lease in leases {
            if lease.check().await.is_ok() {
                kept.push(lease.token());
            }
            lease.release().await.unwrap();
        }
        assert_eq!(kept, [*tokens.last().unwrap()], "round {round}");
    }
}

/// Several publishers compete, stall beyond the end of their leases and continue. Every checkpoint whose label was
/// acknowledged must be an ancestor of the last one, and tokens must not fall along the line.
pub async fn competing_publishers_leave_one_line_of_descent(
    repository: Repository,
    times: LeaseTimes,
    publishes: usize,
) {
    let acknowledged = Arc::new(Mutex::new(Vec::new()));
    let rivals: Vec<_> = (0..3_u64)
        .map(|rival| {
            tokio::spawn(competitor_of(
                repository.clone(),
                times,
                rival,
                publishes,
                acknowledged.clone(),
            ))
        })
        .collect();
    for rival in rivals {
        rival.await.unwrap();
    }
    let acknowledged: BTreeSet<Version> = acknowledged.lock().unwrap().drain(..).collect();
    assert!(
        acknowledged.len() >= publishes,
        "{} were acknowledged",
        acknowledged.len()
    );

    let mut line = BTreeSet::new();
    let mut at = repository.resolve(LATEST).await.unwrap();
    loop {
        line.insert(at.version.clone());
        let Some(parent) = &at.draft.parent else { break };
        let parent = repository.manifest(parent).await.unwrap();
        assert!(
            parent.token <= at.token && parent.draft.step < at.draft.step,
            "{parent:?} {at:?}"
        );
        at = parent;
    }
    let lost: Vec<_> = acknowledged.difference(&line).collect();
    assert!(lost.is_empty(), "not in the line of descent: {lost:?}");
}

async fn competitor_of(
    repository: Repository,
    times: LeaseTimes,
    rival: u64,
    publishes: usize,
    acknowledged: Arc<Mutex<Vec<Version>>>,
) {
    let mut draws = rival * 7919 + 1;
    let mut draw = move |below: u64| {
        draws = draws
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (draws >> 33) % below
    };
    let mut made = 0_u64;
    loop {
        if acknowledged.lock().unwrap().len() >= publishes {
            return;
        }
        let lease = repository.lease(&format!("rival {rival}"), times).await.unwrap();
        let newest = repository.newest().await.unwrap();
        let (mut parent, mut step) =
            newest.map_or((None, 0), |newest| (Some(newest.version), newest.draft.step));
        for _ in 0..4 {
            step += 1 + draw(3);
            made += 1;
            let model = Bytes::from(format!("{rival} {made}"));
            let draft = Draft {
                parent: parent.clone(),
                ..draft(step)
            };
            let stall = times.expires * u32::from(draw(4) == 0) * 2;
            let published = async {
                let version = lease.publish(draft, vec![(MODEL, model)]).await?;
                tokio::time::sleep(stall).await;
                lease.set_label(&version).await?;
                Ok::<_, Error>(version)
            };
            match published.await {
                Ok(version) => {
                    acknowledged.lock().unwrap().push(version.clone());
                    parent = Some(version);
                }
                Err(Error::Fenced { .. }) => break,
                Err(error) => panic!("{error}"),
            }
        }
        if draw(2) == 0 {
            lease.release().await.unwrap();
        }
    }
}
