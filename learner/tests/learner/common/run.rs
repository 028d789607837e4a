//! The role, run in the test's process with a tiny network.
#![allow(dead_code, missing_docs)]

use std::{path::Path, sync::Arc, time::Duration};

use checkpoints::{LATEST, Manifest, Repository};
use config::{LearnerConfig, Precision, RunConfig};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::{
    model, settings,
    store::{self, State},
};

pub const TIMEOUT: Duration = Duration::from_secs(120);

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

pub struct Learner {
    pub stop: CancellationToken,
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
        let reached = async {
            loop {
                assert!(!self.ended.is_finished(), "the learner ended");
                match self.repository.resolve(LATEST).await {
                    Ok(manifest) if manifest.draft.step >= step => return manifest,
                    Ok(_) | Err(checkpoints::Error::NotFound { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, reached).await.unwrap()
    }

    /// Stops the learner as SIGTERM does, and returns its last checkpoint.
    pub async fn stop(self) -> Manifest {
        self.stop.cancel();
        tokio::time::timeout(TIMEOUT, self.ended)
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        self.repository.newest().await.unwrap().unwrap()
    }

    /// Waits until the learner ends with an error, and returns its message.
    pub async fn fails(self) -> String {
        let ended = tokio::time::timeout(TIMEOUT, self.ended).await.unwrap();
        format!("{:#}", ended.unwrap().unwrap_err())
    }
}

pub async fn start_store(state: &Arc<State>) -> (String, CancellationToken) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let stop = CancellationToken::new();
    tokio::spawn(store::serve(listener, state.clone(), stop.clone()));
    (address, stop)
}
