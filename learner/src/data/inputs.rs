//! What a network takes, on the device: planes, which are expanded there, or the arrays of clans, which were expanded
//! where the batch was packed.

use games::{RowForm, RowLayout};
use tch::{Device, Tensor};

use crate::{
    data::{
        batches::HostBatch,
        clans::{self, ClanTensors},
        expansion::Expansion,
    },
    torch::{TorchError, from_host},
};

/// Positions as a network takes them.
#[derive(Debug)]
pub enum Inputs {
    /// f32 `[batch, planes, 8, 8]`
    Planes(Tensor),
    /// Clans.
    Clans(Box<ClanTensors>),
}

/// Makes inputs of the rows of one layout.
#[derive(Debug)]
pub struct Feeder {
    form: Form,
    device: Device,
}

#[derive(Debug)]
enum Form {
    Planes { expansion: Expansion, row_len: i64 },
    Clans,
}

impl Feeder {
    /// For rows of `layout`, on `device`.
    ///
    /// # Errors
    /// [`TorchError`].
    pub fn new(layout: &RowLayout, device: Device) -> Result<Self, TorchError> {
        let form = match &layout.form {
            RowForm::Planes(stack) => Form::Planes {
                expansion: Expansion::new(layout, device)?,
                row_len: stack.row_len() as i64,
            },
            RowForm::Clan(_) => Form::Clans,
        };
        Ok(Self { form, device })
    }

    /// A batch's positions.
    ///
    /// # Errors
    /// [`TorchError`], e.g. where the device has no memory.
    pub fn batch(&self, batch: &HostBatch) -> Result<Inputs, TorchError> {
        match &batch.clans {
            Some(clans) => self.clans(&clans.arrays),
            None => self.rows(&batch.rows),
        }
    }

    /// Valid rows, back to back.
    ///
    /// # Errors
    /// [`TorchError`].
    pub fn rows(&self, rows: &[u32]) -> Result<Inputs, TorchError> {
        match &self.form {
            Form::Planes { expansion, row_len } => {
                let rows: Vec<i32> = rows.iter().map(|&number| number as i32).collect();
                let rows = from_host(&rows, &[-1, *row_len], self.device)?;
                Ok(Inputs::Planes(expansion.expand(&rows)?))
            }
            Form::Clans => {
                let arrays = clans::expand(rows).map_err(|error| TorchError::new(&error.to_string()))?;
                self.clans(&arrays)
            }
        }
    }

    fn clans(&self, arrays: &games::generator::ClanBatch) -> Result<Inputs, TorchError> {
        Ok(Inputs::Clans(Box::new(ClanTensors::new(arrays, self.device)?)))
    }
}
