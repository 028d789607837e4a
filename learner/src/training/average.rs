//! Averaged weights: an exponential moving average of the trained ones, which is what is published.
//!
//! Averaging over the last steps takes the noise of single batches out of the weights without a lower learning rate
//! (Polyak and Juditsky, 1992; the trainers of KataGo and Leela publish such averages too). Running statistics are averaged
//! alike. At the beginning it is the plain mean of what was seen, so that the first checkpoints are not held back by the random
//! weights.

use tch::Device;

use crate::{
    network::{Network, NetworkShape, Variables},
    torch::{
        TorchError,
        tensor_files::{HostTensor, TensorsError},
    },
};

/// What the averages are called beside the optimiser's moments: `average/<variable>`.
const PREFIX: &str = "average/";

/// The average, as a network that can be asked and exported.
#[derive(Debug)]
pub struct Average {
    network: Network,
    decay: f64,
}

impl Average {
    /// The average of networks of this shape where each step leaves a share of `decay` (at least 0, below 1) of what was.
    ///
    /// # Errors
    /// [`TorchError`], e.g. where the device has no memory.
    pub fn new(shape: &NetworkShape, decay: f64, device: Device) -> Result<Self, TorchError> {
        Ok(Self {
            network: Network::new(shape, 0, device)?,
            decay,
        })
    }

    /// The averaged network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The weights after step `step` (counted from 1) come in; step 0 stands for the first weights.
    ///
    /// # Errors
    /// [`TorchError`].
    pub fn update(&mut self, trained: &Variables, step: u64) -> Result<(), TorchError> {
        let share = (1.0 - self.decay).max(1.0 / step.max(1) as f64);
        self.network.variables_mut().approach(trained, share)
    }

    /// The averages by variable, in a fixed order, to be kept beside the optimiser's state.
    ///
    /// # Errors
    /// [`TorchError`].
    pub fn to_host(&self) -> Result<Vec<HostTensor>, TorchError> {
        let mut tensors = self.network.variables().to_host()?;
        for tensor in &mut tensors {
            tensor.name.insert_str(0, PREFIX);
        }
        Ok(tensors)
    }

    /// Restores what [`Average::to_host`] gave.
    ///
    /// # Errors
    /// [`TensorsError`] where a tensor is missing, unknown or of another size; nothing has changed then.
    pub fn load(&mut self, mut tensors: Vec<HostTensor>) -> Result<(), TensorsError> {
        for tensor in &mut tensors {
            tensor.name.drain(..PREFIX.len());
        }
        self.network.variables_mut().load(&tensors)
    }
}

/// Parts a checkpoint's tensors into the optimiser's and the averages.
pub fn part(tensors: Vec<HostTensor>) -> (Vec<HostTensor>, Vec<HostTensor>) {
    tensors
        .into_iter()
        .partition(|tensor| !tensor.name.starts_with(PREFIX))
}
