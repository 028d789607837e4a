//! From the spool to the store: every game arrives, and arrives once.

use std::{
    collections::HashSet,
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use actor::spool::Spool;
use config::shards::Shards;
use proto::v1::Game;

use crate::{
    config,
    evaluator_server::Server,
    process::Process,
    start,
    store_server::{Fate, Store},
};

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
async fn every_game_arrives_once_whatever_the_store_does() {
    let store = Store::new(|nth, _| match nth % 23 {
        3 => Fate::Break,
        7 => Fate::KeepAndBreak,
        11 => Fate::KeepAndRepeat,
        17 => Fate::Later,
        _ => Fate::Keep,
    });
    let server = Server::good();
    let folder = tempfile::tempdir().unwrap();
    let (server_process, mut store_process) = (
        Process::start(server.routes()).await,
        Process::start(store.routes()).await,
    );
    let actor = start(config(
        folder.path(),
        &server_process.address(),
        &store_process.address(),
    ));
    for killed_after in [40, 80, 120] {
        actor.until(|| store.count() >= killed_after).await;
        let address = store_process.kill().await;
        // Away for a while; games go on and wait.
        let finished = actor.metrics.games.get();
        actor.until(|| actor.metrics.games.get() > finished + 10).await;
        store_process = Process::start_at(address, store.routes()).await;
    }
    actor.until(|| store.count() >= 160).await;
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
    assert_eq!(spooled(folder.path()), Vec::<std::path::PathBuf>::new());
    let numbers: HashSet<u64> = games.values().map(|game| game.game_number).collect();
    assert_eq!(numbers.len(), games.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn games_wait_for_a_store_that_is_away_and_are_sent_after_a_restart() {
    let server = Server::good();
    let store = Store::good();
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
async fn refused_games_are_set_aside_with_the_reason() {
    let is_unlucky = |game: &Game| game.game_number % 5 == 2;
    let store = Store::new(move |_, game| {
        if is_unlucky(game) {
            Fate::Refuse
        } else {
            Fate::Keep
        }
    });
    let server = Server::good();
    let folder = tempfile::tempdir().unwrap();
    let (server_process, store_process) = (
        Process::start(server.routes()).await,
        Process::start(store.routes()).await,
    );
    let actor = start(config(
        folder.path(),
        &server_process.address(),
        &store_process.address(),
    ));
    actor.until(|| actor.metrics.games_refused.get() >= 4).await;
    let metrics = Arc::clone(&actor.metrics);
    actor.stop().await;
    let refused = metrics.games_refused.get();
    assert_eq!(store.count() as u64 + refused, metrics.games.get());
    let kept = spooled(&folder.path().join("refused"));
    assert_eq!(kept.len() as u64, refused);
    for path in kept {
        let reason = std::fs::read_to_string(path.with_extension("txt")).unwrap();
        assert_eq!(reason, "as the test wishes");
    }
    assert!(store.games.lock().values().all(|game| !is_unlucky(game)));

    // They count towards the limit, and are not sent again.
    let (spool, recovered) =
        Spool::open(folder.path().into(), 1 << 20, Shards::parse("store:1").unwrap()).unwrap();
    assert_eq!((recovered.games, spool.size().games), (0, 0));
    assert!(spool.size().set_aside >= refused * 4096);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn self_play_pauses_above_the_limit_and_goes_on_below_it() {
    let server = Server::good();
    let store = Store::good();
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
    let actor = start(config);
    actor.until(|| actor.metrics.paused.get() == 1).await;
    // Whatever was on its way comes to rest.
    let mut before = actor.metrics.snapshot();
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let now = actor.metrics.snapshot();
        if (now.visits, now.games) == (before.visits, before.games) {
            break;
        }
        before = now;
    }
    let bytes: u64 = spooled(folder.path())
        .iter()
        .map(|path| path.metadata().unwrap().len().div_ceil(4096) * 4096)
        .sum();
    assert!(bytes > 1 << 20 && bytes < (1 << 20) + 64 * 4096, "{bytes}");

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
async fn a_store_that_is_silent_is_left_for_a_new_stream() {
    let store = Store::new(|nth, _| if nth < 3 { Fate::Silence } else { Fate::Keep });
    let server = Server::good();
    let folder = tempfile::tempdir().unwrap();
    let (server_process, store_process) = (
        Process::start(server.routes()).await,
        Process::start(store.routes()).await,
    );
    let config = config(folder.path(), &server_process.address(), &store_process.address());
    let mut actor = actor::Actor::new(config);
    actor.sender_patience.acknowledgement = Duration::from_millis(300);
    actor.sender_patience.drain = Duration::from_secs(30);
    let metrics = Arc::clone(&actor.metrics);
    let shutdown = tokio_util::sync::CancellationToken::new();
    let running = tokio::spawn(actor.run::<crate::tictactoe::TicTacToe>(shutdown.clone()));
    while store.count() < 10 {
        assert!(!running.is_finished());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    shutdown.cancel();
    running.await.unwrap().unwrap();
    assert_eq!(store.count() as u64, metrics.games.get());
}

/// Ids of all games; none may be in two stores.
fn ids_in(stores: &[&Arc<Store>]) -> HashSet<Vec<u8>> {
    let mut ids = HashSet::new();
    for store in stores {
        for id in store.games.lock().keys() {
            assert!(ids.insert(id.clone()), "a game is in two stores");
        }
    }
    ids
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn games_are_divided_among_stores_and_one_that_is_away_holds_up_its_own_only() {
    let server = Server::good();
    let stores = [Store::good(), Store::good(), Store::good()];
    let folder = tempfile::tempdir().unwrap();
    let server_process = Process::start(server.routes()).await;
    let mut processes = Vec::new();
    for store in &stores {
        processes.push(Process::start(store.routes()).await);
    }
    let list: Vec<String> = processes.iter().map(Process::address).collect();
    let shards = Shards::parse(&list.join(",")).unwrap();
    let owner = |id: &[u8]| {
        let address = &shards.all()[shards.of(id)].address;
        list.iter().position(|listed| listed == address).unwrap()
    };
    let actor = start(config(folder.path(), &server_process.address(), &list.join(",")));
    actor
        .until(|| stores.iter().all(|store| store.count() >= 5))
        .await;
    let away = processes.remove(1).kill().await;
    let before: Vec<usize> = stores.iter().map(|store| store.count()).collect();
    actor
        .until(|| {
            [0, 2]
                .iter()
                .all(|&other| stores[other].count() >= before[other] + 20)
        })
        .await;
    assert!(stores[1].count() <= before[1] + 1, "nobody has served it");
    let _back = Process::start_at(away, stores[1].routes()).await;
    let waiting = actor.metrics.games.get() - actor.metrics.games_acknowledged.get();
    assert!(waiting > 0);
    actor
        .until(|| stores[1].count() as u64 >= before[1] as u64 + waiting / 2)
        .await;
    let metrics = Arc::clone(&actor.metrics);
    actor.stop().await;
    let all = ids_in(&[&stores[0], &stores[1], &stores[2]]);
    assert_eq!(all.len() as u64, metrics.games.get());
    for (number, store) in stores.iter().enumerate() {
        assert!(store.games.lock().keys().all(|id| owner(id) == number));
        assert_eq!(store.asked.load(Ordering::SeqCst), 0, "nothing was uncertain");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_list_of_stores_gets_no_game_that_one_of_them_has() {
    let server = Server::good();
    let server_process = Process::start(server.routes()).await;
    let folder = tempfile::tempdir().unwrap();
    // The first one keeps every game that comes, and does not say so.
    let speechless = Store::new(|_, _| Fate::KeepInSilence);
    let process = Process::start(speechless.routes()).await;
    let first = start(config(
        folder.path(),
        &server_process.address(),
        &process.address(),
    ));
    first.until(|| speechless.count() >= 12).await;
    let address = process.kill().await;
    let finished = first.metrics.games.get();
    first.until(|| first.metrics.games.get() >= finished + 12).await;
    let metrics = Arc::clone(&first.metrics);
    first.stop().await;
    let (old, stored) = (metrics.games.get(), speechless.count() as u64);
    assert_eq!(metrics.games_acknowledged.get(), 0);
    let identity: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("identity.json")).unwrap()).unwrap();
    let first_new = identity["next_number"].as_u64().unwrap();

    // It is one of three now, and away at first: nothing that it may have is sent to others.
    let others = [Store::good(), Store::good()];
    let mut list = vec![format!("old={address}")];
    let mut processes = Vec::new();
    for (number, store) in others.iter().enumerate() {
        let process = Process::start(store.routes()).await;
        list.push(format!("new-{number}={}", process.address()));
        processes.push(process);
    }
    let list = list.join(",");
    let second = start(config(folder.path(), &server_process.address(), &list));
    second
        .until(|| others.iter().all(|store| store.count() >= 5))
        .await;
    let is_old = |store: &Arc<Store>| {
        let games = store.games.lock();
        games.values().filter(|game| game.game_number < first_new).count()
    };
    assert_eq!(others.iter().map(is_old).sum::<usize>(), 0);
    let talkative = Store::good();
    talkative.games.lock().clone_from(&speechless.games.lock());
    let _back = Process::start_at(address, talkative.routes()).await;
    second
        .until(|| second.metrics.games_duplicate.get() >= stored)
        .await;
    let metrics = Arc::clone(&second.metrics);
    second.until(|| talkative.count() as u64 > stored).await;
    second.stop().await;
    let all = ids_in(&[&talkative, &others[0], &others[1]]);
    assert_eq!(
        all.len() as u64,
        old + metrics.games.get(),
        "every game is in one store"
    );
    assert_eq!(metrics.games_duplicate.get(), stored);
    assert_eq!(metrics.games_acknowledged.get(), old + metrics.games.get());
    let shards = Shards::parse(&list).unwrap();
    for (name, store) in [("new-0", &others[0]), ("new-1", &others[1])] {
        let games = store.games.lock();
        assert!(games.keys().all(|id| shards.all()[shards.of(id)].name == name));
    }

    // The next start knows whose they are.
    let asked = talkative.asked.load(Ordering::SeqCst);
    let third = start(config(folder.path(), &server_process.address(), &list));
    third.until(|| third.metrics.games_acknowledged.get() >= 5).await;
    third.stop().await;
    assert_eq!(talkative.asked.load(Ordering::SeqCst), asked);
}
