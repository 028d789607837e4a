//! Sparse policies: shares of actions that a network is trained towards, from their visits or from [`completed_q`].

use proto::decisions::Decision;
use search::{CompletedQ, completed_q::Results};

/// Policies of a batch on the host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policies {
    /// Place of each action in a target of each sample: `sample · actions + entry`. With candidates
    /// ([`crate::data::expanded::HostCandidates`]) it is `sample · width + place among the sample's candidates`.
    pub at: Vec<i64>,
    /// Share of each of these actions in its sample's target.
    pub share: Vec<f32>,
    /// Number of samples that have a policy.
    pub samples: usize,
    /// Mean entropy of the policies, in nats. A cross-entropy cannot fall below it. Until [`Policies::finish`] it is the sum.
    pub entropy: f64,
}

impl Policies {
    /// Returns an empty list with room for `targets` entries.
    pub(crate) fn with_capacity(targets: usize) -> Self {
        Self {
            at: Vec::with_capacity(targets),
            share: Vec::with_capacity(targets),
            ..Self::default()
        }
    }

    /// Adds the visits of a sample, which may be empty. `place` returns the place of an action.
    ///
    /// # Errors
    /// Reason why the visits are invalid.
    pub(crate) fn push(
        &mut self,
        (actions, visits): (&[u32], &[u32]),
        place: impl Fn(u32) -> Result<usize, String>,
    ) -> Result<(), String> {
        let total: u64 = visits.iter().copied().map(u64::from).sum();
        if actions.is_empty() {
            return Ok(());
        }
        if total == 0 {
            return Err("no action was visited".into());
        }
        let shares = visits.iter().map(|&visits| f64::from(visits) / total as f64);
        self.push_shares(actions.iter().copied().zip(shares), place)
    }

    /// Adds a sample's actions with their shares, whose sum is 1. Actions without a share are left out.
    ///
    /// # Errors
    /// Reason why an action is invalid.
    pub(crate) fn push_shares(
        &mut self,
        shares: impl Iterator<Item = (u32, f64)>,
        place: impl Fn(u32) -> Result<usize, String>,
    ) -> Result<(), String> {
        self.samples += 1;
        for (action, share) in shares {
            let place = place(action)?;
            if share <= 0.0 {
                continue;
            }
            self.at.push(place as i64);
            self.share.push(share as f32);
            self.entropy -= share * share.ln();
        }
        Ok(())
    }

    /// Converts the sum of entropies to their mean, after the last sample was added.
    pub(crate) fn finish(&mut self) {
        self.entropy /= self.samples.max(1) as f64;
    }
}

/// Returns the policy target of a searched position from the values of its actions, as [`search::completed_q`] defines it: shares of the visited actions, then of the unvisited ones, with the sum 1.
///
/// # Errors
/// Reason why there is none: a number that is not finite, or no actions.
pub fn completed_q(rule: CompletedQ, visits: &[u32], decision: &Decision<'_>) -> Result<Vec<f64>, String> {
    let priors: Vec<f64> = decision
        .visited_priors
        .iter()
        .chain(decision.unvisited_priors.iter())
        .map(f64::from)
        .collect();
    let mut visits = visits.to_vec();
    let mut values: Vec<f64> = decision.values.iter().map(f64::from).collect();
    visits.resize(priors.len(), 0);
    values.resize(priors.len(), 0.0);
    let results = Results {
        priors: &priors,
        visits: &visits,
        values: &values,
        evaluation: decision.evaluation.into(),
    };
    rule.policy(&results)
        .ok_or_else(|| "the search results give no policy".into())
}
