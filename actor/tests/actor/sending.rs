//! From the spool to the store: every game arrives, and arrives once.

use std::{
    collections::HashSet,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use actor::spool::Spool;
use proto::v1::Game;
use test_support::{FakeStore, GameFate};

use crate::{Place, config, evaluator_server::Server, in_time, process::Process, start};

fn spooled(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "games"))
        .collect();
    files.sort();
    files
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_game_is_stored_once_although_the_store_fails() {
    // While the actor stops, it tries a broken stream only once more, so the store is sound by then.
    let sound = Arc::new(AtomicBool::new(false));
    let is_sound = Arc::clone(&sound);
    let store = FakeStore::new(move |nth, _| match nth % 23 {
        _ if is_sound.load(Ordering::SeqCst) => GameFate::Keep,
        3 => GameFate::Break,
        7 => GameFate::KeepAndBreak,
        11 => GameFate::KeepAndRepeat,
        17 => GameFate::Later,
        _ => GameFate::Keep,
    });
    let server = Server::good();
    let mut place = Place::new(&server, &store).await;
    let actor = start(place.config());
    for killed_after in [40, 80, 120] {
        actor.until(|| store.count() >= killed_after).await;
        let address = place.store.kill().await;
        // While the store is missing, games continue and wait in the spool.
        let finished = actor.metrics.games.get();
        actor.until(|| actor.metrics.games.get() > finished + 10).await;
        place.store = Process::start_at(address, store.routes()).await;
    }
    actor.until(|| store.count() >= 160).await;
    sound.store(true, Ordering::SeqCst);
    let metrics = Arc::clone(&actor.metrics);
    actor.stop().await;

    let games = store.games.lock();
    let finished = metrics.games.get();
    assert_eq!(games.len() as u64, finished, "no finished game is missing");
    assert_eq!(
        metrics.games_acknowledged.get(),
        finished,
        "and each is acknowledged once"
    );
    assert!(
        store.duplicates.load(Ordering::SeqCst) > 0,
        "some were sent twice"
    );
    assert!(metrics.games_duplicate.get() > 0);
    assert_eq!(store.conflicts.load(Ordering::SeqCst), 0);
    assert_eq!(spooled(place.folder.path()), Vec::<std::path::PathBuf>::new());
    let numbers: HashSet<u64> = games.values().map(|game| game.game_number).collect();
    assert_eq!(numbers.len(), games.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn games_wait_for_a_missing_store_and_are_sent_after_a_restart() {
    let server = Server::good();
    let store = FakeStore::good();
    let folder = tempfile::tempdir().unwrap();
    let server_process = Process::start(server.routes()).await;
    let store_process = Process::start(store.routes()).await;
    let store_address = store_process.kill().await;
    let config = config(
        folder.path(),
        &server_process.address(),
        &store_address.to_string(),
    );

    let first = start(config.clone());
    first.until(|| first.metrics.games.get() >= 20).await;
    let metrics = Arc::clone(&first.metrics);
    first.stop().await;
    let waiting = metrics.games.get();
    assert_eq!(store.count(), 0);

    let _store_process = Process::start_at(store_address, store.routes()).await;
    let second = start(config);
    second.until(|| second.metrics.games.get() >= 20).await;
    let metrics = Arc::clone(&second.metrics);
    second.stop().await;
    assert_eq!(store.count() as u64, waiting + metrics.games.get());
    // The oldest first.
    let games = store.games.lock();
    let seen = store.seen.lock();
    let old: Vec<u64> = seen
        .iter()
        .take(waiting as usize)
        .map(|id| games[id].finished_at_ms)
        .collect();
    assert!(old.is_sorted());
    let youngest_old = old.last().unwrap();
    let new = seen.iter().skip(waiting as usize);
    assert!(
        new.into_iter()
            .all(|id| games[id].finished_at_ms >= *youngest_old)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_games_are_saved_with_the_reason() {
    let is_unlucky = |game: &Game| game.game_number % 5 == 2;
    let store = FakeStore::new(move |_, game| {
        if is_unlucky(game) {
            GameFate::Refuse
        } else {
            GameFate::Keep
        }
    });
    let server = Server::good();
    let place = Place::new(&server, &store).await;
    let actor = start(place.config());
    actor.until(|| actor.metrics.games_refused.get() >= 4).await;
    let metrics = Arc::clone(&actor.metrics);
    actor.stop().await;
    let refused = metrics.games_refused.get();
    assert_eq!(store.count() as u64 + refused, metrics.games.get());
    let kept = spooled(&place.folder.path().join("refused"));
    assert_eq!(kept.len() as u64, refused);
    for path in kept {
        let reason = std::fs::read_to_string(path.with_extension("txt")).unwrap();
        assert_eq!(reason, "as the test wishes");
    }
    assert!(store.games.lock().values().all(|game| !is_unlucky(game)));

    // Refused games count towards the limit and are not sent again.
    let (spool, recovered) = Spool::open(place.folder.path().into(), 1 << 20).unwrap();
    assert_eq!((recovered.games, spool.size().games), (0, 0));
    assert!(spool.size().set_aside >= refused * 4096);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn self_play_pauses_above_the_limit_and_continues_below_it() {
    let server = Server::good();
    let store = FakeStore::good();
    let folder = tempfile::tempdir().unwrap();
    let server_process = Process::start(server.routes()).await;
    let store_process = Process::start(store.routes()).await;
    let store_address = store_process.kill().await;
    let mut config = config(
        folder.path(),
        &server_process.address(),
        &store_address.to_string(),
    );
    config.actor.max_spool_mib = 1;
    // A refused game of an earlier start leaves room for a few games, so that a slow disk fills the spool soon as well.
    let refused = folder.path().join("refused");
    std::fs::create_dir(&refused).unwrap();
    std::fs::write(refused.join("large.games"), vec![0; (1 << 20) - 16 * 4096]).unwrap();
    let actor = start(config);
    actor.until(|| actor.metrics.paused.get() == 1).await;
    // Self-play comes to a standstill: the worker waits for the spool.
    let mut before = actor.metrics.snapshot();
    in_time(async {
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let now = actor.metrics.snapshot();
            if (now.visits, now.games) == (before.visits, before.games) {
                break;
            }
            before = now;
        }
    })
    .await;
    let files = spooled(folder.path()).len();
    assert!((16..64).contains(&files), "{files}");

    // Only the store makes room: the games that it acknowledges let self-play continue.
    let _store_process = Process::start_at(store_address, store.routes()).await;
    actor
        .until(|| actor.metrics.games.get() > before.games + 20)
        .await;
    let metrics = Arc::clone(&actor.metrics);
    actor.stop().await;
    assert_eq!(store.count() as u64, metrics.games.get());
    assert_eq!(metrics.paused.get(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_store_gets_a_new_stream() {
    let store = FakeStore::new(|nth, _| {
        if nth < 3 {
            GameFate::Silence
        } else {
            GameFate::Keep
        }
    });
    let server = Server::good();
    let place = Place::new(&server, &store).await;
    let config = place.config();
    let mut actor = actor::Actor::new(config);
    actor.sender_limits.acknowledgement = Duration::from_millis(300);
    actor.sender_limits.drain = Duration::from_secs(30);
    let metrics = Arc::clone(&actor.metrics);
    let shutdown = tokio_util::sync::CancellationToken::new();
    let running = tokio::spawn(actor.run::<games::connect_four::ConnectFour>(shutdown.clone()));
    test_support::until(|| {
        assert!(!running.is_finished());
        store.count() >= 10
    })
    .await;
    shutdown.cancel();
    running.await.unwrap().unwrap();
    assert_eq!(store.count() as u64, metrics.games.get());
}
