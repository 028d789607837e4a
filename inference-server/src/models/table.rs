//! The table of served names, each with the model that it points at.
//!
//! Every request looks into the table. It does no IO and starts no tasks; [`crate::models::library`] fills it.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::RwLock;

use crate::{
    models::{
        names::{Pointer, ServedName},
        slot::ModelSlot,
    },
    requests::refusal::Refusal,
};
use network::model::Model;

/// Largest number of names served at the same time. The least recently used name makes room for a new one.
pub const MAX_SLOTS: usize = 256;

/// Table of served names.
#[derive(Debug)]
pub struct Models {
    default: Arc<ModelSlot>,
    sources: BTreeSet<String>,
    slots: RwLock<HashMap<String, Arc<ModelSlot>>>,
    uses: AtomicU64,
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
    /// Makes a table that serves `default`, which has no model yet. `sources` are the sources besides the run's own.
    pub fn new(default: ServedName, sources: impl IntoIterator<Item = String>) -> Self {
        let default = Arc::new(ModelSlot::new(default, true));
        Self {
            slots: RwLock::new(HashMap::from([(default.text.clone(), default.clone())])),
            default,
            sources: sources.into_iter().collect(),
            uses: AtomicU64::new(0),
        }
    }

    /// Returns the slot for requests without a name.
    pub fn default_slot(&self) -> &Arc<ModelSlot> {
        &self.default
    }

    /// Returns the model for requests without a name.
    pub fn current(&self) -> Option<Arc<Model>> {
        self.default.current()
    }

    /// Parses a name.
    ///
    /// # Errors
    /// [`Refusal::UnknownModel`] if the text is not a name on this server.
    pub fn name(&self, text: &str) -> Result<ServedName, Refusal> {
        if text.is_empty() {
            return Ok(self.default.name.clone());
        }
        ServedName::parse(text, |source| self.sources.contains(source))
            .ok_or_else(|| Refusal::UnknownModel(text.to_owned()))
    }

    /// Finds the loaded model that `text` names.
    ///
    /// # Errors
    /// [`Refusal::NoModel`] if the default has no model yet, [`Refusal::NotLoaded`] if another name is not loaded,
    /// [`Refusal::UnknownModel`] if the text is not a name.
    pub fn find(&self, text: &str) -> Result<ResolvedModel, Refusal> {
        if text.is_empty() || text == self.default.text {
            return self.take(&self.default).ok_or(Refusal::NoModel);
        }
        if let Some(found) = self.served(text) {
            return Ok(found);
        }
        let name = self.name(text)?;
        let canonical = name.to_string();
        if canonical == self.default.text {
            return self.take(&self.default).ok_or(Refusal::NoModel);
        }
        if canonical != text
            && let Some(found) = self.served(&canonical)
        {
            return Ok(found);
        }
        // A label may point at the version.
        if let Pointer::Version(version) = &name.pointer
            && let Some(model) = self.loaded(&name.source, version.as_str())
        {
            return Ok(ResolvedModel { model, slot: None });
        }
        Err(Refusal::NotLoaded(text.to_owned()))
    }

    /// Finds a loaded model by its version, in any slot.
    pub fn loaded(&self, source: &str, version: &str) -> Option<Arc<Model>> {
        self.each(|slot| slot.current())
            .into_iter()
            .flatten()
            .find(|model| model.info.source == source && model.info.version == version)
    }

    /// Serves `model` as the default from the next batch on. Returns the previous one.
    pub fn serve(&self, model: Arc<Model>) -> Option<Arc<Model>> {
        self.default.replace(Some(model))
    }

    /// Adds a slot. Returns false if [`MAX_SLOTS`] names are served already.
    pub fn add(&self, slot: Arc<ModelSlot>) -> bool {
        let mut slots = self.slots.write();
        if slots.len() >= MAX_SLOTS {
            return false;
        }
        slot.touch(self.uses.fetch_add(1, Ordering::Relaxed) + 1);
        slots.insert(slot.text.clone(), slot);
        true
    }

    /// Removes a slot, unless it is the default. Returns its model.
    pub fn remove(&self, slot: &Arc<ModelSlot>) -> Option<Arc<Model>> {
        if slot.is_pinned {
            return None;
        }
        slot.set_follower(None);
        let mut slots = self.slots.write();
        if slots
            .get(&slot.text)
            .is_some_and(|there| Arc::ptr_eq(there, slot))
        {
            slots.remove(&slot.text);
        }
        drop(slots);
        slot.replace(None)
    }

    /// Returns the slot of a name.
    pub fn slot(&self, name: &ServedName) -> Option<Arc<ModelSlot>> {
        self.slots.read().get(&name.to_string()).cloned()
    }

    /// Returns all slots, ordered by name.
    pub fn slots(&self) -> Vec<Arc<ModelSlot>> {
        let mut slots = self.each(Arc::clone);
        slots.sort_by(|left, right| left.name.cmp(&right.name));
        slots
    }

    /// Returns the least recently used slot that may be unloaded, other than `spared`.
    pub fn least_recently_used(&self, spared: Option<&ModelSlot>) -> Option<Arc<ModelSlot>> {
        let is_spared = |slot: &ModelSlot| spared.is_some_and(|spared| std::ptr::eq(spared, slot));
        self.each(Arc::clone)
            .into_iter()
            .filter(|slot| !slot.is_pinned && !is_spared(slot))
            .min_by_key(|slot| slot.used())
    }

    /// Returns the memory of all served models, in bytes. A model with several names counts once.
    pub fn bytes(&self) -> u64 {
        self.bytes_of(|_| true)
    }

    /// Returns the memory of the models of those slots for which `counts` holds, in bytes.
    pub fn bytes_of(&self, counts: impl Fn(&ModelSlot) -> bool) -> u64 {
        let of = |slot: &Arc<ModelSlot>| counts(slot).then(|| slot.current()).flatten();
        let mut models: Vec<Arc<Model>> = self.each(of).into_iter().flatten().collect();
        models.sort_by_key(Arc::as_ptr);
        models.dedup_by_key(|model| Arc::as_ptr(model));
        models.iter().map(|model| model.info.bytes).sum()
    }

    fn each<T>(&self, what: impl Fn(&Arc<ModelSlot>) -> T) -> Vec<T> {
        self.slots.read().values().map(what).collect()
    }

    fn served(&self, text: &str) -> Option<ResolvedModel> {
        let slots = self.slots.read();
        self.take(slots.get(text)?)
    }

    fn take(&self, slot: &Arc<ModelSlot>) -> Option<ResolvedModel> {
        let model = slot.current()?;
        if !slot.is_pinned {
            slot.touch(self.uses.fetch_add(1, Ordering::Relaxed) + 1);
        }
        let slot = (!slot.name.is_exact()).then(|| slot.clone());
        Some(ResolvedModel { model, slot })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{latest, model};

    const VERSION: &str = "000000000007-0123abcd";

    fn slot(text: &str, version: &str) -> Arc<ModelSlot> {
        let name = ServedName::parse(text, |source| source == "other").unwrap();
        let slot = ModelSlot::new(name, false);
        slot.replace(Some(model(version, 8)));
        Arc::new(slot)
    }

    fn version(found: Result<ResolvedModel, Refusal>) -> String {
        found.unwrap().model.info.version.clone()
    }

    #[test]
    fn names_find_their_models() {
        let models = Models::new(latest(), ["other".to_owned()]);
        assert_eq!(models.find("").unwrap_err(), Refusal::NoModel);
        assert_eq!(models.find("latest").unwrap_err(), Refusal::NoModel);
        models.serve(model(VERSION, 8));
        assert!(models.find("").unwrap().slot.is_some());
        assert_eq!(version(models.find("latest")), VERSION);
        // The version itself is found where a label points at it, and is exact then.
        let exact = models.find(VERSION).unwrap();
        assert!(exact.slot.is_none());
        assert_eq!(version(models.find(&format!("latest/{VERSION}"))), VERSION);
        assert_eq!(
            models.find("best").unwrap_err(),
            Refusal::NotLoaded("best".into())
        );
        assert!(models.add(slot("best", "2")));
        assert!(models.add(slot("other/latest", "3")));
        assert_eq!(version(models.find("best")), "2");
        assert_eq!(version(models.find("other")), "3");
        assert_eq!(
            models.find("No/thing").unwrap_err(),
            Refusal::UnknownModel("No/thing".into())
        );
    }

    #[test]
    fn the_least_recently_used_is_unloaded_first_and_the_default_never() {
        let models = Models::new(latest(), []);
        models.serve(model("1", 8));
        for label in ["first", "second", "third"] {
            assert!(models.add(slot(label, label)));
        }
        models.find("first").unwrap();
        let mut gone = Vec::new();
        while let Some(slot) = models.least_recently_used(None) {
            assert!(models.remove(&slot).is_some());
            gone.push(slot.text.clone());
        }
        assert_eq!(gone, ["second", "third", "first"]);
        let renewed = slot("renewed", "1");
        assert!(models.add(renewed.clone()));
        assert!(models.least_recently_used(Some(&renewed)).is_none());
        assert!(models.remove(models.default_slot()).is_none());
        assert_eq!(version(models.find("")), "1");
    }

    #[test]
    fn a_model_under_two_names_counts_once() {
        let models = Models::new(latest(), []);
        let shared = model("1", 8);
        models.serve(shared.clone());
        let best = slot("best", "2");
        best.replace(Some(shared.clone()));
        assert!(models.add(best));
        assert_eq!(models.bytes(), shared.info.bytes);
        assert!(models.add(slot("other", "2")));
        assert_eq!(models.bytes(), 2 * shared.info.bytes);
        assert_eq!(models.bytes_of(|slot| slot.is_pinned), shared.info.bytes);
    }

    #[test]
    fn the_number_of_names_is_limited() {
        let models = Models::new(latest(), []);
        let added = (0..MAX_SLOTS).filter(|number| models.add(slot(&format!("label-{number}"), "1")));
        assert_eq!(added.count(), MAX_SLOTS - 1);
    }
}
