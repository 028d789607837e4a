//! Export of a network as an ONNX file that takes rows.

use games::RowLayout;
use onnx::{Input, Metadata, TowerError, fish_eye};

use crate::{
    network::{Folded, Network},
    torch::TorchError,
};

/// Error: the network cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The weights are not finite, or do not fit the layout.
    #[error(transparent)]
    Tower(#[from] TowerError),
    /// A torch operation failed.
    #[error(transparent)]
    Torch(#[from] TorchError),
}

impl ExportError {
    /// True if a weight is infinite or not a number.
    pub fn is_not_finite(&self) -> bool {
        matches!(self, Self::Tower(TowerError::NotFinite { .. }))
    }
}

/// Writes a network as an ONNX file. A tower has its normalisations folded in and begins with the expansion of `layout`. A
/// fish-eye network takes rows that the codec has expanded.
///
/// # Errors
/// [`ExportError`], e.g. if a weight is not finite.
pub fn export(network: &Network, layout: &RowLayout, step: u64) -> Result<Vec<u8>, ExportError> {
    let metadata = Metadata {
        layout: layout.clone(),
        step,
    };
    Ok(match network.fold()? {
        Folded::Tower(weights) => onnx::build(&weights, &metadata, Input::Rows)?,
        Folded::FishEye(weights) => fish_eye::build(&weights, &metadata)?,
    })
}
