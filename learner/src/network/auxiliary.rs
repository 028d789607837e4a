//! Auxiliary heads: they train the tower and are not exported.
//!
//! The list [`HEADS`] defines them: the target of a head, the key of its weight in the loss, and the unit of a number. Variables,
//! output, loss, metrics and report of a head follow from these.

use std::collections::BTreeMap;

use config::LearnerConfig;
use proto::targets::Target;
use serde::{Deserialize, Serialize};

/// An auxiliary head over a tower.
#[derive(Clone, Copy, Debug)]
pub struct AuxiliaryHead {
    /// Target of the head, which also gives the head its name.
    pub target: Target,
    /// Key of the head's weight in the configuration.
    pub weight_key: &'static str,
    /// Returns the head's weight in the loss; 0 means that there is no such head.
    pub weight: fn(&LearnerConfig) -> f64,
    /// Unit of a number: the head predicts `softplus(output) · unit`, and the loss is taken in this unit. 1 for policies.
    pub unit: f64,
    /// Difference from which the Huber loss of a number is linear. Not used for policies.
    pub bend: f64,
}

impl AuxiliaryHead {
    /// Returns the name of the variables of the head's last layer.
    pub(super) fn output_name(&self) -> String {
        format!("{}.output", self.target.name())
    }
}

/// All auxiliary heads, in the order of their variables and losses.
pub const HEADS: [AuxiliaryHead; 3] = [
    // KataGo (Wu 2019).
    AuxiliaryHead {
        target: Target::OpponentPolicy,
        weight_key: "learner.opponent_policy_weight",
        weight: |config| config.opponent_policy_weight,
        unit: 1.0,
        bend: 1.0,
    },
    // Leela Chess Zero: units of 20 actions, linear from a difference of 10 actions on.
    AuxiliaryHead {
        target: Target::MovesLeft,
        weight_key: "learner.moves_left_weight",
        weight: |config| config.moves_left_weight,
        unit: 20.0,
        bend: 10.0,
    },
    // KataGo, after its paper.
    AuxiliaryHead {
        target: Target::SoftPolicy,
        weight_key: "learner.soft_policy_weight",
        weight: |config| config.soft_policy_weight,
        unit: 1.0,
        bend: 1.0,
    },
];

/// The auxiliary heads of a network. Serialised as one boolean for each head, by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, bool>", into = "BTreeMap<String, bool>")]
pub struct AuxiliaryHeads([bool; HEADS.len()]);

/// Error: a network has a part that this release does not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown part `{0}` of a network")]
pub struct UnknownHead(String);

impl AuxiliaryHeads {
    /// Returns the heads that the configuration gives a weight.
    pub fn of(config: &LearnerConfig) -> Self {
        Self(HEADS.map(|head| (head.weight)(config) > 0.0))
    }

    /// Iterates over the heads that the network has.
    pub fn iter(&self) -> impl Iterator<Item = &'static AuxiliaryHead> {
        HEADS
            .iter()
            .zip(self.0)
            .filter_map(|(head, has)| has.then_some(head))
    }
}

impl TryFrom<BTreeMap<String, bool>> for AuxiliaryHeads {
    type Error = UnknownHead;

    fn try_from(mut named: BTreeMap<String, bool>) -> Result<Self, UnknownHead> {
        let heads = HEADS.map(|head| named.remove(head.target.name()).unwrap_or(false));
        match named.into_keys().next() {
            Some(unknown) => Err(UnknownHead(unknown)),
            None => Ok(Self(heads)),
        }
    }
}

impl From<AuxiliaryHeads> for BTreeMap<String, bool> {
    fn from(heads: AuxiliaryHeads) -> Self {
        let named = HEADS.iter().zip(heads.0);
        named
            .map(|(head, has)| (head.target.name().to_owned(), has))
            .collect()
    }
}
