//! Loads what requests name, within a budget of memory, and unloads what was used longest ago.
//!
//! One model is loaded at a time. A label that is served is followed: each version it comes to point at is loaded beside
//! the old one and takes over between two batches. A model that is unloaded answers the requests that it has been given,
//! and its memory counts until then.
//!
//! | module | what it is for |
//! |---|---|
//! | [`room`] | the budget of memory |
//! | [`error`] | why a model is not served |

mod error;
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
        follow,
        names::{Pointer, ServedName},
        slot::Slot,
        source::{Found, Source},
        table::{Models, Named},
    },
    requests::refusal::Refusal,
};
pub use error::LibraryError;
use network::{
    loader::{File, Loader},
    model::Model,
};

/// Requests that may wait for models being loaded.
const MAX_WAITING: usize = 256;
/// So long after a failure the same name fails at once.
const FAILURE_LASTS: Duration = Duration::from_secs(5);
/// Failures that are remembered.
const MAX_FAILURES: usize = 1024;

/// What a library is made of.
#[derive(Debug)]
pub struct Parts {
    /// The table to fill.
    pub models: Arc<Models>,
    /// Sources by name; the run's own store is called the empty text.
    pub sources: BTreeMap<String, Source>,
    /// Loads models.
    pub loader: Arc<Loader>,
    /// The game of the run's own store, and its representation options.
    pub game: (String, u32),
    /// How often labels are looked at.
    pub poll: Duration,
    /// Memory of all models, in bytes.
    pub budget: u64,
    /// Whether a request may cause a model to be loaded.
    pub on_demand: bool,
    /// Told what becomes of models.
    pub metrics: Arc<Metrics>,
}

/// Loads and unloads models.
#[derive(Debug)]
pub struct Library {
    parts: Parts,
    /// One load at a time.
    loading: tokio::sync::Mutex<()>,
    waiting: Semaphore,
    /// Bytes of models that are unloaded, but still answer what they were given.
    retiring: Arc<AtomicU64>,
    failures: Mutex<HashMap<String, (Refusal, Instant)>>,
    /// Whether the default has had a model.
    has_default: watch::Sender<bool>,
}

/// A name and what is known about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name to ask for it, without the version: `latest`, `chess/best`.
    pub name: String,
    /// What it points at; empty where that is not known.
    pub version: String,
    /// Whether it is loaded.
    pub is_loaded: bool,
    /// Why it is not, where that is known.
    pub reason: String,
}

impl Library {
    /// A library over its parts.
    pub fn new(parts: Parts) -> Arc<Self> {
        Arc::new(Self {
            parts,
            loading: tokio::sync::Mutex::default(),
            waiting: Semaphore::new(MAX_WAITING),
            retiring: Arc::default(),
            failures: Mutex::default(),
            has_default: watch::Sender::new(false),
        })
    }

    /// The table that is filled.
    pub fn models(&self) -> &Arc<Models> {
        &self.parts.models
    }

    /// Begins to follow the default, which is loaded as soon as it is there.
    pub fn start(self: &Arc<Self>) {
        let slot = self.models().default_slot();
        let follower = match (self.parts.sources.get(&slot.name.source), &slot.name.pointer) {
            (Some(Source::Store(store)), Pointer::Label(label)) => {
                follow::start(self, slot, store.clone(), label)
            }
            (Some(source), _) => follow::until_loaded(self, slot, source.clone()),
            // The name was read with these sources.
            (None, _) => return,
        };
        slot.set_follower(Some(follower));
    }

    /// Waits until the default has a model.
    pub async fn first_model(&self) {
        // The sender lives as long as this does.
        let _ = self
            .has_default
            .subscribe()
            .wait_for(|&has_default| has_default)
            .await;
    }

    /// How often labels are looked at.
    pub(crate) fn poll(&self) -> Duration {
        self.parts.poll
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.parts.metrics
    }

    /// The model that `text` names, loaded if it is not and that may be done for a request.
    ///
    /// # Errors
    /// [`Refusal`]. A failure is remembered for some seconds, in which the same name fails at once.
    pub async fn get(self: &Arc<Self>, text: &str) -> Result<Named, Refusal> {
        match self.models().find(text) {
            Err(Refusal::NotLoaded(_)) if self.parts.on_demand => {}
            found => return found,
        }
        let _waiting = self.waiting.try_acquire().map_err(|_| Refusal::LoadsWait)?;
        self.remembered_failure(text)?;
        let _alone = self.loading.lock().await;
        // Somebody else may have asked for it meanwhile.
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

    /// Loads what `text` names, whether or not requests may do so; where it is loaded already, what it points at now.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn load(self: &Arc<Self>, text: &str) -> Result<Named, Refusal> {
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

    /// Unloads what `text` names. Requests that it was given are answered.
    ///
    /// # Errors
    /// [`Refusal::Pinned`] for the default, [`Refusal::UnknownModel`] for what is not loaded.
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
        self.close(&slot, "asked for");
        Ok(())
    }

    /// Every label of every source, and what else is loaded.
    ///
    /// # Errors
    /// [`Refusal::StoreFails`]. A single model that cannot be read is listed with the reason.
    pub async fn index(&self) -> Result<Vec<Listed>, Refusal> {
        let mut listed: BTreeMap<String, Listed> = BTreeMap::new();
        for (source_name, source) in &self.parts.sources {
            match source.labels().await {
                Ok(labels) => {
                    for (label, version) in labels {
                        let name = ServedName {
                            source: source_name.clone(),
                            pointer: Pointer::Label(label),
                        };
                        let entry = Listed {
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
                Err(error) if error.is_transient() => return Err(Refusal::StoreFails(error.to_string())),
                Err(error) => {
                    let name = source_name.clone();
                    let entry = Listed {
                        name: name.clone(),
                        version: String::new(),
                        is_loaded: false,
                        reason: error.to_string(),
                    };
                    listed.insert(name, entry);
                }
            }
        }
        for slot in self.models().slots() {
            let Some(model) = slot.current() else { continue };
            let entry = Listed {
                name: slot.text.clone(),
                version: model.info.version.clone(),
                is_loaded: true,
                reason: String::new(),
            };
            listed.insert(slot.text.clone(), entry);
        }
        Ok(listed.into_values().collect())
    }

    /// Serves a name that is not served yet. The caller holds the lock.
    async fn open(self: &Arc<Self>, text: &str) -> Result<(), Refusal> {
        let name = self.models().name(text)?;
        let source = self.source(&name)?;
        let opened = async {
            let found = source.find(&name.pointer).await?;
            let slot = Arc::new(Slot::new(name.clone(), false));
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
                tracing::error!(name = text, %error, "model refused");
            }
            refusal
        })
    }

    /// As [`Library::renew`], for who does not hold the lock.
    pub(crate) async fn follow(&self, slot: &Arc<Slot>, found: &Found) -> Result<(), LibraryError> {
        let Some(source) = self.parts.sources.get(&slot.name.source) else {
            return Ok(());
        };
        let _alone = self.loading.lock().await;
        self.renew(slot, source, found).await
    }

    /// Loads what was found, unless it is what the slot points at, and lets the slot point at it.
    async fn renew(&self, slot: &Arc<Slot>, source: &Source, found: &Found) -> Result<(), LibraryError> {
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
        self.tell_memory();
        Ok(())
    }

    async fn run_loader(
        &self,
        slot: &Slot,
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

    fn check_layout(&self, slot: &Slot, found: &Found, before: Option<&Model>) -> Result<(), LibraryError> {
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
