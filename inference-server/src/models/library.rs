//! Loads the model of each served name. Labels are followed: each new version is loaded while the old one is served, and
//! they are swapped between two batches.
//!
//! One model is loaded at a time. If a model is refused, the old one stays. Transient failures are retried until the label
//! moves.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use checkpoints::Manifest;
use futures::{StreamExt as _, stream};
use network::{
    ModelFile,
    loader::{LoadError, Loader},
    model::Model,
    sidecar::SidecarError,
};
use service::chain;
use tokio::{
    sync::Mutex,
    task::JoinSet,
    time::{Instant, timeout},
};

use crate::{
    metrics::Metrics,
    models::{
        names::Pointer,
        source::{Found, Source},
        table::{ModelSlot, Models},
    },
};

/// Pause before the second try. Each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Interval at which a replaced model is checked for requests that still use it.
const RETIRE_POLL: Duration = Duration::from_millis(20);

/// Error: a model cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// The store does not have the model, or cannot be read.
    #[error(transparent)]
    Store(#[from] checkpoints::Error),
    /// The description of a model of another program, or its file, cannot be used.
    #[error(transparent)]
    Sidecar(#[from] SidecarError),
    /// The provider cannot load the model.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The model does not fit the server. The text says why.
    #[error("{0}")]
    Unsuitable(String),
}

impl LibraryError {
    /// True if a retry may succeed, because the store failed and not the model.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_transient())
    }
}

/// Everything that is needed to load the served models.
#[derive(Debug)]
pub struct Library {
    /// The table to fill.
    pub models: Arc<Models>,
    /// Sources by name. The run's own store has the empty name.
    pub sources: BTreeMap<String, Source>,
    /// Loads models.
    pub loader: Arc<Loader>,
    /// Game of the run's own store, and its representation options.
    pub game: (String, u32),
    /// Interval at which labels are polled.
    pub poll: Duration,
    /// Largest memory of a model, in bytes. The default model may exceed it.
    pub memory: u64,
    /// Metrics of the server.
    pub metrics: Arc<Metrics>,
}

impl Library {
    /// Loads and follows every name of the table, each in a task of its own, until the returned set is dropped.
    pub fn start(self) -> JoinSet<()> {
        let library = Arc::new(self);
        // Held while a model is loaded.
        let loading = Arc::new(Mutex::new(()));
        let mut tasks = JoinSet::new();
        for slot in library.models.slots() {
            let (library, slot, loading) = (library.clone(), slot.clone(), loading.clone());
            tasks.spawn(async move {
                // Unreachable: names are parsed with these sources.
                if let Some(source) = library.sources.get(&slot.name.source) {
                    library.follow(&slot, source, &loading).await;
                }
            });
        }
        tasks
    }

    /// Serves what the name of a slot points at, and each later version of its label. Never returns.
    async fn follow(&self, slot: &ModelSlot, source: &Source, loading: &Mutex<()>) {
        let (mut versions, mut manifest) = match (source, &slot.name.pointer) {
            (Source::Store(store), Pointer::Label(label)) => {
                let mut versions = store.watch(label, self.poll);
                let first = versions.next().await;
                (versions, first)
            }
            // A version and the file of another program do not change.
            _ => (stream::pending().boxed(), None),
        };
        let mut pause = FIRST_PAUSE;
        loop {
            let found = match (source, manifest.clone()) {
                (Source::Store(store), Some(manifest)) => Found::of(store.clone(), manifest),
                _ => source.find(&slot.name.pointer).await,
            };
            let served = match found {
                Ok(found) => {
                    let _alone = loading.lock().await;
                    self.serve(slot, found).await
                }
                Err(error) => Err(error),
            };
            let Err(error) = served else {
                (manifest, pause) = (versions.next().await, FIRST_PAUSE);
                continue;
            };
            self.log_refusal(slot, manifest.as_ref(), &error);
            if !error.is_transient() {
                slot.refused(chain(&error).to_string());
                (manifest, pause) = (versions.next().await, FIRST_PAUSE);
                continue;
            }
            // A newer version ends the pause.
            match timeout(pause, versions.next()).await {
                Ok(newer) => (manifest, pause) = (newer, FIRST_PAUSE),
                Err(_) => pause = LONGEST_PAUSE.min(2 * pause),
            }
        }
    }

    fn log_refusal(&self, slot: &ModelSlot, manifest: Option<&Manifest>, error: &LibraryError) {
        self.metrics.loaded(false);
        let served = slot.current();
        tracing::error!(
            name = slot.text,
            version = manifest.map(|manifest| manifest.version.as_str()),
            error = %chain(error),
            still_served = served.map_or_else(|| "none".into(), |model| model.info.version.clone()),
            "{}", if error.is_transient() { "the model cannot be loaded; trying again" } else { "the model is refused" }
        );
    }

    /// Points a slot at the model that was found, and loads that model if no other slot has it.
    async fn serve(&self, slot: &ModelSlot, found: Found) -> Result<(), LibraryError> {
        let before = slot.current();
        if before
            .as_ref()
            .is_some_and(|model| model.info.version == found.version.as_str())
        {
            return Ok(());
        }
        self.check(slot, &found, before.as_deref())?;
        let (began, published_at) = (Instant::now(), found.published_at());
        let model = match self.models.loaded(&slot.name.source, found.version.as_str()) {
            Some(model) => model,
            None => self.load(slot, found).await?,
        };
        let before = slot.replace(model.clone());
        self.metrics.loaded(true);
        if slot.is_default {
            let before = before.as_deref().map(|before| &before.info);
            self.metrics.serves(&model.info, before, published_at);
        }
        tracing::info!(
            name = slot.text,
            version = model.info.version,
            provider = model.info.provider,
            seconds = began.elapsed().as_secs_f32(),
            "serving"
        );
        // Another name may point at the replaced model.
        if let Some(before) = before
            && self
                .models
                .loaded(&before.info.source, &before.info.version)
                .is_none()
        {
            retire(before);
        }
        Ok(())
    }

    async fn load(&self, slot: &ModelSlot, found: Found) -> Result<Arc<Model>, LibraryError> {
        let bytes = found.fetch().await?;
        let (loader, name) = (self.loader.clone(), slot.name.source.clone());
        let loading = tokio::task::spawn_blocking(move || {
            let file = ModelFile {
                bytes,
                version: found.version.to_string(),
                step: found.step,
                layout: found.layout,
                search: None,
            };
            loader.load_from(&name, &file, &found.contract)
        });
        let interrupted = |_| LibraryError::Unsuitable("loading was interrupted".into());
        Ok(Arc::new(loading.await.map_err(interrupted)??))
    }

    /// Checks that a model suits its name: the run's game, the layout of the model before it, the limit on its memory.
    fn check(&self, slot: &ModelSlot, found: &Found, before: Option<&Model>) -> Result<(), LibraryError> {
        let layout = &found.layout;
        let (game, options) = &self.game;
        if slot.name.source.is_empty() && (layout.game != *game || layout.options != *options) {
            return Err(LibraryError::Unsuitable(format!(
                "the model is for {} (options {}), this server serves {game} (options {options})",
                layout.game, layout.options
            )));
        }
        if before.is_some_and(|before| before.info.layout != *layout) {
            return Err(LibraryError::Unsuitable(
                "the model's row layout differs from that of the served model; start a new run for it".into(),
            ));
        }
        let (needed, most) = (self.loader.memory(found.bytes), self.memory);
        if needed > most && slot.is_default {
            // Training must continue.
            tracing::warn!(needed, most, "the default model exceeds inference.memory_mib");
        } else if needed > most {
            return Err(LibraryError::Unsuitable(format!(
                "the model needs {needed} bytes, at most {most} are allowed; raise inference.memory_mib"
            )));
        }
        Ok(())
    }
}

/// Frees a model that no name points at after its last request is answered, on a blocking thread.
fn retire(model: Arc<Model>) {
    tokio::spawn(async move {
        while Arc::strong_count(&model) > 1 {
            tokio::time::sleep(RETIRE_POLL).await;
        }
        // This fails only when the process ends.
        let _ = tokio::task::spawn_blocking(move || drop(model)).await;
    });
}
