//! What the outputs for a batch are compared with, on the training device.

use proto::targets::Target;
use tch::{Device, Tensor};

use crate::{
    data::{
        batches::{HostBatch, HostTarget},
        policies::Policies,
    },
    torch::{TorchError, from_host},
};

/// A batch's targets.
#[derive(Debug)]
pub struct Targets {
    /// Of the policy.
    pub policy: PolicyTargets,
    /// What the softmaxes are taken over where a position's logits are no row of a matrix.
    pub choices: Option<ChoiceTensors>,
    /// f32 `[batch]`: values, see [`HostBatch::results`].
    pub results: Tensor,
    /// f32 `[batch, 3]`: the same as probabilities of a win, a draw and a loss, for heads that give these.
    pub outcomes: Option<Tensor>,
    /// Targets of the auxiliary heads.
    pub auxiliary: Vec<(Target, AuxiliaryTarget)>,
}

/// A target of an auxiliary head on the training device.
#[derive(Debug)]
pub enum AuxiliaryTarget {
    /// f32 `[batch]`
    Numbers(Tensor),
    /// Sparse policies over the head's logits.
    Policies(PolicyTargets),
}

/// Sparse distributions over the entries of a matrix of logits.
#[derive(Debug)]
pub struct PolicyTargets {
    /// i64 `[targets]`: where they stand in the flattened `[batch · actions]` logits, or among the choices.
    pub at: Tensor,
    /// f32 `[targets]`
    pub share: Tensor,
    /// Samples that have one.
    pub samples: usize,
}

/// The choices of [`crate::data::clans::ClanSamples`] on the training device.
#[derive(Debug)]
pub struct ChoiceTensors {
    /// i64 `[choices]`: places in the flattened logits.
    pub logits: Tensor,
    /// i64 `[choices]`: places in `[batch · width]`.
    pub places: Tensor,
    /// Samples, and most choices of one.
    pub sides: [i64; 2],
}

impl Targets {
    /// Copies a batch's targets to the device.
    ///
    /// # Errors
    /// [`TorchError`], e.g. where the device has no memory.
    pub fn new(batch: &HostBatch, device: Device) -> Result<Self, TorchError> {
        let count = batch.positions as i64;
        let numbers = |numbers: Option<&Vec<f32>>, sides: &[i64]| {
            numbers
                .map(|numbers| from_host(numbers, sides, device))
                .transpose()
        };
        let choices = match &batch.clans {
            None => None,
            Some(clans) => Some(ChoiceTensors {
                logits: list(&clans.logits, device)?,
                places: list(&clans.places, device)?,
                sides: [count, clans.width as i64],
            }),
        };
        let auxiliary = batch.auxiliary.iter().map(|(target, column)| {
            let column = match column {
                HostTarget::Numbers(numbers) => AuxiliaryTarget::Numbers(list(numbers, device)?),
                HostTarget::Policies(policies) => {
                    AuxiliaryTarget::Policies(PolicyTargets::new(policies, device)?)
                }
            };
            Ok((*target, column))
        });
        Ok(Self {
            policy: PolicyTargets::new(&batch.policy, device)?,
            choices,
            results: list(&batch.results, device)?,
            outcomes: numbers(batch.outcomes.as_ref(), &[count, 3])?,
            auxiliary: auxiliary.collect::<Result<_, TorchError>>()?,
        })
    }
}

impl PolicyTargets {
    fn new(policies: &Policies, device: Device) -> Result<Self, TorchError> {
        Ok(Self {
            at: list(&policies.at, device)?,
            share: list(&policies.share, device)?,
            samples: policies.samples,
        })
    }
}

fn list<T: tch::kind::Element>(numbers: &[T], device: Device) -> Result<Tensor, TorchError> {
    from_host(numbers, &[numbers.len() as i64], device)
}
