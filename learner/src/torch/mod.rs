//! Helpers for libtorch: errors of bounded length, copies between tensors and the host.

pub mod device;
pub mod tensor_files;

use tch::{Device, Kind, TchError, Tensor};

/// Longest message kept of a torch error: torch prints whole tensors and C++ stacks into its messages.
const MAX_MESSAGE: usize = 400;

/// Error: a torch operation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("torch: {0}")]
pub struct TorchError(String);

impl From<TchError> for TorchError {
    fn from(error: TchError) -> Self {
        Self::new(&error.to_string())
    }
}

impl TorchError {
    /// Creates an error with this message, which is cut to a length that can be logged.
    pub fn new(message: &str) -> Self {
        Self(shortened(message))
    }
}

/// Cuts a message of torch or of ONNX Runtime to a length that can be logged.
pub fn shortened(message: &str) -> String {
    let mut text: String = message.chars().take(MAX_MESSAGE).collect();
    if text.len() < message.len() {
        text.push('…');
    }
    text
}

/// Copies a tensor's numbers to the host as f32, row-major whatever its strides.
///
/// # Errors
/// [`TorchError`], e.g. if the host has no memory.
pub fn to_host(tensor: &Tensor) -> Result<Vec<f32>, TorchError> {
    let tensor = tensor
        .f_detach()?
        .f_to_device(Device::Cpu)?
        .f_to_kind(Kind::Float)?
        .f_contiguous()?;
    let mut numbers = vec![0.0; tensor.numel()];
    let count = numbers.len();
    tensor.f_copy_data(&mut numbers, count)?;
    Ok(numbers)
}

/// Makes a tensor of these numbers and dimensions on `device`.
///
/// # Errors
/// [`TorchError`], e.g. if the dimensions do not fit.
pub fn from_host<T: tch::kind::Element>(
    numbers: &[T],
    dims: &[i64],
    device: Device,
) -> Result<Tensor, TorchError> {
    Ok(Tensor::f_from_slice(numbers)?.f_view(dims)?.f_to_device(device)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_cut_between_characters() {
        let long = "ŝ".repeat(5000);
        assert_eq!(TorchError::new(&long).to_string().chars().count(), 7 + 400 + 1);
        assert_eq!(TorchError::new("short").to_string(), "torch: short");
    }

    #[test]
    fn numbers_come_back_in_order_from_any_strides() {
        let tensor = from_host(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3], Device::Cpu).unwrap();
        let turned = tensor.f_permute([1, 0]).unwrap();
        assert_eq!(to_host(&turned).unwrap(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    }
}
