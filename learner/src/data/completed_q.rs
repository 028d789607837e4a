//! Policy targets from the values of actions: completed Q (Danihelka et al., 2022, "Policy improvement by planning with Gumbel").
//!
//! The target is the network's own policy, improved by what the search found:
//!
//! ```text
//! target(a) = softmax(ln P(a) + s(a)),   s(a) = (50 + max N) · scale · q(a) / max(range, max q - min q)
//! ```
//!
//! over all legal actions, where `P` is the prior without noise and `N` the visits. `q` of a visited action is the mean of its visits.
//! Unvisited actions are completed with the mixed value
//!
//! ```text
//! v_mix = (v + ΣN · (Σ P(b) q(b) / Σ P(b))) / (1 + ΣN),   b over the visited actions,
//! ```
//!
//! where `v` is the network's evaluation, so that they neither gain nor lose against what the visited ones gave on average. Unlike the
//! visits, such a target does not repeat the noise of the root and says something after a few visits.

use proto::decisions::Decision;

/// Visits that are added to the greatest number of visits (`c_visit` of the paper).
const ADDED_VISITS: f64 = 50.0;
/// Least prior. Half precision rounds smaller ones to 0, of which there is no logarithm.
const LEAST_PRIOR: f64 = 1.0 / (1 << 25) as f64;

/// Strength with which values change a policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompletedQ {
    /// Factor of the values (`learner.q_scale`).
    pub scale: f64,
    /// Least range by which they are divided (`learner.q_range`), above 0.
    pub range: f64,
}

impl CompletedQ {
    /// Returns the target of a searched position: shares of the visited actions, then of the unvisited ones, with the sum 1.
    ///
    /// # Errors
    /// Reason why there is none: a number that is not finite, or no actions.
    pub fn target(&self, visits: &[u32], decision: &Decision<'_>) -> Result<Vec<f64>, String> {
        let priors: Vec<f64> = decision
            .visited_priors
            .iter()
            .chain(decision.unvisited_priors.iter())
            .map(|prior| f64::from(prior).max(LEAST_PRIOR))
            .collect();
        let searched = || {
            let numbers = visits.iter().zip(decision.values.iter()).zip(&priors);
            numbers
                .filter(|&((&visits, _), _)| visits > 0)
                .map(|((&visits, value), &prior)| (f64::from(visits), f64::from(value), prior))
        };
        let sum: f64 = searched().map(|(visits, ..)| visits).sum();
        let most = searched().map(|(visits, ..)| visits).fold(0.0, f64::max);
        let mass: f64 = searched().map(|(.., prior)| prior).sum();
        let weighted: f64 = searched().map(|(_, value, prior)| prior * value).sum();
        let mean = if mass > 0.0 { weighted / mass } else { 0.0 };
        let mixed = (f64::from(decision.evaluation) + sum * mean) / (1.0 + sum);

        let mut values: Vec<f64> = visits
            .iter()
            .zip(decision.values.iter())
            .map(|(&visits, value)| if visits > 0 { f64::from(value) } else { mixed })
            .collect();
        values.resize(priors.len(), mixed);
        let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let factor = (ADDED_VISITS + most) * self.scale / (greatest - least).max(self.range);
        let logits = || {
            let numbers = priors.iter().zip(&values);
            numbers.map(|(prior, value)| prior.ln() + factor * (value - greatest))
        };
        let top = logits().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = logits().map(|logit| (logit - top).exp()).sum();
        if !sum.is_finite() || sum <= 0.0 {
            return Err("the search results give no policy".into());
        }
        Ok(logits().map(|logit| (logit - top).exp() / sum).collect())
    }
}
