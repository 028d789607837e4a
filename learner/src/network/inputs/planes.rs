//! Expansion of rows to planes on the training device. Tests compare it with [`games::PlaneStack::expand`].

use games::{RowLayout, planes::SQUARES};
use tch::{Device, Kind, Tensor};

use super::channels_last;
use crate::torch::{TorchError, from_host};

/// Expands rows of one layout.
#[derive(Debug)]
pub struct Expansion {
    entries: i64,
    planes: i64,
    /// Numbers of the constant planes, i64 `[constants]`, and their divisors, f32 `[constants]`.
    constants: Option<(Tensor, Tensor)>,
    /// Numbers of the planes of ones, i64 `[ones]`.
    ones: Option<Tensor>,
}

impl Expansion {
    /// Prepares the expansion of rows of `layout` on `device`.
    ///
    /// # Errors
    /// [`TorchError`] if the rows are not planes, or the device has no memory.
    pub fn new(layout: &RowLayout, device: Device) -> Result<Self, TorchError> {
        let stack = layout
            .stack()
            .map_err(|error| TorchError::new(&error.to_string()))?;
        let planes = |numbers: Vec<i64>| from_host(&numbers, &[numbers.len() as i64], device);
        let constants = if stack.constants.is_empty() {
            None
        } else {
            let at = stack.constants.iter().map(|constant| i64::from(constant.plane));
            let divisors: Vec<f32> = stack
                .constants
                .iter()
                .map(|constant| constant.divisor as f32)
                .collect();
            let sides = [divisors.len() as i64];
            Some((planes(at.collect())?, from_host(&divisors, &sides, device)?))
        };
        let ones = if stack.ones.is_empty() {
            None
        } else {
            Some(planes(stack.ones.iter().copied().map(i64::from).collect())?)
        };
        Ok(Self {
            entries: i64::from(stack.entries),
            planes: i64::from(stack.planes),
            constants,
            ones,
        })
    }

    /// Expands valid rows, i32 `[batch, row_len]`, to f32 `[batch, planes, 8, 8]` with the channels last in memory
    /// (measured 1.2 to 1.3 times faster in training on CPUs; tensor cores take this form too).
    ///
    /// # Errors
    /// [`TorchError`] if the device has no memory. Rows must have been validated: an index out of range is undefined on a GPU.
    pub fn expand(&self, rows: &Tensor) -> Result<Tensor, TorchError> {
        let _guard = tch::no_grad_guard();
        let (batch, row_len) = rows.size2()?;
        let squares = SQUARES as i64;
        let device = rows.device();
        let mut tensor = Tensor::f_zeros([batch, self.planes * squares], (Kind::Float, device))?;
        let indices = rows.f_narrow(1, 0, self.entries)?.f_to_kind(Kind::Int64)?;
        let _ = tensor.f_scatter_value_(1, &indices, 1.0)?;
        let mut boards = tensor.f_view([batch, self.planes, squares])?;
        if let Some((planes, divisors)) = &self.constants {
            let count = row_len - self.entries;
            let values = rows
                .f_narrow(1, self.entries, count)?
                .f_to_kind(Kind::Float)?
                .f_div(divisors)?
                .f_unsqueeze(-1)?
                .f_expand([batch, count, squares], false)?;
            let _ = boards.f_index_copy_(1, planes, &values)?;
        }
        if let Some(ones) = &self.ones {
            let _ = boards.f_index_fill_(1, ones, 1.0)?;
        }
        channels_last(&boards.f_view([batch, self.planes, 8, 8])?)
    }
}
