//! Training targets of a batch on the training device.

use tch::{Device, Tensor};

use crate::{
    data::{batches::HostBatch, territories::Territories},
    torch::{TorchError, from_host},
};

/// Targets of a batch.
#[derive(Debug)]
pub struct Targets {
    /// Policy targets.
    pub policy: PolicyTargets,
    /// Logits over which the softmax of each sample is taken; `None` if the logits are a `[batch, actions]` matrix.
    pub candidates: Option<CandidateTensors>,
    /// Value targets ([`HostBatch::results`]), f32 `[batch]`.
    pub results: Tensor,
    /// Value targets as probabilities of a win, a draw and a loss, f32 `[batch, 3]`, for networks with such a head.
    pub outcomes: Option<Tensor>,
    /// Owners of the squares and scores, for networks with such a head.
    pub territories: Option<TerritoryTargets>,
}

/// Targets of the samples whose games have a territory ([`Territories`]).
#[derive(Debug)]
pub struct TerritoryTargets {
    /// Places of the samples in the batch, i64 `[samples]`.
    pub samples: Tensor,
    /// Shares of the player to act in each square, f32 `[samples, squares]`.
    pub owners: Tensor,
    /// Scores, f32 `[samples]`.
    pub scores: Tensor,
}

/// Sparse distributions over the entries of a matrix of logits.
#[derive(Debug)]
pub struct PolicyTargets {
    /// Places of the entries in the flattened `[batch, actions]` or `[batch, width]` matrix of logits, i64 `[targets]`.
    pub at: Tensor,
    /// Shares of the visits, f32 `[targets]`.
    pub share: Tensor,
    /// Number of samples that have a policy.
    pub samples: usize,
}

/// Candidates of a batch ([`crate::data::expanded::HostCandidates`]) on the training device.
#[derive(Debug)]
pub struct CandidateTensors {
    /// Places in the flattened logits, i64 `[candidates]`.
    pub logits: Tensor,
    /// Places in the flattened `[batch, width]` matrix, i64 `[candidates]`.
    pub places: Tensor,
    /// Sizes of the matrix: samples, and largest number of candidates of a sample.
    pub shape: [i64; 2],
}

impl Targets {
    /// Copies a batch's targets to the device.
    ///
    /// # Errors
    /// [`TorchError`] if the device has no memory.
    pub fn new(batch: &HostBatch, device: Device) -> Result<Self, TorchError> {
        let count = batch.positions as i64;
        let candidates = batch.candidates.as_ref().map(|candidates| {
            Ok::<_, TorchError>(CandidateTensors {
                logits: list(&candidates.logits, device)?,
                places: list(&candidates.places, device)?,
                shape: [count, candidates.width as i64],
            })
        });
        let outcomes = batch.outcomes.as_ref();
        let outcomes = outcomes.map(|numbers| from_host(numbers, &[count, 3], device));
        let territories = batch.territories.as_ref();
        let territories = territories.map(|found| TerritoryTargets::new(found, device));
        Ok(Self {
            policy: PolicyTargets {
                at: list(&batch.policy.at, device)?,
                share: list(&batch.policy.share, device)?,
                samples: batch.policy.samples,
            },
            candidates: candidates.transpose()?,
            results: list(&batch.results, device)?,
            outcomes: outcomes.transpose()?,
            territories: territories.transpose()?,
        })
    }
}

impl TerritoryTargets {
    fn new(found: &Territories, device: Device) -> Result<Self, TorchError> {
        let dims = [found.samples.len() as i64, found.squares as i64];
        Ok(Self {
            samples: list(&found.samples, device)?,
            owners: from_host(&found.owners, &dims, device)?,
            scores: list(&found.scores, device)?,
        })
    }
}

fn list<T: tch::kind::Element>(numbers: &[T], device: Device) -> Result<Tensor, TorchError> {
    from_host(numbers, &[numbers.len() as i64], device)
}
