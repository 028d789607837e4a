//! The actor's process, killed many times at random moments.

use std::{
    process::{Child, Command, Stdio},
    sync::atomic::Ordering,
};

use actor::spool::Spool;
use games::{Game as _, paco_sako::PacoSako};
use test_support::{FakeStore, GameFate};

use crate::{config, evaluator_server::Server, in_time, process::Process};

async fn until(child: &mut Child, what: impl Fn() -> bool) {
    test_support::until(|| {
        assert_eq!(child.try_wait().unwrap(), None, "the actor has ended");
        what()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_actor_keeps_its_name_and_sends_each_game_once_under_its_own_id() {
    let server = Server::good();
    *server.layout.lock() = PacoSako::layout(PacoSako::encoding(&Default::default(), 1).unwrap());
    // Sometimes the store keeps a game and breaks the stream before the acknowledgement.
    let store = FakeStore::new(|nth, _| {
        if nth % 9 == 4 {
            GameFate::KeepAndBreak
        } else {
            GameFate::Keep
        }
    });
    let (server_process, store_process) = (
        Process::start(server.routes()).await,
        Process::start(store.routes()).await,
    );
    let folder = tempfile::tempdir().unwrap();
    let spool = folder.path().join("spool");
    let mut config = config(&spool, &server_process.address(), &store_process.address());
    config.game = Default::default();
    config.actor.name = String::new();
    config.search.visits = 3;
    config.search.max_actions = 12;
    let path = folder.path().join("run.toml");
    std::fs::write(&path, config::template(&config)).unwrap();
    let start = || {
        Command::new(env!("CARGO_BIN_EXE_minuet-actor"))
            .arg("--config")
            .arg(&path)
            .arg("--supervised")
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };

    for round in 1..=8 {
        let mut actor = start();
        let wanted = store.count() + 5 * round;
        until(&mut actor, || store.count() >= wanted).await;
        actor.kill().unwrap();
        actor.wait().unwrap();
    }
    // Now the games that were finished but not acknowledged arrive.
    let mut actor = start();
    let wanted = store.count() + 20;
    until(&mut actor, || store.count() >= wanted).await;
    drop(actor.stdin.take());
    let ended = in_time(tokio::task::spawn_blocking(move || actor.wait().unwrap()))
        .await
        .unwrap();
    assert!(ended.success(), "{ended}");

    // The store keeps breaking streams, so games may remain in the spool; they must be intact.
    let (_left, recovered) = Spool::open(spool, 1 << 20).unwrap();
    assert!(recovered.damage.is_empty(), "{:?}", recovered.damage);
    assert_eq!(store.conflicts.load(Ordering::SeqCst), 0);
    assert!(store.duplicates.load(Ordering::SeqCst) > 0);
    let games = store.games.lock();
    let names: std::collections::HashSet<&str> = games.values().map(|game| game.actor.as_str()).collect();
    assert_eq!(names.len(), 1, "{names:?}");
    let numbers: std::collections::HashSet<u64> = games.values().map(|game| game.game_number).collect();
    assert_eq!(numbers.len(), games.len());
}
