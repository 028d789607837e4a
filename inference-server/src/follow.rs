//! Follows the model repository: each new checkpoint is loaded beside the one that is served, and takes over between two
//! batches. What cannot be loaded is refused, and the old model goes on.

use std::{sync::Arc, time::Duration};

use checkpoints::{Manifest, Repository};
use futures::StreamExt as _;
use games::RowLayout;
use service::serve::Health;
use tokio::time::Instant;

use crate::{
    loader::{File, LoadError, Loader},
    metrics::Metrics,
    model::Model,
    models::Models,
};

/// Tries at reading a checkpoint from a store that fails.
const TRIES: u32 = 6;
/// Pause before the second try; each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(250);
/// How often it is looked whether a model that was replaced is still in use.
const LOOK: Duration = Duration::from_millis(20);

/// A checkpoint that is not served.
#[derive(Debug, thiserror::Error)]
enum FollowError {
    #[error(transparent)]
    Store(#[from] checkpoints::Error),
    #[error("the manifest's row layout cannot be read: {0}")]
    Layout(String),
    #[error(
        "it is for {found} (options {found_options}), this server serves {serves} (options {serves_options})"
    )]
    OtherGame {
        found: String,
        found_options: u32,
        serves: String,
        serves_options: u32,
    },
    #[error("its row layout is another than that of the model being served; start a new run for it")]
    OtherLayout,
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("loading was interrupted")]
    Interrupted,
}

/// What is followed.
#[derive(Debug)]
pub struct Follower {
    /// The model repository.
    pub repository: Repository,
    /// The label.
    pub label: String,
    /// How often to look.
    pub poll: Duration,
    /// The game this server is for, and its representation options.
    pub game: (String, u32),
    /// Loads models.
    pub loader: Arc<Loader>,
    /// Where they are served.
    pub models: Arc<Models>,
    /// Told when the first model answers.
    pub health: Health,
    /// Told what becomes of checkpoints.
    pub metrics: Arc<Metrics>,
}

impl Follower {
    /// Follows the label, for ever.
    pub async fn run(self) {
        let mut versions = self.repository.watch(&self.label, self.poll);
        while let Some(manifest) = versions.next().await {
            let began = Instant::now();
            match self.load(&manifest).await {
                Ok(model) => self.serve(model, began).await,
                Err(error) => {
                    self.metrics.refused_model();
                    let served = self.models.current();
                    tracing::error!(
                        version = %manifest.version,
                        %error,
                        still_served = served.map_or_else(|| "none".into(), |model| model.info.version.clone()),
                        "checkpoint refused"
                    );
                }
            }
        }
    }

    async fn load(&self, manifest: &Manifest) -> Result<Model, FollowError> {
        let layout = self.layout(manifest)?;
        let bytes = self.fetch(manifest).await?;
        let (version, step) = (manifest.version.to_string(), manifest.step);
        let loader = self.loader.clone();
        let loading = tokio::task::spawn_blocking(move || {
            loader.load(File {
                bytes: &bytes,
                version: &version,
                step,
                layout: &layout,
            })
        });
        Ok(loading.await.map_err(|_| FollowError::Interrupted)??)
    }

    /// The checkpoint's row layout, if it is one that this server's clients use.
    fn layout(&self, manifest: &Manifest) -> Result<RowLayout, FollowError> {
        let layout: RowLayout = serde_json::from_value(manifest.layout.clone())
            .map_err(|error| FollowError::Layout(error.to_string()))?;
        layout
            .check()
            .map_err(|error| FollowError::Layout(error.to_string()))?;
        let (serves, serves_options) = &self.game;
        if layout.game != *serves || layout.options != *serves_options {
            return Err(FollowError::OtherGame {
                found: layout.game,
                found_options: layout.options,
                serves: serves.clone(),
                serves_options: *serves_options,
            });
        }
        match self.models.current() {
            Some(served) if served.info.layout != layout => Err(FollowError::OtherLayout),
            _ => Ok(layout),
        }
    }

    async fn fetch(&self, manifest: &Manifest) -> Result<bytes::Bytes, FollowError> {
        let mut pause = PAUSE;
        for _ in 1..TRIES {
            match self.repository.fetch(manifest, checkpoints::MODEL).await {
                Err(error) if error.is_transient() => {
                    tracing::warn!(version = %manifest.version, %error, "cannot read the checkpoint; trying again");
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                done => return Ok(done?),
            }
        }
        Ok(self.repository.fetch(manifest, checkpoints::MODEL).await?)
    }

    async fn serve(&self, model: Model, began: Instant) {
        let model = Arc::new(model);
        let before = self.models.serve(model.clone());
        self.metrics.serves(
            &model.info,
            before.as_deref().map(|before| &before.info),
            began.elapsed(),
        );
        tracing::info!(
            version = model.info.version,
            provider = model.info.provider,
            seconds = began.elapsed().as_secs_f32(),
            "serving"
        );
        match before {
            Some(before) => drop(tokio::spawn(retire(before))),
            None => self.health.set_serving(true).await,
        }
    }
}

/// Frees a model once its last batch is answered, where that holds nobody up.
async fn retire(model: Arc<Model>) {
    while Arc::strong_count(&model) > 1 {
        tokio::time::sleep(LOOK).await;
    }
    tokio::task::spawn_blocking(move || drop(model));
}
