//! Reads the parts of an ONNX file, and the error of everything that reads, changes or writes one.

use ::half::f16;
use prost::Message as _;

use crate::proto::{ModelProto, TensorProto, tensor_proto::DataLocation, tensor_proto::DataType};

/// Error: a model cannot be written, read or converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OnnxError {
    /// A weight of this layer is infinite or not a number.
    #[error("{0}: a weight is not finite")]
    NotFinite(String),
    /// The file, its metadata or its weights do not fit. The text names the part and says why.
    #[error("{0}")]
    Unsuitable(String),
}

impl OnnxError {
    pub(crate) fn new(reason: impl ToString) -> Self {
        Self::Unsuitable(reason.to_string())
    }
}

/// Decodes a file.
pub(crate) fn decode(file: &[u8]) -> Result<ModelProto, OnnxError> {
    ModelProto::decode(file).map_err(|error| OnnxError::new(format!("not an onnx file: {error}")))
}

/// Returns the numbers of a tensor of f32 or binary16. `None` for other types.
///
/// # Errors
/// [`OnnxError`] if they are not there.
pub(crate) fn floats(tensor: &TensorProto) -> Result<Option<Vec<f32>>, OnnxError> {
    let kind = tensor.data_type();
    if kind != DataType::Float as i32 && kind != DataType::Float16 as i32 {
        return Ok(None);
    }
    let name = tensor.name();
    if tensor.data_location() == DataLocation::External {
        return Err(OnnxError::new(format!("`{name}` is not in the file itself")));
    }
    let values: Vec<f32> = match &tensor.raw_data {
        Some(raw) if kind == DataType::Float as i32 => raw
            .chunks_exact(4)
            .map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
            .collect(),
        Some(raw) => raw
            .chunks_exact(2)
            .map(|bytes| f16::from_le_bytes([bytes[0], bytes[1]]).to_f32())
            .collect(),
        None if kind == DataType::Float as i32 => tensor.float_data.clone(),
        // Numbers of two bytes are kept as the lower half of an int32.
        None => tensor
            .int32_data
            .iter()
            .map(|&bits| f16::from_bits(bits as u16).to_f32())
            .collect(),
    };
    if values.len() as i64 != tensor.dims.iter().product::<i64>() {
        return Err(OnnxError::new(format!("`{name}` is cut short")));
    }
    Ok(Some(values))
}
