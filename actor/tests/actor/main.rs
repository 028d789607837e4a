//! The actor with real gRPC servers on free ports: a deterministic evaluator and a store in memory, both of which can be made to
//! fail.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod evaluator_server;
mod process;

mod checking;
mod evaluation;
mod hints;
mod killing;
mod playing;
mod problems;
mod renewal;
mod sending;
mod stopping;
mod token;

use std::{path::Path, sync::Arc, time::Duration};

use actor::{Actor, evaluator, metrics::Metrics, spool::sender};
use config::RunConfig;
use games::connect_four::ConnectFour;
use tokio_util::sync::CancellationToken;

use evaluator_server::Server;
use process::Process;
use test_support::{FakeStore, in_time};

/// Returns the configuration of a run of Connect Four with everything in `folder`.
fn config(folder: &Path, server: &str, store: &str) -> RunConfig {
    let mut config = RunConfig::default();
    config.run.seed = 5;
    config.game.name = "connect-four".into();
    config.game.options = 1;
    config.inference.address = server.into();
    config.replay.address = store.into();
    config.search.visits = 24;
    config.search.leaves = 3;
    config.actor.name = "test".into();
    config.actor.threads = 1;
    config.actor.games_per_thread = 8;
    config.actor.rows_per_request = 8;
    config.actor.cache_mib = 1;
    config.actor.spool = folder.to_owned();
    config
}

/// A folder for an actor, and the two servers that it needs.
struct Place {
    folder: tempfile::TempDir,
    server: Process,
    store: Process,
}

impl Place {
    async fn new(server: &Arc<Server>, store: &Arc<FakeStore>) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            server: Process::start(server.routes()).await,
            store: Process::start(store.routes()).await,
        }
    }

    fn config(&self) -> RunConfig {
        config(self.folder.path(), &self.server.address(), &self.store.address())
    }
}

/// Gives every actor that uses the folder the same identity, so that its games can be compared.
fn give_identity(folder: &Path) {
    let text =
        r#"{"format":2,"name":"test","incarnation":"00112233445566778899aabbccddeeff","next_number":0}"#;
    std::fs::write(folder.join("identity.json"), text).unwrap();
}

/// An actor that runs in the background.
struct Running {
    metrics: Arc<Metrics>,
    shutdown: CancellationToken,
    actor: tokio::task::JoinHandle<anyhow::Result<()>>,
}

fn start(config: RunConfig) -> Running {
    start_playing::<ConnectFour>(config)
}

fn start_playing<G: games::Game>(config: RunConfig) -> Running {
    let mut actor = Actor::new(config);
    actor.evaluator_limits = evaluator::EvaluatorLimits {
        answer: Duration::from_secs(5),
        first_retry: Duration::from_millis(2),
        longest_retry: Duration::from_millis(50),
        // Streams are replaced often during every test.
        stream: Duration::from_millis(60),
        ..Default::default()
    };
    actor.sender_limits = sender::SenderLimits {
        acknowledgement: Duration::from_secs(5),
        first_retry: Duration::from_millis(2),
        longest_retry: Duration::from_millis(50),
        drain: Duration::from_secs(30),
    };
    let shutdown = CancellationToken::new();
    Running {
        metrics: Arc::clone(&actor.metrics),
        shutdown: shutdown.clone(),
        actor: tokio::spawn(actor.run::<G>(shutdown)),
    }
}

impl Running {
    /// Stops the actor in order.
    async fn stop(self) {
        self.shutdown.cancel();
        in_time(self.actor).await.unwrap().unwrap();
    }

    /// Waits until the actor ends without being stopped, and returns its error.
    async fn end(self) -> anyhow::Error {
        in_time(self.actor).await.unwrap().unwrap_err()
    }

    /// Waits for a condition; fails at once if the actor ends instead.
    async fn until(&self, what: impl Fn() -> bool) {
        test_support::until(|| {
            assert!(!self.actor.is_finished(), "the actor has ended");
            what()
        })
        .await;
    }
}
