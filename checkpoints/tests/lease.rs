//! Leases and fencing, in a folder and in memory. Most tests use tokio's paused clock.

use std::{sync::atomic::Ordering, time::Duration};

use crate::common::{Faulty, draft, files, folder, scenarios};
use checkpoints::{Error, LATEST, LeaseTimes, Repository};
use object_store::{memory::InMemory, path::Path};
use tokio::time::Instant;

const TIMES: LeaseTimes = LeaseTimes {
    beat: Duration::from_secs(5),
    expires: Duration::from_secs(30),
};
/// Intervals for folders, whose clock is real. No test depends on their length.
const QUICK: LeaseTimes = LeaseTimes {
    beat: Duration::from_millis(5),
    expires: Duration::from_millis(50),
};

fn in_memory() -> Repository {
    Repository::with_store(Faulty::new(InMemory::new()), Path::default())
}

#[tokio::test(start_paused = true)]
async fn a_replaced_lease_holder_cannot_publish() {
    scenarios::a_replaced_lease_holder_cannot_publish(in_memory(), TIMES).await;
    let (_home, repository) = folder();
    scenarios::a_replaced_lease_holder_cannot_publish(repository, TIMES).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_writers_that_race_exactly_one_wins() {
    let (_home, repository) = folder();
    scenarios::of_writers_that_race_exactly_one_wins(repository, QUICK).await;
}

#[tokio::test(start_paused = true)]
async fn competing_publishers_leave_one_line_of_descent_in_memory() {
    scenarios::competing_publishers_leave_one_line_of_descent(in_memory(), TIMES, 60).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn competing_publishers_leave_one_line_of_descent_in_a_folder() {
    let (_home, repository) = folder();
    scenarios::competing_publishers_leave_one_line_of_descent(repository, QUICK, 30).await;
}

#[tokio::test(start_paused = true)]
async fn a_second_learner_waits_while_the_first_lives_and_takes_over_when_it_is_gone() {
    let repository = in_memory();
    let first = repository.lease("one", TIMES).await.unwrap();
    let waiting = tokio::spawn({
        let repository = repository.clone();
        async move { repository.lease("two", TIMES).await.unwrap() }
    });
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(!waiting.is_finished(), "the first holder is alive");
    first.check().await.unwrap();

    // As after a kill: the lease is not released, and the rewrites stop.
    drop(first);
    let killed = Instant::now();
    let second = waiting.await.unwrap();
    let waited = killed.elapsed();
    assert!(
        (TIMES.expires - TIMES.beat..=TIMES.expires + TIMES.beat * 2).contains(&waited),
        "{waited:?}"
    );
    assert_eq!(second.token(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_holder_cut_off_from_the_store_keeps_its_lease_until_another_process_takes_it() {
    let store = Faulty::new(InMemory::new());
    let cut_off = Repository::with_store(store.clone(), Path::default());
    let lease = cut_off.lease("one", TIMES).await.unwrap();
    store.is_down.store(true, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(lease.is_lost().is_none());
    assert!(lease.check().await.unwrap_err().is_transient());
    store.is_down.store(false, Ordering::SeqCst);
    let version = lease.publish(draft(1), files(1)).await.unwrap();
    lease.set_label(&version).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn training_does_not_resume_from_a_checkpoint_published_after_the_lease_was_lost() {
    let store = Faulty::new(InMemory::new());
    let repository = Repository::with_store(store.clone(), Path::default());
    let slow = repository.lease("one", TIMES).await.unwrap();
    let first = slow.publish(draft(10), files(1)).await.unwrap();
    slow.set_label(&first).await.unwrap();

    // The publisher stalls in the write of a manifest: three files are written, the fourth put waits.
    store.puts_left.store(3, Ordering::SeqCst);
    let stalled = slow.publish(draft(90), files(9));
    let stalled = tokio::time::timeout(Duration::from_millis(1), stalled).await;
    assert!(stalled.is_err());
    store.puts_left.store(usize::MAX, Ordering::SeqCst);
    drop(slow);

    let next = repository.lease("two", TIMES).await.unwrap();
    assert_eq!(repository.newest().await.unwrap().unwrap().version, first);
    let second = next.publish(draft(11), files(2)).await.unwrap();
    // The stalled write arrives now: a manifest of the old token, of a later step.
    let mut late = serde_json::to_value(repository.manifest(&first).await.unwrap()).unwrap();
    let (version, path) = (
        "000000000090-00000000",
        "versions/000000000090-00000000/manifest.json",
    );
    late["version"] = version.into();
    late["step"] = 90.into();
    assert_eq!(late["token"], 1);
    object_store::ObjectStoreExt::put(&*store, &path.into(), late.to_string().into())
        .await
        .unwrap();
    assert!(repository.manifest(&version.parse().unwrap()).await.is_ok());
    // The late checkpoint is not the newest one, before the label moves and after.
    assert_eq!(repository.newest().await.unwrap().unwrap().version, second);
    next.set_label(&second).await.unwrap();
    assert_eq!(repository.newest().await.unwrap().unwrap().version, second);
    let pruned = repository.prune(1).await.unwrap().checkpoints;
    assert_eq!(
        pruned,
        [version.parse().unwrap(), first],
        "the checkpoint from which training resumes stays"
    );
}

#[tokio::test(start_paused = true)]
async fn tokens_rise_even_if_the_lease_file_was_removed() {
    let (home, repository) = folder();
    let first = repository.lease("one", TIMES).await.unwrap();
    std::fs::remove_file(home.path().join("store/leases/latest.json")).unwrap();
    assert!(matches!(first.check().await, Err(Error::Fenced { found: 0, .. })));
    let second = repository.lease("two", TIMES).await.unwrap();
    assert_eq!(second.token(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_refused_on_a_store_without_conditional_writes() {
    for ignores in [false, true] {
        let store = Faulty::new(InMemory::new());
        store.ignores_conditions.store(ignores, Ordering::SeqCst);
        store.has_no_conditions.store(!ignores, Ordering::SeqCst);
        let repository = Repository::with_store(store, Path::default());
        let error = repository.lease("one", TIMES).await.unwrap_err();
        assert!(matches!(error, Error::Refused(_)), "{error}");
        assert!(!error.is_transient());
    }
}

#[tokio::test(start_paused = true)]
async fn a_label_with_a_token_only_resolves_to_nothing() {
    let repository = in_memory();
    let _lease = repository.lease("one", TIMES).await.unwrap();
    assert_eq!(repository.label(LATEST).await.unwrap(), None);
    assert!(repository.labels().await.unwrap().is_empty());
    assert!(repository.newest().await.unwrap().is_none());
    assert!(repository.prune(1).await.unwrap().checkpoints.is_empty());
}
