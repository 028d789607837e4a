//! Reasons for not serving a model.

use crate::{models::source::SourceError, requests::refusal::Refusal};
use network::loader::LoadError;
use service::chain;

/// Error: a model cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// The source cannot deliver it.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The model is for another game than the run.
    #[error(
        "the model is for {found} (options {found_options}), this server serves {serves} (options {serves_options})"
    )]
    OtherGame {
        /// The model's game.
        found: String,
        /// Representation options of the model.
        found_options: u32,
        /// The run's game.
        serves: String,
        /// Representation options of the run.
        serves_options: u32,
    },
    /// The layout differs from that of the served model of the label.
    #[error("the model's row layout differs from that of the served model; start a new run for it")]
    OtherLayout,
    /// The provider cannot load it.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The process is shutting down.
    #[error("loading was interrupted")]
    Interrupted,
    /// The model does not fit into the memory budget.
    #[error(
        "the model needs {needed} bytes, {free} of {budget} can be made free; raise inference.memory_mib"
    )]
    NoRoom {
        /// Memory of the model, in bytes.
        needed: u64,
        /// Memory budget, in bytes.
        budget: u64,
        /// Memory that can be made free, in bytes.
        free: u64,
    },
    /// [`MAX_SLOTS`](crate::models::table::MAX_SLOTS) names are served.
    #[error("too many names are served")]
    TooManyNames,
}

impl LibraryError {
    /// True if a retry may succeed, because the model itself is not at fault.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Source(error) => error.is_transient(),
            Self::NoRoom { .. } | Self::Interrupted | Self::TooManyNames => true,
            Self::OtherGame { .. } | Self::OtherLayout | Self::Load(_) => false,
        }
    }

    /// Returns the refusal for a request that named the model.
    pub(super) fn refusal(&self, name: &str) -> Refusal {
        match self {
            Self::Source(error) if error.is_not_found() => Refusal::UnknownModel(name.to_owned()),
            Self::NoRoom { .. } | Self::TooManyNames => Refusal::NoMemory {
                name: name.to_owned(),
                reason: chain(self).to_string(),
            },
            Self::Source(error) if error.is_transient() => Refusal::StoreFails(chain(error).to_string()),
            _ => Refusal::BadModel {
                name: name.to_owned(),
                reason: chain(self).to_string(),
            },
        }
    }
}
