//! Values of actions as strength of a policy: completed Q ([`CompletedQ`]; Danihelka et al., 2022, "Policy improvement by planning
//! with Gumbel").
//!
//! The network's own policy `P` is improved by what a search found:
//!
//! ```text
//! policy(a) = softmax(ln P(a) + s(a)),   s(a) = (50 + max N) · scale · q(a) / max(range, max q - min q)
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
//! visits, such a policy does not repeat the noise of the root and says something after a few visits. The [`gumbel`](crate::gumbel)
//! root compares its candidates by the same `s`.

/// Visits that are added to the maximum number of visits (`c_visit` of the paper).
const ADDED_VISITS: f64 = 50.0;
/// Least prior. Half precision rounds smaller ones to 0, of which there is no logarithm.
const LEAST_PRIOR: f64 = 1.0 / (1 << 25) as f64;

/// Strength with which values change a policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompletedQ {
    /// Factor of the values ([`Settings::q_scale`](crate::Settings::q_scale)).
    pub scale: f64,
    /// Least range by which they are divided ([`Settings::q_range`](crate::Settings::q_range)), above 0.
    pub range: f64,
}

/// Results of a search at one position: three lists with an entry for each legal action, in one order.
#[derive(Clone, Copy, Debug)]
pub struct Results<'a> {
    /// Priors without noise.
    pub priors: &'a [f64],
    /// Visits.
    pub visits: &'a [u32],
    /// Mean values of the visited actions for the player to act. Entries of unvisited actions are not read.
    pub values: &'a [f64],
    /// The network's evaluation of the position for the player to act.
    pub evaluation: f64,
}

impl CompletedQ {
    /// Returns `ln P + s` of each action; `s` of the action with the largest value is 0.
    pub fn logits(&self, results: &Results<'_>) -> Vec<f64> {
        let values = results.completed();
        let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let factor = self.factor(results, &values);
        let numbers = results.priors.iter().zip(&values);
        numbers
            .map(|(prior, value)| prior.max(LEAST_PRIOR).ln() + factor * (value - largest))
            .collect()
    }

    /// Returns the improved policy: a share of each action, with the sum 1. `None` if a number is not finite or there is no action.
    pub fn policy(&self, results: &Results<'_>) -> Option<Vec<f64>> {
        let mut shares = self.logits(results);
        let top = shares.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        for share in &mut shares {
            *share = (*share - top).exp();
        }
        let sum: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|share| *share /= sum);
        (sum.is_finite() && sum > 0.0).then_some(shares)
    }

    /// Returns the value of the position under the improved policy. `None` where there is no such policy.
    pub fn value(&self, results: &Results<'_>) -> Option<f64> {
        let shares = self.policy(results)?;
        let values = results.completed();
        Some(
            shares
                .iter()
                .zip(values)
                .map(|(share, value)| share * value)
                .sum(),
        )
    }

    /// Returns the largest change of a difference of two logits if each value and the evaluation are wrong by at most `error`.
    pub fn uncertainty(&self, results: &Results<'_>, error: f64) -> f64 {
        // The values of both actions and both ends of the range move by `error`. A difference is not larger than the range.
        4.0 * error * self.factor(results, &results.completed())
    }

    /// Returns `s` for a difference of 1 between two values.
    fn factor(&self, results: &Results<'_>, completed: &[f64]) -> f64 {
        let most = results.visits.iter().copied().max().unwrap_or_default();
        let largest = completed.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = completed.iter().copied().fold(f64::INFINITY, f64::min);
        (ADDED_VISITS + f64::from(most)) * self.scale / (largest - least).max(self.range)
    }
}

impl Results<'_> {
    /// Returns the value of each action: the mean of its visits, or `v_mix`.
    fn completed(&self) -> Vec<f64> {
        let visited = || {
            let numbers = self.visits.iter().zip(self.values).zip(self.priors);
            numbers
                .filter(|&((&visits, _), _)| visits > 0)
                .map(|((&visits, &value), &prior)| (f64::from(visits), value, prior.max(LEAST_PRIOR)))
        };
        let sum: f64 = visited().map(|(visits, ..)| visits).sum();
        let mass: f64 = visited().map(|(.., prior)| prior).sum();
        let weighted: f64 = visited().map(|(_, value, prior)| prior * value).sum();
        let mean = if mass > 0.0 { weighted / mass } else { 0.0 };
        let mixed = (self.evaluation + sum * mean) / (1.0 + sum);
        let numbers = self.visits.iter().zip(self.values);
        numbers
            .map(|(&visits, &value)| if visits > 0 { value } else { mixed })
            .collect()
    }
}
