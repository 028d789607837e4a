//! Loads the model of each served name. Labels are followed: each new version is loaded while the old one is served, and
//! they are swapped between two batches.
//!
//! One model is loaded at a time. If a model is refused, the old one stays. Transient failures are retried until the label
//! moves. A checkpoint whose files are damaged is tried again every 30 s, because its learner may write them again; until then
//! a server that starts serves the newest checkpoint before it, and says so.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use checkpoints::{LATEST, Repository, Version};
use futures::{StreamExt as _, stream};
use network::{
    ModelFile,
    loader::{LoadError, Loader},
    model::Model,
    sidecar::SidecarError,
    trial::{self, Trial},
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

    /// True if the checkpoint differs from what was published, so that another one may be good.
    fn is_damage(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_damage())
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
    /// Largest memory of a model, in bytes. The run's own default model may exceed it.
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
                // The watch waits until the label can be read.
                match store.resolve(label).await {
                    Err(checkpoints::Error::NotFound { name }) if name == *label => {}
                    Err(error) if !error.is_transient() => {
                        let error = error.into();
                        self.log_refusal(slot, None, &error);
                        self.refuse(slot, chain(&error).to_string());
                        self.fall_back(slot, store, None, loading).await;
                    }
                    _ => {}
                }
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
            let version = manifest.as_ref().map(|manifest| &manifest.version);
            if error.is_transient() {
                self.log_refusal(slot, version, &error);
            } else {
                let reason = chain(&error).to_string();
                if !slot.failure().is_some_and(|known| known.starts_with(&reason)) {
                    self.log_refusal(slot, version, &error);
                    self.refuse(slot, reason);
                    if let Source::Store(store) = source {
                        self.fall_back(slot, store, version, loading).await;
                    }
                }
                if !error.is_damage() || manifest.is_none() {
                    (manifest, pause) = (versions.next().await, FIRST_PAUSE);
                    continue;
                }
                pause = LONGEST_PAUSE;
            }
            // A newer version ends the pause.
            match timeout(pause, versions.next()).await {
                Ok(newer) => (manifest, pause) = (newer, FIRST_PAUSE),
                Err(_) => pause = LONGEST_PAUSE.min(2 * pause),
            }
        }
    }

    /// Serves the newest checkpoint that can be served in place of `refused`, the one that the label of the slot points at, so that games
    /// continue. Does nothing if the slot has a model, or for labels of which only the one checkpoint is meant. The reason of the
    /// refusal stays, with the version that is served.
    async fn fall_back(
        &self,
        slot: &ModelSlot,
        store: &Repository,
        refused: Option<&Version>,
        loading: &Mutex<()>,
    ) {
        let is_newest = matches!(&slot.name.pointer, Pointer::Label(label) if label == LATEST);
        if slot.current().is_some() || !(slot.is_default || is_newest) {
            return;
        }
        let reason = slot.failure().unwrap_or_default();
        let listed = store.list().await.unwrap_or_else(|error| {
            tracing::warn!(error = %chain(&error), "cannot list the checkpoints before the refused one");
            Vec::new()
        });
        let before = listed.into_iter().rev();
        for manifest in before.filter(|manifest| Some(&manifest.version) != refused) {
            let version = manifest.version.clone();
            let served = match Found::of(store.clone(), manifest) {
                Ok(found) => {
                    let _alone = loading.lock().await;
                    self.serve(slot, found).await
                }
                Err(error) => Err(error),
            };
            match served {
                Err(error) => self.log_refusal(slot, Some(&version), &error),
                Ok(()) => {
                    self.refuse(slot, format!("{reason}; {version} is served in its place"));
                    return;
                }
            }
        }
    }

    fn log_refusal(&self, slot: &ModelSlot, version: Option<&Version>, error: &LibraryError) {
        self.metrics.loaded(false);
        let served = slot.current();
        tracing::error!(
            name = slot.text,
            version = version.map(Version::as_str),
            error = %chain(error),
            still_served = served.map_or_else(|| "none".into(), |model| model.info.version.clone()),
            "{}", if error.is_transient() { "the model cannot be loaded; trying again" } else { "the model is refused" }
        );
    }

    /// Points a slot at the model that was found, and loads that model if no other slot has it.
    async fn serve(&self, slot: &ModelSlot, found: Found) -> Result<(), LibraryError> {
        let before = slot.current();
        if let Some(model) = &before
            && model.info.version == found.version.as_str()
        {
            self.point(slot, model.clone());
            return Ok(());
        }
        self.check(slot, &found, before.as_deref())?;
        let (began, published_at) = (Instant::now(), found.published_at());
        let model = match self.models.loaded(&slot.name.source, found.version.as_str()) {
            Some(model) => model,
            None => self.load(slot, found).await?,
        };
        let before = self.point(slot, model.clone());
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

    /// Points a slot at a model, whose name has no refused model then. Returns the previous model.
    fn point(&self, slot: &ModelSlot, model: Arc<Model>) -> Option<Arc<Model>> {
        if slot.is_default {
            self.metrics.newest_refused.set(0.0);
        }
        slot.replace(model)
    }

    fn refuse(&self, slot: &ModelSlot, reason: String) {
        if slot.is_default {
            self.metrics.newest_refused.set(1.0);
        }
        slot.refused(reason);
    }

    async fn load(&self, slot: &ModelSlot, found: Found) -> Result<Arc<Model>, LibraryError> {
        let bytes = found.fetch().await?;
        if !slot.name.source.is_empty() {
            let trial = Trial {
                layout: found.layout.clone(),
                contract: found.contract.clone(),
                memory: self.memory,
                memory_setting: "inference.memory_mib",
                time: trial::TIME,
            };
            let more = trial.run(&bytes).await.map_err(LibraryError::Unsuitable)?;
            let needed = self.loader.memory(found.bytes.saturating_add(more));
            if needed > self.memory {
                return Err(self.too_large(needed));
            }
        }
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
        if needed > most && slot.is_default && slot.name.source.is_empty() {
            // Training must continue.
            tracing::warn!(needed, most, "the default model exceeds inference.memory_mib");
        } else if needed > most {
            return Err(self.too_large(needed));
        }
        Ok(())
    }

    fn too_large(&self, needed: u64) -> LibraryError {
        let most = self.memory;
        LibraryError::Unsuitable(format!(
            "the model needs {needed} bytes, at most {most} are allowed; raise inference.memory_mib"
        ))
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
