//! Export of a network as an ONNX file that takes rows.

use games::{RowForm, RowLayout};
use onnx::{
    Input, Metadata, NetworkError, fish_eye,
    model::{MetadataError, PAIRS_KEY, with_entry},
};

use crate::{
    network::{Folded, Network},
    torch::TorchError,
};

/// Error: the network cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The weights are not finite, or do not fit the layout.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A torch operation failed.
    #[error(transparent)]
    Torch(#[from] TorchError),
    /// The metadata of the file cannot be written.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
}

impl ExportError {
    /// True if a weight is infinite or not a number.
    pub fn is_not_finite(&self) -> bool {
        matches!(self, Self::Network(NetworkError::NotFinite(_)))
    }
}

/// Writes the number of pairs that a network was trained on into its ONNX file ([`onnx::model::PAIRS_KEY`]), if its rows can
/// hold pairs.
///
/// # Errors
/// [`ExportError::Metadata`] if `model` is not an ONNX file.
pub fn with_pairs(model: Vec<u8>, layout: &RowLayout, pairs: u64) -> Result<Vec<u8>, ExportError> {
    match layout.form {
        RowForm::Planes(_) => Ok(model),
        RowForm::Clan(_) => Ok(with_entry(&model, PAIRS_KEY, &pairs.to_string())?),
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
