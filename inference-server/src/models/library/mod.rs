//! Loads the models that requests name, within a memory budget, and unloads the least recently used ones.
//!
//! One model is loaded at a time. Served labels are followed: each new version is loaded beside the old one, and they are
//! swapped between two batches. An unloaded model still answers its queued requests, and its memory counts until then.
//!
//! | module | contents |
//! |---|---|
//! | [`room`] | the memory budget |
//! | [`error`] | reasons for not serving a model |
//! | `follow` | follows a label: loads each new checkpoint beside the old one |

mod error;
mod follow;
mod room;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::{Semaphore, watch},
    time::Instant,
};

use crate::{
    metrics::Metrics,
    models::{
        names::{Pointer, ServedName},
        slot::ModelSlot,
        source::{Found, Source},
        table::{Models, ResolvedModel},
    },
    requests::refusal::Refusal,
};
pub use error::LibraryError;
use network::{
    loader::{File, Loader},
    model::Model,
};

/// Largest number of requests that wait for a model to be loaded.
const MAX_WAITING: usize = 256;
/// Time for which a failed name keeps failing without another try.
const FAILURE_LASTS: Duration = Duration::from_secs(5);
/// Largest number of failures that are remembered.
const MAX_FAILURES: usize = 1024;

/// Parts of a library.
#[derive(Debug)]
pub struct LibraryParts {
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
    /// Memory budget of all models, in bytes.
    pub budget: u64,
    /// True if requests may load models.
    pub on_demand: bool,
    /// Metrics of the server.
    pub metrics: Arc<Metrics>,
}

/// Loads and unloads models.
#[derive(Debug)]
pub struct Library {
    parts: LibraryParts,
    /// Held while a model is loaded.
    loading: tokio::sync::Mutex<()>,
    waiting: Semaphore,
    /// Memory of unloaded models that still answer queued requests, in bytes.
    retiring: Arc<AtomicU64>,
    failures: Mutex<HashMap<String, (Refusal, Instant)>>,
    /// True once the default has had a model.
    has_default: watch::Sender<bool>,
}

/// An entry of the list of models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelListing {
    /// Name for requests, without the version: `latest`, `chess/best`.
    pub name: String,
    /// Version that the name points at. Empty if it is not known.
    pub version: String,
    /// True if the model is loaded.
    pub is_loaded: bool,
    /// Reason why it is not loaded, if there is one.
    pub reason: String,
}

impl Library {
    /// Makes a library of its parts.
    pub fn new(parts: LibraryParts) -> Arc<Self> {
        Arc::new(Self {
            parts,
            loading: tokio::sync::Mutex::default(),
            waiting: Semaphore::new(MAX_WAITING),
            retiring: Arc::default(),
            failures: Mutex::default(),
            has_default: watch::Sender::new(false),
        })
    }

    /// Returns the table of served names.
    pub fn models(&self) -> &Arc<Models> {
        &self.parts.models
    }

    /// Starts to follow the default model, which is loaded as soon as it exists.
    pub fn start(self: &Arc<Self>) {
        let slot = self.models().default_slot();
        let follower = match (self.parts.sources.get(&slot.name.source), &slot.name.pointer) {
            (Some(Source::Store(store)), Pointer::Label(label)) => {
                follow::start(self, slot, store.clone(), label)
            }
            (Some(source), _) => follow::until_loaded(self, slot, source.clone()),
            // Unreachable: the name was parsed with these sources.
            (None, _) => return,
        };
        slot.set_follower(Some(follower));
    }

    /// Waits until the default has a model.
    pub async fn first_model(&self) {
        // The sender lives as long as `self`.
        let _ = self
            .has_default
            .subscribe()
            .wait_for(|&has_default| has_default)
            .await;
    }

    /// Returns the interval at which labels are polled.
    pub(crate) fn poll(&self) -> Duration {
        self.parts.poll
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.parts.metrics
    }

    /// Finds the model that `text` names, and loads it if requests may load models.
    ///
    /// # Errors
    /// [`Refusal`] with the reason. The same name then fails at once for some seconds.
    pub async fn get(self: &Arc<Self>, text: &str) -> Result<ResolvedModel, Refusal> {
        match self.models().find(text) {
            Err(Refusal::NotLoaded(_)) if self.parts.on_demand => {}
            found => return found,
        }
        let _waiting = self.waiting.try_acquire().map_err(|_| Refusal::LoadsWait)?;
        self.remembered_failure(text)?;
        let _alone = self.loading.lock().await;
        // Another request may have loaded it meanwhile.
        match self.models().find(text) {
            Err(Refusal::NotLoaded(_)) => {}
            found => return found,
        }
        self.remembered_failure(text)?;
        self.open(text).await.inspect_err(|refusal| {
            let mut failures = self.failures.lock();
            if failures.len() >= MAX_FAILURES {
                failures.retain(|_, (_, at)| at.elapsed() < FAILURE_LASTS);
            }
            if failures.len() < MAX_FAILURES {
                failures.insert(text.to_owned(), (refusal.clone(), Instant::now()));
            }
        })?;
        self.models().find(text)
    }

    /// Loads the model that `text` names on behalf of an administrator. A label that is loaded already is updated.
    ///
    /// # Errors
    /// [`Refusal`] with the reason.
    pub async fn load(self: &Arc<Self>, text: &str) -> Result<ResolvedModel, Refusal> {
        let name = self.models().name(text)?;
        let _alone = self.loading.lock().await;
        match self.models().slot(&name) {
            None => self.open(text).await?,
            Some(slot) => {
                let source = self.source(&name)?;
                let renewed = async {
                    let found = source.find(&name.pointer).await?;
                    self.renew(&slot, source, &found).await
                };
                renewed.await.map_err(|error| {
                    self.metrics().refused_model();
                    error.refusal(text)
                })?;
            }
        }
        self.models().find(text)
    }

    /// Unloads the model that `text` names. Its queued requests are still answered.
    ///
    /// # Errors
    /// [`Refusal::Pinned`] for the default, [`Refusal::UnknownModel`] if it is not loaded.
    pub async fn unload(&self, text: &str) -> Result<(), Refusal> {
        let name = self.models().name(text)?;
        let _alone = self.loading.lock().await;
        let slot = self
            .models()
            .slot(&name)
            .ok_or_else(|| Refusal::UnknownModel(text.to_owned()))?;
        if slot.is_pinned {
            return Err(Refusal::Pinned(text.to_owned()));
        }
        self.close(&slot, "requested");
        Ok(())
    }

    /// Lists every label of every source and all other loaded names.
    ///
    /// # Errors
    /// [`Refusal::StoreFails`]. A model that cannot be read is listed with the reason instead.
    pub async fn index(&self) -> Result<Vec<ModelListing>, Refusal> {
        let mut listed: BTreeMap<String, ModelListing> = BTreeMap::new();
        for (source_name, source) in &self.parts.sources {
            match source.labels().await {
                Ok(labels) => {
                    for (label, version) in labels {
                        let name = ServedName {
                            source: source_name.clone(),
                            pointer: Pointer::Label(label),
                        };
                        let entry = ModelListing {
                            name: name.to_string(),
                            version: version.to_string(),
                            is_loaded: false,
                            reason: self
                                .failure(&name.to_string())
                                .map_or_else(String::new, |failure| failure.to_string()),
                        };
                        listed.insert(entry.name.clone(), entry);
                    }
                }
                Err(error) if error.is_transient() => {
                    return Err(Refusal::StoreFails(service::chain(&error).to_string()));
                }
                Err(error) => {
                    let name = source_name.clone();
                    let entry = ModelListing {
                        name: name.clone(),
                        version: String::new(),
                        is_loaded: false,
                        reason: service::chain(&error).to_string(),
                    };
                    listed.insert(name, entry);
                }
            }
        }
        for slot in self.models().slots() {
            let Some(model) = slot.current() else { continue };
            let entry = ModelListing {
                name: slot.text.clone(),
                version: model.info.version.clone(),
                is_loaded: true,
                reason: String::new(),
            };
            listed.insert(slot.text.clone(), entry);
        }
        Ok(listed.into_values().collect())
    }

    /// Serves a new name. The caller holds the lock `loading`.
    async fn open(self: &Arc<Self>, text: &str) -> Result<(), Refusal> {
        let name = self.models().name(text)?;
        let source = self.source(&name)?;
        let opened = async {
            let found = source.find(&name.pointer).await?;
            let slot = Arc::new(ModelSlot::new(name.clone(), false));
            self.renew(&slot, source, &found).await?;
            while !self.models().add(slot.clone()) {
                let oldest = self.models().least_recently_used(None);
                self.close(&oldest.ok_or(LibraryError::TooManyNames)?, "its place is needed");
            }
            if let (Source::Store(store), Pointer::Label(label)) = (source, &name.pointer) {
                slot.set_follower(Some(follow::start(self, &slot, store.clone(), label)));
            }
            Ok(())
        };
        opened.await.map_err(|error: LibraryError| {
            let refusal = error.refusal(text);
            if !matches!(refusal, Refusal::UnknownModel(_)) {
                self.metrics().refused_model();
                tracing::error!(name = text, error = %service::chain(&error), "model refused");
            }
            refusal
        })
    }

    /// Takes the lock `loading` and calls [`Library::renew`].
    pub(crate) async fn follow(&self, slot: &Arc<ModelSlot>, found: &Found) -> Result<(), LibraryError> {
        let Some(source) = self.parts.sources.get(&slot.name.source) else {
            return Ok(());
        };
        let _alone = self.loading.lock().await;
        self.renew(slot, source, found).await
    }

    /// Points the slot at the model that was found, and loads that model if necessary.
    async fn renew(&self, slot: &Arc<ModelSlot>, source: &Source, found: &Found) -> Result<(), LibraryError> {
        let before = slot.current();
        if before
            .as_ref()
            .is_some_and(|model| model.info.version == found.version.as_str())
        {
            return Ok(());
        }
        self.check_layout(slot, found, before.as_deref())?;
        let began = Instant::now();
        let model = match self.models().loaded(&slot.name.source, found.version.as_str()) {
            Some(model) => model,
            None => {
                self.make_room(slot, found).await?;
                let bytes = source.fetch(found).await?;
                Arc::new(self.run_loader(slot, found.clone(), bytes).await?)
            }
        };
        let before = slot.replace(Some(model.clone()));
        if slot.is_pinned {
            self.metrics().published(found.published_at());
            self.metrics().serves(
                &model.info,
                before.as_deref().map(|before| &before.info),
                began.elapsed(),
            );
            self.has_default.send_replace(true);
        } else {
            self.metrics().loaded(began.elapsed());
        }
        tracing::info!(
            name = slot.text,
            version = model.info.version,
            provider = model.info.provider,
            seconds = began.elapsed().as_secs_f32(),
            "serving"
        );
        drop(model);
        if let Some(before) = before {
            self.retire(before);
        }
        self.update_metrics();
        Ok(())
    }

    async fn run_loader(
        &self,
        slot: &ModelSlot,
        found: Found,
        bytes: bytes::Bytes,
    ) -> Result<Model, LibraryError> {
        let loader = self.parts.loader.clone();
        let source = slot.name.source.clone();
        let loading = tokio::task::spawn_blocking(move || {
            let file = File {
                bytes: &bytes,
                version: found.version.as_str(),
                step: found.step,
                layout: &found.layout,
            };
            loader.load_from(&source, file, &found.contract)
        });
        Ok(loading.await.map_err(|_| LibraryError::Interrupted)??)
    }

    fn check_layout(
        &self,
        slot: &ModelSlot,
        found: &Found,
        before: Option<&Model>,
    ) -> Result<(), LibraryError> {
        let layout = &found.layout;
        let (serves, serves_options) = &self.parts.game;
        if slot.name.source.is_empty() && (layout.game != *serves || layout.options != *serves_options) {
            return Err(LibraryError::OtherGame {
                found: layout.game.clone(),
                found_options: layout.options,
                serves: serves.clone(),
                serves_options: *serves_options,
            });
        }
        match before {
            Some(before) if before.info.layout != *layout => Err(LibraryError::OtherLayout),
            _ => Ok(()),
        }
    }

    fn source(&self, name: &ServedName) -> Result<&Source, Refusal> {
        self.parts
            .sources
            .get(&name.source)
            .ok_or_else(|| Refusal::UnknownModel(name.to_string()))
    }

    fn failure(&self, text: &str) -> Option<Refusal> {
        let failures = self.failures.lock();
        let (refusal, at) = failures.get(text)?;
        (at.elapsed() < FAILURE_LASTS).then(|| refusal.clone())
    }

    fn remembered_failure(&self, text: &str) -> Result<(), Refusal> {
        self.failure(text).map_or(Ok(()), Err)
    }
}
