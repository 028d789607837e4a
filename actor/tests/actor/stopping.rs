//! Starting and stopping with servers that are missing, silent or late.

use std::time::Duration;

use test_support::FakeStore;
use tokio::time::timeout;

use crate::{
    config,
    evaluator_server::{Fate, Server},
    process::Process,
    start,
};

/// Longest time for a shutdown.
const SOON: Duration = Duration::from_secs(40);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_actor_stops_without_replies_from_its_servers() {
    let folder = tempfile::tempdir().unwrap();
    // No server listens at either address.
    let nobody = Process::start(FakeStore::good().routes())
        .await
        .kill()
        .await
        .to_string();
    let actor = start(config(folder.path(), &nobody, &nobody));
    actor.until(|| actor.metrics.reconnects.get() > 3).await;
    timeout(SOON, actor.stop()).await.unwrap();

    // The server takes every request and never replies.
    let silent = Process::start(Server::new(|_| Fate::Silence).routes()).await;
    let actor = start(config(folder.path(), &silent.address(), &nobody));
    actor.until(|| actor.metrics.streams.get() == 1).await;
    timeout(SOON, actor.stop()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_actor_waits_for_a_server_that_starts_later() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::good();
    let store = FakeStore::good();
    let store_process = Process::start(store.routes()).await;
    let address = Process::start(server.routes()).await.kill().await;
    let actor = start(config(
        folder.path(),
        &address.to_string(),
        &store_process.address(),
    ));
    actor.until(|| actor.metrics.reconnects.get() > 3).await;
    let _server = Process::start_at(address, server.routes()).await;
    actor.until(|| store.count() > 3).await;
    timeout(SOON, actor.stop()).await.unwrap();
}

#[tokio::test]
async fn a_second_actor_in_the_same_spool_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let nobody = "127.0.0.1:1";
    let first = start(config(folder.path(), nobody, nobody));
    first.until(|| folder.path().join("identity.json").exists()).await;
    let error = start(config(folder.path(), nobody, nobody))
        .end()
        .await
        .to_string();
    assert!(error.contains("another running actor"), "{error}");
    first.stop().await;
}

#[tokio::test]
async fn a_configuration_that_cannot_be_played_is_an_error_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = |change: fn(&mut config::RunConfig)| {
        let mut config = config(folder.path(), "127.0.0.1:1", "127.0.0.1:1");
        change(&mut config);
        start(config).end()
    };
    let error = wrong(|config| config.game.options = 3).await.to_string();
    assert!(error.contains("must be 0 or 1, not 3"), "{error}");
    let error = wrong(|config| {
        config.game.rules.insert("nothing".into(), true.into());
    })
    .await
    .to_string();
    assert!(
        error.contains("[game.rules] of connect-four: unknown field"),
        "{error}"
    );
    let error = wrong(|config| config.inference.address = "no address".into()).await;
    assert!(error.to_string().starts_with("`inference.address`"), "{error}");
}

#[tokio::test]
async fn an_unknown_game_is_named_in_the_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path(), "127.0.0.1:1", "127.0.0.1:1");
    config.game.name = "paco-saco".into();
    let error = actor::run(config, Default::default()).await.unwrap_err();
    assert!(format!("{error:#}").contains("paco-sako"), "{error:#}");
}
