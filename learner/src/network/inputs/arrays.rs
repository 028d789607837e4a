//! Arrays of a batch as tensors on the device.

use tch::{Device, Tensor};

use crate::{
    data::expanded::HostInput,
    torch::{TorchError, from_host},
};

/// Finds the array of an input.
pub(super) fn find<'a>(inputs: &'a [HostInput], name: &str) -> Result<&'a HostInput, TorchError> {
    let found = inputs.iter().find(|input| input.name == name);
    found.ok_or_else(|| TorchError::new(&format!("the batch has no input `{name}`")))
}

/// Copies the array of an input to the device.
pub(super) fn tensor(inputs: &[HostInput], name: &str, device: Device) -> Result<Tensor, TorchError> {
    let input = find(inputs, name)?;
    let shape: Vec<i64> = input.shape.iter().map(|&size| size as i64).collect();
    from_host(&input.numbers, &shape, device)
}

/// Copies a `[batch, channels, 8, 8]` tensor into memory with the channels last.
pub(super) fn channels_last(boards: &Tensor) -> Result<Tensor, TorchError> {
    Ok(boards
        .f_permute([0, 2, 3, 1])?
        .f_contiguous()?
        .f_permute([0, 3, 1, 2])?)
}
