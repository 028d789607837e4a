//! Averaged weights: an exponential moving average of the trained weights. Checkpoints contain the average.
//!
//! Averaging over the last steps takes the noise of single batches out of the weights without a lower learning rate
//! (Polyak and Juditsky, 1992; the trainers of KataGo and Leela publish such averages too). Running statistics are averaged
//! alike. In the first steps the average is the plain mean, so that the random first weights have little influence.

use tch::Device;

use crate::{
    network::{Network, NetworkShape, Variables},
    torch::{TorchError, tensor_files::HostTensor},
};

/// Prefix of the averages' names, which are stored with the optimiser's moments: `average/<variable>`.
const PREFIX: &str = "average/";

/// The average, as a network that can be evaluated and exported.
#[derive(Debug)]
pub struct Average {
    /// The averaged network.
    pub network: Network,
    decay: f64,
}

impl Average {
    /// Creates the average of networks of this shape. Each step multiplies the influence of earlier ones by `decay` (at least 0,
    /// below 1).
    ///
    /// # Errors
    /// [`TorchError`], e.g. if the device has no memory.
    pub fn new(shape: &NetworkShape, decay: f64, device: Device) -> Result<Self, TorchError> {
        Ok(Self {
            network: Network::new(shape, 0, device)?,
            decay,
        })
    }

    /// Adds the weights after step `step` (counted from 1) to the average; step 0 means the first weights.
    ///
    /// # Errors
    /// [`TorchError`].
    pub fn update(&mut self, trained: &Variables, step: u64) -> Result<(), TorchError> {
        let share = (1.0 - self.decay).max(1.0 / step.max(1) as f64);
        self.network.variables.approach(trained, share)
    }

    /// Copies the averages to the host, in a fixed order, with names for the optimiser's file.
    ///
    /// # Errors
    /// [`TorchError`].
    pub fn to_host(&self) -> Result<Vec<HostTensor>, TorchError> {
        let mut tensors = self.network.variables.to_host()?;
        for tensor in &mut tensors {
            tensor.name.insert_str(0, PREFIX);
        }
        Ok(tensors)
    }

    /// Restores the tensors of [`Average::to_host`].
    ///
    /// # Errors
    /// A tensor is missing, unknown or of another size; nothing has changed then.
    pub fn load(&mut self, mut tensors: Vec<HostTensor>) -> anyhow::Result<()> {
        for tensor in &mut tensors {
            tensor.name.drain(..PREFIX.len());
        }
        self.network.variables.load(&tensors)
    }
}

/// Splits the tensors of a checkpoint's optimiser file into the optimiser's moments and the averages.
pub fn split(tensors: Vec<HostTensor>) -> (Vec<HostTensor>, Vec<HostTensor>) {
    tensors
        .into_iter()
        .partition(|tensor| !tensor.name.starts_with(PREFIX))
}
