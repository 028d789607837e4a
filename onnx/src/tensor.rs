//! Reads the numbers of a file's tensors.

use ::half::f16;

use crate::proto::{TensorProto, tensor_proto::DataLocation, tensor_proto::DataType};

/// Error: the numbers of a tensor cannot be read.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum TensorError {
    /// The numbers lie in another file.
    #[error("`{0}` is not in the file itself")]
    Elsewhere(String),
    /// A tensor has fewer or more numbers than its shape needs.
    #[error("`{0}` is cut short")]
    Short(String),
}

/// Returns the numbers of a tensor of f32 or binary16. `None` for other types.
///
/// # Errors
/// [`TensorError`] if they are not there.
pub(crate) fn floats(tensor: &TensorProto) -> Result<Option<Vec<f32>>, TensorError> {
    let kind = tensor.data_type();
    if kind != DataType::Float as i32 && kind != DataType::Float16 as i32 {
        return Ok(None);
    }
    let name = || tensor.name().to_owned();
    if tensor.data_location() == DataLocation::External {
        return Err(TensorError::Elsewhere(name()));
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
        return Err(TensorError::Short(name()));
    }
    Ok(Some(values))
}
