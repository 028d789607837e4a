//! Dirichlet noise in the priors of the decision node (AlphaGo Zero; α by number of actions as in KataGo).

use crate::draws::Draws;

/// Mixes noise into `priors`: each becomes `(1 - fraction) · P + fraction · η`, with η drawn from the symmetric Dirichlet
/// distribution of parameter `total_alpha / priors.len()`. A fraction of 0 changes nothing and draws nothing.
pub fn mix(fraction: f32, total_alpha: f32, draws: &mut Draws, priors: &mut [f32]) {
    if priors.is_empty() || fraction <= 0.0 {
        return;
    }
    let alpha = f64::from(total_alpha) / priors.len() as f64;
    let mut eta: Vec<f64> = priors.iter().map(|_| draws.gamma(alpha)).collect();
    let sum: f64 = eta.iter().sum();
    if sum > 0.0 && sum.is_finite() {
        eta.iter_mut().for_each(|share| *share /= sum);
    } else {
        // A very small α makes every draw underflow. The limit of the distribution puts all weight on one action.
        eta.fill(0.0);
        let chosen = draws.below(eta.len());
        eta[chosen] = 1.0;
    }
    let fraction = f64::from(fraction);
    for (prior, share) in priors.iter_mut().zip(eta) {
        *prior = ((1.0 - fraction) * f64::from(*prior) + fraction * share) as f32;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::draws::{GameKey, Purpose};

    fn draws(game: u64) -> Draws {
        Draws::new(GameKey { run_seed: 1, game }, 0, Purpose::Noise)
    }

    proptest! {
        #[test]
        fn noisy_priors_are_a_distribution(
            weights in prop::collection::vec(0.01f32..1.0, 1..60),
            fraction in 0.0f32..=1.0,
            total_alpha in 1e-4f32..20.0,
            game: u64,
        ) {
            let sum: f32 = weights.iter().sum();
            let raw: Vec<f32> = weights.iter().map(|weight| weight / sum).collect();
            let mut mixed = raw.clone();
            mix(fraction, total_alpha, &mut draws(game), &mut mixed);
            prop_assert!((mixed.iter().sum::<f32>() - 1.0).abs() < 1e-4);
            for (mixed, raw) in mixed.iter().zip(&raw) {
                prop_assert!(*mixed >= (1.0 - fraction) * raw - 1e-6 && mixed.is_finite());
            }
        }
    }

    /// The variance of one share of a symmetric Dirichlet distribution is `(k - 1) / (k² (kα + 1))`.
    #[test]
    fn shares_have_the_mean_and_variance_of_the_distribution() {
        let (count, alpha) = (5usize, 0.3f64);
        let rounds = 20_000;
        let (mut mean, mut square) = (0.0, 0.0);
        for game in 0..rounds {
            let mut priors = [0.0f32; 5];
            mix(1.0, (alpha * count as f64) as f32, &mut draws(game), &mut priors);
            mean += f64::from(priors[0]) / rounds as f64;
            square += f64::from(priors[0]).powi(2) / rounds as f64;
        }
        let k = count as f64;
        let variance = (k - 1.0) / (k * k * (k * alpha + 1.0));
        assert!((mean - 0.2).abs() < 0.01, "{mean}");
        assert!(
            (square - mean * mean - variance).abs() < 0.005,
            "{} {variance}",
            square - mean * mean
        );
    }
}
