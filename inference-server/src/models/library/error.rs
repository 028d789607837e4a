//! Why a model is not served.

use crate::{models::source::SourceError, requests::refusal::Refusal};
use network::loader::LoadError;

/// A model that is not served.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// It cannot be had.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The run's own store is for one game.
    #[error(
        "it is for {found} (options {found_options}), this server serves {serves} (options {serves_options})"
    )]
    OtherGame {
        /// The model's game.
        found: String,
        /// Its options.
        found_options: u32,
        /// The run's game.
        serves: String,
        /// Its options.
        serves_options: u32,
    },
    /// A label keeps its layout.
    #[error("its row layout is another than that of the model being served; start a new run for it")]
    OtherLayout,
    /// The provider does not take it.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The process is ending.
    #[error("loading was interrupted")]
    Interrupted,
    /// It is larger than what may be unloaded for it.
    #[error("it takes {needed} bytes, of {budget} only {free} can be had; raise inference.memory_mib")]
    NoRoom {
        /// What it takes.
        needed: u64,
        /// All there is.
        budget: u64,
        /// What is left beside what is not unloaded for it.
        free: u64,
    },
    /// See [`crate::models::table::MAX_SLOTS`].
    #[error("too many names are served")]
    TooManyNames,
}

impl LibraryError {
    /// Whether trying again later may help: it is no fault of the model.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Source(error) => error.is_transient(),
            Self::NoRoom { .. } | Self::Interrupted | Self::TooManyNames => true,
            Self::OtherGame { .. } | Self::OtherLayout | Self::Load(_) => false,
        }
    }

    /// What a request that named it is told.
    pub(super) fn refusal(&self, name: &str) -> Refusal {
        match self {
            Self::Source(error) if error.is_not_found() => Refusal::UnknownModel(name.to_owned()),
            Self::NoRoom { .. } | Self::TooManyNames => Refusal::NoMemory {
                name: name.to_owned(),
                reason: self.to_string(),
            },
            Self::Source(error) if error.is_transient() => Refusal::StoreFails(error.to_string()),
            _ => Refusal::BadModel {
                name: name.to_owned(),
                reason: self.to_string(),
            },
        }
    }
}
