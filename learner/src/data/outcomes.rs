//! Targets of value heads that predict the probabilities of a win, a draw and a loss.

/// Probabilities of a win, a draw and a loss for the player to act.
pub type Outcomes = [f32; 3];

/// Converts a value in [-1, 1] to a distribution of outcomes with this mean, which has only draws and outcomes of the value's sign. A
/// value of 0.3 is a win in 3 of 10 cases and a draw in the others; -0.3 is a loss in 3 of 10 cases.
pub fn of_value(value: f32) -> Outcomes {
    [value.max(0.0), 1.0 - value.abs(), (-value).max(0.0)]
}

/// Returns the distribution of a game's result; `None` if the result is not a win, a draw or a loss.
pub fn of_result(result: f32) -> Option<Outcomes> {
    [1.0, 0.0, -1.0].contains(&result).then(|| of_value(result))
}

/// Mixes `1 - share` of a game's outcomes with `share` (0 to 1) of the search's root value ([`of_value`]). Win - loss of the mixture is
/// `value + share · (root value - value)`, where `value` is win - loss of the outcomes.
pub fn mixed(ended: Outcomes, root_value: f32, share: f32) -> Outcomes {
    let searched = of_value(root_value);
    [0, 1, 2].map(|at: usize| ended[at] + share * (searched[at] - ended[at]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn targets_are_distributions_with_the_mixed_mean(
            result in prop::sample::select(vec![1.0_f32, 0.0, -1.0]),
            root_value in -1.0_f32..=1.0,
            share in 0.0_f32..=1.0,
        ) {
            let [win, draw, loss] = mixed(of_result(result).unwrap(), root_value, share);
            prop_assert!([win, draw, loss].iter().all(|share| (0.0..=1.0).contains(share)));
            prop_assert!((win + draw + loss - 1.0).abs() < 1e-6);
            let mean = f64::from(result) + f64::from(share) * (f64::from(root_value) - f64::from(result));
            prop_assert!((f64::from(win) - f64::from(loss) - mean).abs() < 1e-6);
            // The expected mixture is computed from its definition: a share of the result's own probabilities, and the rest from the root
            // value.
            let kept = 1.0 - share;
            let expected = [
                if result > 0.0 { kept } else { 0.0 } + share * root_value.max(0.0),
                if result == 0.0 { kept } else { 0.0 } + share * (1.0 - root_value.abs()),
                if result < 0.0 { kept } else { 0.0 } - share * root_value.min(0.0),
            ];
            for (found, expected) in [win, draw, loss].into_iter().zip(expected) {
                prop_assert!((found - expected).abs() < 1e-6, "{} {}", found, expected);
            }
        }

        #[test]
        fn scores_are_no_outcomes(result in prop::num::f32::ANY) {
            let is_outcome = result == 1.0 || result == 0.0 || result == -1.0;
            prop_assert_eq!(of_result(result).is_some(), is_outcome);
        }
    }

    #[test]
    fn results_alone_are_certain() {
        let mixed = |result, root_value, share| mixed(of_result(result).unwrap(), root_value, share);
        assert_eq!(mixed(1.0, -0.5, 0.0), [1.0, 0.0, 0.0]);
        assert_eq!(mixed(0.0, -0.5, 0.0), [0.0, 1.0, 0.0]);
        assert_eq!(mixed(-1.0, 0.5, 0.0), [0.0, 0.0, 1.0]);
        assert_eq!(mixed(-1.0, 0.5, 0.5), [0.25, 0.25, 0.5]);
    }
}
