//! Which model answers: one slot, changed between batches.

use std::sync::Arc;

use parking_lot::RwLock;

use crate::{model::Model, refusal::Refusal};

/// The models that requests can name: at present the one that the default label points at.
#[derive(Debug)]
pub struct Models {
    label: String,
    current: RwLock<Option<Arc<Model>>>,
}

/// A model that a request named.
#[derive(Clone, Debug)]
pub struct Named {
    /// The model as it is served now.
    pub model: Arc<Model>,
    /// Whether the request named the version itself, so that no other may answer.
    pub is_exact: bool,
}

impl Models {
    /// None yet; `label` is what a request without a name means.
    pub fn new(label: &str) -> Self {
        Self {
            label: label.to_owned(),
            current: RwLock::new(None),
        }
    }

    /// The model that the default label points at.
    pub fn current(&self) -> Option<Arc<Model>> {
        self.current.read().clone()
    }

    /// The model that `name` names: a label, a version, or (empty) the default.
    ///
    /// # Errors
    /// [`Refusal::NoModel`] before the first model, [`Refusal::UnknownModel`].
    pub fn find(&self, name: &str) -> Result<Named, Refusal> {
        let model = self.current().ok_or(Refusal::NoModel)?;
        let is_exact = name == model.info.version;
        if name.is_empty() || name == self.label || is_exact {
            Ok(Named { model, is_exact })
        } else {
            Err(Refusal::UnknownModel(name.to_owned()))
        }
    }

    /// Serves `model` from the next batch on, and gives the one that was served until now.
    pub fn serve(&self, model: Arc<Model>) -> Option<Arc<Model>> {
        self.current.write().replace(model)
    }
}
