//! Priors of the legal actions: the softmax of their logits.

/// Appends to `priors` the softmax of `logits` over the actions `legal`. Returns false if a legal logit is not finite.
///
/// ```
/// let mut priors = Vec::new();
/// // Action 1 is not legal.
/// assert!(network::softmax::softmax(&[0.0, 9.0, 0.0], &[0, 2], &mut priors));
/// assert_eq!(priors, [0.5, 0.5]);
/// ```
pub fn softmax(logits: &[f32], legal: &[u32], priors: &mut Vec<f32>) -> bool {
    // Validated actions are below the length of `logits`.
    let logit = |&action: &u32| logits.get(action as usize).copied().unwrap_or(f32::NAN);
    softmax_of(legal.iter().map(logit), priors)
}

/// Appends to `priors` the softmax of `logits`. Returns false if one is not finite.
pub fn softmax_of(logits: impl Iterator<Item = f32>, priors: &mut Vec<f32>) -> bool {
    let start = priors.len();
    let mut largest = f32::NEG_INFINITY;
    for logit in logits {
        if !logit.is_finite() {
            return false;
        }
        largest = largest.max(logit);
        priors.push(logit);
    }
    let appended = priors.get_mut(start..).unwrap_or_default();
    let mut sum = 0.0;
    for prior in appended.iter_mut() {
        *prior = (*prior - largest).exp();
        sum += *prior;
    }
    // The largest logit gives 1, so the sum is at least 1.
    let scale = 1.0 / sum;
    appended.iter_mut().for_each(|prior| *prior *= scale);
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn is_the_softmax_over_the_legal_actions(logits in prop::collection::vec(-80.0f32..80.0, 1..40), picks in prop::collection::vec(any::<prop::sample::Index>(), 1..20)) {
            let mut legal: Vec<u32> = picks.iter().map(|pick| pick.index(logits.len()) as u32).collect();
            legal.sort_unstable();
            legal.dedup();
            let mut found = vec![9.0];
            prop_assert!(softmax(&logits, &legal, &mut found));
            prop_assert_eq!(found[0], 9.0);
            let exact: Vec<f64> = legal.iter().map(|&action| f64::from(logits[action as usize]).exp()).collect();
            let sum: f64 = exact.iter().sum();
            for (found, exact) in found[1..].iter().zip(&exact) {
                prop_assert!((f64::from(*found) - exact / sum).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn large_logits_do_not_overflow_and_infinite_ones_are_refused() {
        let mut found = Vec::new();
        assert!(softmax(&[3e38, -3e38, 3e38], &[0, 1, 2], &mut found));
        assert_eq!(found, [0.5, 0.0, 0.5]);
        for wrong in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert!(!softmax(&[0.0, wrong], &[0, 1], &mut Vec::new()));
            // Logits of other actions do not matter.
            assert!(softmax(&[0.0, wrong], &[0], &mut Vec::new()));
        }
    }
}
