//! The table of served names, and the model that each one points at.
//!
//! The names are fixed when the server starts. Every request looks into the table; [`crate::models::library`] fills it.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use network::model::Model;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::{
    intake::refusal::Refusal,
    metrics::CacheUse,
    models::names::{Pointer, ServedName},
};

/// A served name. Its model changes between batches: waiting requests are computed by the model that the name points at
/// when their batch is formed.
#[derive(Debug)]
pub struct ModelSlot {
    /// Parsed name.
    pub name: ServedName,
    /// Canonical text of the name.
    pub text: String,
    /// True for the model of requests without a name.
    pub is_default: bool,
    /// Cache hits and misses of the name.
    pub(crate) cache_use: CacheUse,
    current: watch::Sender<Option<Arc<Model>>>,
    /// Reason why the newest model of the name was refused.
    failure: Mutex<Option<String>>,
}

impl ModelSlot {
    /// Makes a slot without a model.
    pub fn new(name: ServedName, is_default: bool) -> Self {
        let text = name.to_string();
        Self {
            cache_use: CacheUse::new(&text),
            text,
            name,
            is_default,
            current: watch::Sender::new(None),
            failure: Mutex::default(),
        }
    }

    /// Returns the model that the name points at now.
    pub fn current(&self) -> Option<Arc<Model>> {
        self.current.borrow().clone()
    }

    /// Points the name at `model` from the next batch on. Returns the previous model.
    pub fn replace(&self, model: Arc<Model>) -> Option<Arc<Model>> {
        *self.failure.lock() = None;
        self.current.send_replace(Some(model))
    }

    /// Records why a model of the name was refused. The model that is served stays.
    pub fn refused(&self, reason: String) {
        *self.failure.lock() = Some(reason);
    }

    /// Returns the reason why the newest model of the name was refused, and which one is served in its place; `None` if the newest one is
    /// served, or if there was none.
    pub fn failure(&self) -> Option<String> {
        self.failure.lock().clone()
    }

    /// Waits until the name has a model.
    pub async fn first_model(&self) {
        // The sender lives as long as `self`, so that waiting cannot fail.
        let _ = self.current.subscribe().wait_for(Option::is_some).await;
    }

    fn resolve(self: &Arc<Self>) -> Result<ResolvedModel, Refusal> {
        if let Some(model) = self.current() {
            let slot = (!self.name.is_exact()).then(|| self.clone());
            return Ok(ResolvedModel { model, slot });
        }
        let name = self.text.clone();
        Err(match self.failure() {
            // The next checkpoint of the run may be good, so its clients wait.
            Some(reason) if self.is_default => Refusal::NewestRefused { name, reason },
            Some(reason) => Refusal::BadModel { name, reason },
            None => Refusal::NoModel(name),
        })
    }
}

/// Table of served names.
#[derive(Debug)]
pub struct Models {
    default: Arc<ModelSlot>,
    sources: BTreeSet<String>,
    slots: HashMap<String, Arc<ModelSlot>>,
}

/// The model that a request named.
#[derive(Clone, Debug)]
pub struct ResolvedModel {
    /// Model at the time of the look-up.
    pub model: Arc<Model>,
    /// Slot of the name. `None` if the request named a version, so that no other model may answer.
    pub slot: Option<Arc<ModelSlot>>,
}

impl Models {
    /// Makes a table of `default`, for requests without a name, and of `others`. No name has a model yet. `sources` are the
    /// names of the sources besides the run's own.
    pub fn new(
        default: ServedName,
        others: impl IntoIterator<Item = ServedName>,
        sources: impl IntoIterator<Item = String>,
    ) -> Self {
        let default = Arc::new(ModelSlot::new(default, true));
        let mut slots = HashMap::from([(default.text.clone(), default.clone())]);
        for name in others {
            let text = name.to_string();
            slots
                .entry(text)
                .or_insert_with(|| Arc::new(ModelSlot::new(name, false)));
        }
        Self {
            default,
            sources: sources.into_iter().collect(),
            slots,
        }
    }

    /// Returns the slot for requests without a name.
    pub fn default_slot(&self) -> &Arc<ModelSlot> {
        &self.default
    }

    /// Returns all slots, ordered by name.
    pub fn slots(&self) -> Vec<&Arc<ModelSlot>> {
        let mut slots: Vec<_> = self.slots.values().collect();
        slots.sort_by(|left, right| left.name.cmp(&right.name));
        slots
    }

    /// Finds the model that `text` names.
    ///
    /// # Errors
    /// [`Refusal::UnknownModel`] if the name is not served, [`Refusal::NoModel`] or [`Refusal::NewestRefused`] if it has no model yet,
    /// [`Refusal::BadModel`] if its model was refused.
    pub fn find(&self, text: &str) -> Result<ResolvedModel, Refusal> {
        if text.is_empty() {
            return self.default.resolve();
        }
        if let Some(slot) = self.slots.get(text) {
            return slot.resolve();
        }
        let unknown = || Refusal::UnknownModel(text.to_owned());
        let name = ServedName::parse(text, |source| self.sources.contains(source)).ok_or_else(unknown)?;
        if let Some(slot) = self.slots.get(&name.to_string()) {
            return slot.resolve();
        }
        // A label may point at the version.
        let Pointer::Version(version) = &name.pointer else {
            return Err(unknown());
        };
        let model = self.loaded(&name.source, version.as_str()).ok_or_else(unknown)?;
        Ok(ResolvedModel { model, slot: None })
    }

    /// Finds a loaded model by its version, in any slot.
    pub fn loaded(&self, source: &str, version: &str) -> Option<Arc<Model>> {
        self.slots
            .values()
            .filter_map(|slot| slot.current())
            .find(|model| model.info.source == source && model.info.version == version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{latest, model};

    const VERSION: &str = "000000000007-0123abcd";

    fn version(found: Result<ResolvedModel, Refusal>) -> String {
        found.unwrap().model.info.version.clone()
    }

    #[test]
    fn names_find_their_models() {
        let name = |text| ServedName::parse(text, |source| source == "other").unwrap();
        let others = ["best", "other/latest", "latest"].map(name);
        let models = Models::new(latest(), others, ["other".to_owned()]);
        let none = |name: &str| Err(Refusal::NoModel(name.into()));
        for (text, name) in [("", "latest"), ("latest", "latest"), ("best", "best")] {
            assert_eq!(models.find(text).map(drop), none(name));
        }
        models.default_slot().replace(model(VERSION, 8));
        assert!(models.find("").unwrap().slot.is_some());
        assert_eq!(version(models.find("latest")), VERSION);
        // The version itself is found where a label points at it, and is exact then.
        let exact = models.find(VERSION).unwrap();
        assert!(exact.slot.is_none());
        assert_eq!(version(models.find(&format!("latest/{VERSION}"))), VERSION);
        let slots = models.slots();
        let [best, latest, other] = slots.as_slice() else {
            panic!("{slots:?}")
        };
        assert!(latest.is_default && !best.is_default);
        best.replace(model("2", 8));
        assert_eq!(version(models.find("best")), "2");
        other.refused("it is broken".into());
        let refused = Refusal::BadModel {
            name: "other/latest".into(),
            reason: "it is broken".into(),
        };
        assert_eq!(models.find("other").unwrap_err(), refused);
        other.replace(model("3", 8));
        assert_eq!(version(models.find("other")), "3");
        for text in ["worst", "other/best", "No/thing"] {
            assert_eq!(models.find(text).unwrap_err(), Refusal::UnknownModel(text.into()));
        }
    }
}
