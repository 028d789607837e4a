//! Inputs of a network on the training device, made from the arrays that the codec of the rows gives.

mod fish_eye;
mod planes;

use games::{RowLayout, planes::INDICES};
use onnx::FishEyeShape;
use tch::{Device, Tensor};

use crate::{
    data::expanded::{HostInput, expand},
    torch::{TorchError, from_host},
};

pub use fish_eye::{ExampleInputs, FishEyeInputs};
pub use planes::Expansion;

/// Inputs of a network for a batch.
#[derive(Debug)]
pub enum Inputs {
    /// Inputs of a tower: f32 `[batch, planes, 8, 8]`.
    Planes(Tensor),
    /// Inputs of a fish-eye network.
    FishEye(Box<FishEyeInputs>),
}

/// Makes the inputs of networks over the rows of one layout.
#[derive(Debug)]
pub struct Feeder {
    layout: RowLayout,
    form: Form,
    device: Device,
}

#[derive(Debug)]
enum Form {
    Planes(Expansion),
    FishEye(FishEyeShape),
}

impl Feeder {
    /// Makes a feeder for rows of `layout` and networks on `device`.
    ///
    /// # Errors
    /// [`TorchError`] if no network takes such rows, or the device has no memory.
    pub fn new(layout: &RowLayout, device: Device) -> Result<Self, TorchError> {
        let form = match FishEyeShape::of(layout) {
            Some(shape) => Form::FishEye(shape),
            None => Form::Planes(Expansion::new(layout, device)?),
        };
        Ok(Self {
            layout: layout.clone(),
            form,
            device,
        })
    }

    /// Copies the arrays of a batch to the device.
    ///
    /// # Errors
    /// [`TorchError`] if the device has no memory or an array is missing.
    pub fn batch(&self, inputs: &[HostInput]) -> Result<Inputs, TorchError> {
        Ok(match &self.form {
            Form::Planes(expansion) => {
                Inputs::Planes(expansion.expand(&tensor(inputs, INDICES, self.device)?)?)
            }
            Form::FishEye(shape) => {
                Inputs::FishEye(Box::new(FishEyeInputs::new(inputs, shape, self.device)?))
            }
        })
    }

    /// Expands valid rows that lie back to back.
    ///
    /// # Errors
    /// [`TorchError`] if a row is invalid or the device has no memory.
    pub fn rows(&self, rows: &[u32]) -> Result<Inputs, TorchError> {
        let inputs = expand(&self.layout, rows).map_err(|error| TorchError::new(&error.to_string()))?;
        self.batch(&inputs)
    }
}

/// Finds the array of an input.
fn find<'a>(inputs: &'a [HostInput], name: &str) -> Result<&'a HostInput, TorchError> {
    let found = inputs.iter().find(|input| input.name == name);
    found.ok_or_else(|| TorchError::new(&format!("the batch has no input `{name}`")))
}

/// Copies the array of an input to the device.
fn tensor(inputs: &[HostInput], name: &str, device: Device) -> Result<Tensor, TorchError> {
    let input = find(inputs, name)?;
    let shape: Vec<i64> = input.shape.iter().map(|&size| size as i64).collect();
    from_host(&input.numbers, &shape, device)
}

/// Copies a `[batch, channels, 8, 8]` tensor into memory with the channels last.
fn channels_last(boards: &Tensor) -> Result<Tensor, TorchError> {
    Ok(boards
        .f_permute([0, 2, 3, 1])?
        .f_contiguous()?
        .f_permute([0, 3, 1, 2])?)
}
