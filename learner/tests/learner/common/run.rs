//! The role, run in the test's process with a tiny network.

use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use checkpoints::{LATEST, Manifest, Repository};
use config::{LearnerConfig, Precision, RunConfig};
use test_support::in_time;
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use tonic::transport::server::TcpIncoming;

use super::{model, settings, store::State};

/// Returns a configuration: 32 samples a step, 2 samples for each position.
pub fn config(home: &Path, address: &str) -> RunConfig {
    let mut config = RunConfig {
        model: model(),
        learner: LearnerConfig {
            min_positions: 50,
            checkpoint_steps: 6,
            precision: Precision::F32,
            ..settings()
        },
        ..RunConfig::default()
    };
    config.replay.address = address.into();
    config.resolve_paths(home);
    config
}

/// A folder of a run, and the replay store that it needs.
pub struct Place {
    pub home: tempfile::TempDir,
    pub store: Arc<State>,
    address: SocketAddr,
}

impl Place {
    /// Serves a store with this number of positions.
    pub async fn new(positions: u64) -> Self {
        Self::with(State::default(), positions).await
    }

    pub async fn with(state: State, positions: u64) -> Self {
        let (place, listener) = Self::bound(state).await;
        place.store.insert(positions);
        place.serve(listener);
        place
    }

    async fn bound(state: State) -> (Self, TcpListener) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = Self {
            home: tempfile::tempdir().unwrap(),
            store: Arc::new(state),
            address: listener.local_addr().unwrap(),
        };
        (place, listener)
    }

    /// Returns a place whose store does not listen before [`Place::listen`].
    pub async fn without_store() -> Self {
        Self::bound(State::default()).await.0
    }

    pub async fn listen(&self) {
        self.serve(TcpListener::bind(self.address).await.unwrap());
    }

    fn serve(&self, listener: TcpListener) {
        let server = tonic::transport::Server::builder().add_routes(self.store.routes());
        tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
    }

    pub fn config(&self) -> RunConfig {
        self.config_in("")
    }

    /// Returns the configuration of a run in a folder of this place.
    pub fn config_in(&self, folder: &str) -> RunConfig {
        config(&self.home.path().join(folder), &self.address.to_string())
    }

    pub fn learner(&self) -> Learner {
        Learner::start(self.config())
    }
}

pub struct Learner {
    stop: CancellationToken,
    pub ended: JoinHandle<anyhow::Result<()>>,
    pub repository: Repository,
}

impl Learner {
    pub fn start(config: RunConfig) -> Self {
        let stop = CancellationToken::new();
        Self {
            repository: Repository::open(&config.checkpoints.store).unwrap(),
            ended: tokio::spawn(learner::run(config, stop.clone())),
            stop,
        }
    }

    /// Waits until the label `latest` is at this step or later.
    pub async fn reaches(&self, step: u64) -> Manifest {
        reaches(&self.repository, step, || {
            assert!(!self.ended.is_finished(), "the learner ended");
        })
        .await
    }

    /// Stops the learner as SIGTERM does, and returns its last checkpoint.
    pub async fn stop(self) -> Manifest {
        self.stop.cancel();
        in_time(self.ended).await.unwrap().unwrap();
        self.repository.newest().await.unwrap().unwrap()
    }

    /// Waits until the learner ends with an error, and returns its message.
    pub async fn fails(self) -> String {
        format!("{:#}", in_time(self.ended).await.unwrap().unwrap_err())
    }
}

/// Waits until the label `latest` of a repository is at this step or later. `check` panics if that cannot happen any more.
pub async fn reaches(repository: &Repository, step: u64, check: impl Fn()) -> Manifest {
    in_time(async {
        loop {
            check();
            match repository.resolve(LATEST).await {
                Ok(manifest) if manifest.draft.step >= step => return manifest,
                Ok(_) | Err(checkpoints::Error::NotFound { .. }) => {}
                Err(error) => panic!("{error}"),
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}
