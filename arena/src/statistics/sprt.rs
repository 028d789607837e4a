//! The generalised sequential probability ratio test (GSPRT) on pairs of games, which ends as soon as one of two hypotheses on the
//! Elo difference is accepted.
//!
//! The test compares the largest likelihoods that the counted pairs can have under each hypothesis (van den Bergh, *A practical
//! introduction to the GSPRT*; the method of fishtest and fastchess). The bounds are Wald's.

use anyhow::ensure;
use serde::{Deserialize, Serialize};

use super::{
    estimate::score_of_elo,
    pentanomial::{Moments, Pentanomial, moments},
};

/// Normalised Elo for each standard deviation of one game: 800 / ln 10.
const NORMALISED_ELO: f64 = 347.435_585_522_602;
/// Count that replaces 0 in a case without pairs, so that no likelihood is 0.
const ALMOST_NONE: f64 = 1e-3;
const ITERATIONS: usize = 100;

/// Scale of the hypotheses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EloModel {
    /// Logistic Elo, the usual scale.
    #[default]
    Logistic,
    /// Normalised Elo: the distance of the mean score from ½ in standard deviations of a game. On this scale the length of a test
    /// hardly depends on the share of draws.
    Normalized,
}

/// Settings of a test between the hypotheses that the Elo difference is `elo0` or `elo1`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SprtSettings {
    /// The first hypothesis.
    pub elo0: f64,
    /// The second hypothesis, greater than the first.
    pub elo1: f64,
    /// Largest probability of accepting `elo1` if `elo0` is true.
    pub alpha: f64,
    /// Largest probability of accepting `elo0` if `elo1` is true.
    pub beta: f64,
    /// Scale of the hypotheses.
    pub model: EloModel,
}

/// A sequential test with valid settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sprt(SprtSettings);

/// Result of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// More games are needed.
    Undecided,
    /// `elo0` is accepted.
    Elo0,
    /// `elo1` is accepted.
    Elo1,
}

impl Sprt {
    /// Returns a test with these settings.
    ///
    /// # Errors
    /// The settings are invalid.
    pub fn new(settings: SprtSettings) -> anyhow::Result<Self> {
        let SprtSettings {
            elo0,
            elo1,
            alpha,
            beta,
            ..
        } = settings;
        ensure!(
            elo0 < elo1 && elo0 >= -2000.0 && elo1 <= 2000.0,
            "elo0 must be below elo1, both between -2000 and 2000"
        );
        let is_probability = |probability: f64| probability > 0.0 && probability < 0.5;
        ensure!(
            is_probability(alpha) && is_probability(beta),
            "alpha and beta must be above 0 and below 0.5"
        );
        Ok(Self(settings))
    }

    /// Settings of the test.
    pub fn settings(&self) -> &SprtSettings {
        &self.0
    }

    /// The log-likelihood ratios at which `elo0` and `elo1`, in this order, are accepted.
    pub fn bounds(&self) -> [f64; 2] {
        let SprtSettings { alpha, beta, .. } = self.0;
        [(beta / (1.0 - alpha)).ln(), ((1.0 - beta) / alpha).ln()]
    }

    /// The log-likelihood ratio, which is above 0 if the pairs are evidence for `elo1`. 0 without pairs.
    pub fn log_likelihood_ratio(&self, pairs: &Pentanomial) -> f64 {
        if pairs.pairs() == 0 {
            return 0.0;
        }
        let counts = pairs
            .counts()
            .map(|count| if count == 0.0 { ALMOST_NONE } else { count });
        let total: f64 = counts.iter().sum();
        let shares = counts.map(|count| count / total);
        let fitted = [self.0.elo0, self.0.elo1].map(|elo| match self.0.model {
            EloModel::Logistic => with_mean(&shares, score_of_elo(elo)),
            // The score of a pair is the mean of two games, so its standard deviation is smaller by √2.
            EloModel::Normalized => with_distance(&shares, elo / NORMALISED_ELO * std::f64::consts::SQRT_2),
        });
        total * log_ratio(&shares, &fitted)
    }

    /// Result of a test.
    pub fn verdict(&self, pairs: &Pentanomial) -> Verdict {
        let ratio = self.log_likelihood_ratio(pairs);
        let [lower, upper] = self.bounds();
        if ratio >= upper {
            Verdict::Elo1
        } else if ratio <= lower {
            Verdict::Elo0
        } else {
            Verdict::Undecided
        }
    }
}

fn log_ratio(shares: &[f64; 5], [zero, one]: &[[f64; 5]; 2]) -> f64 {
    shares
        .iter()
        .zip(zero.iter().zip(one))
        .map(|(share, (zero, one))| share * (one / zero).ln())
        .sum()
}

/// The distribution with this mean that maximises the likelihood of `shares`.
fn with_mean(shares: &[f64; 5], mean: f64) -> [f64; 5] {
    tilted(shares, &Pentanomial::SCORES.map(|score| score - mean))
}

/// The distribution that maximises the likelihood of `shares`, of those whose mean is `distance` of its own standard deviations
/// above ½. The condition is not linear. It is linearised at the last distribution until the distribution no longer changes.
fn with_distance(shares: &[f64; 5], distance: f64) -> [f64; 5] {
    let mut fitted = [0.2; 5];
    for _ in 0..ITERATIONS {
        let Moments { mean, variance } = moments(&fitted);
        let deviation = variance.sqrt();
        let condition = Pentanomial::SCORES.map(|score| {
            score - 0.5 - distance * deviation * (1.0 + ((score - mean) / deviation).powi(2)) / 2.0
        });
        let next = tilted(shares, &condition);
        let change = next
            .iter()
            .zip(&fitted)
            .map(|(next, last)| (next - last).abs())
            .fold(0.0, f64::max);
        fitted = next;
        if change < 1e-12 {
            break;
        }
    }
    fitted
}

/// The distribution `q` with `Σ q·c = 0` that maximises the likelihood of `shares`: `q = p / (1 + x·c)`, where bisection between
/// the poles finds the `x` that fulfils the condition.
fn tilted(shares: &[f64; 5], condition: &[f64; 5]) -> [f64; 5] {
    let least = condition.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = condition.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if least >= 0.0 || largest <= 0.0 {
        // No distribution on these scores fulfils the condition, because the hypothesis lies beyond them.
        return *shares;
    }
    let excess = |x: f64| -> f64 {
        shares
            .iter()
            .zip(condition)
            .map(|(share, condition)| share * condition / (1.0 + x * condition))
            .sum()
    };
    // The excess falls from +∞ to -∞ between the poles.
    let (mut low, mut high) = (-1.0 / largest, -1.0 / least);
    for _ in 0..200 {
        let middle = low + (high - low) / 2.0;
        if excess(middle) > 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    let x = low + (high - low) / 2.0;
    let mut fitted = [0.0; 5];
    for ((fitted, share), condition) in fitted.iter_mut().zip(shares).zip(condition) {
        *fitted = share / (1.0 + x * condition);
    }
    fitted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sprt(elo0: f64, elo1: f64, model: EloModel) -> Sprt {
        Sprt::new(SprtSettings {
            elo0,
            elo1,
            alpha: 0.05,
            beta: 0.05,
            model,
        })
        .unwrap()
    }

    /// fastchess' own test values (app/tests/sprt_test.cpp), which are fishtest's. Its third one, a clean sweep, is left out: what
    /// it gives depends on how empty cases are filled.
    #[test]
    fn agrees_with_fastchess() {
        use EloModel::{Logistic, Normalized};
        let published = [
            ([365, 16618, 36029 + 200, 16974, 390], 0.0, 2.0, Normalized, 2.25),
            ([127, 4883, 10311 + 401, 5150, 104], -1.75, 0.25, Normalized, 3.01),
            ([223, 9863, 20279 + 1000, 10037, 246], 0.5, 2.5, Logistic, -3.07),
            ([871, 26175, 55003 + 980, 26678, 821], 0.0, 2.0, Logistic, -4.98),
        ];
        for (counts, elo0, elo1, model, ratio) in published {
            let found = sprt(elo0, elo1, model).log_likelihood_ratio(&Pentanomial(counts));
            assert!(
                (found - ratio).abs() < 0.006,
                "{counts:?}: {found}, {ratio} expected"
            );
        }
    }

    #[test]
    fn the_test_decides_and_refuses_invalid_settings() {
        let test = sprt(0.0, 50.0, EloModel::Logistic);
        // Wald's bounds.
        assert!(
            test.bounds()
                .iter()
                .zip([-2.944, 2.944])
                .all(|(bound, wald)| (bound - wald).abs() < 0.001)
        );
        assert_eq!(test.verdict(&Pentanomial::default()), Verdict::Undecided);
        assert_eq!(test.verdict(&Pentanomial([1, 5, 20, 60, 40])), Verdict::Elo1);
        assert_eq!(test.verdict(&Pentanomial([60, 60, 60, 40, 20])), Verdict::Elo0);
        let refused = |elo0, elo1, alpha| {
            Sprt::new(SprtSettings {
                elo0,
                elo1,
                alpha,
                beta: 0.05,
                model: EloModel::Logistic,
            })
            .unwrap_err()
            .to_string()
        };
        assert!(refused(5.0, 5.0, 0.05).contains("elo0 must be below elo1"));
        assert!(refused(f64::NAN, 5.0, 0.05).contains("elo0 must be below elo1"));
        assert!(refused(0.0, 5.0, 0.5).contains("alpha and beta"));
    }

    proptest! {
        #[test]
        fn the_ratio_of_the_other_player_has_the_opposite_sign(counts in prop::array::uniform5(0u64..200), elo0 in -20f64..0.0, width in 1f64..20.0) {
            let pairs = Pentanomial(counts);
            for model in [EloModel::Logistic, EloModel::Normalized] {
                let own = sprt(elo0, elo0 + width, model).log_likelihood_ratio(&pairs);
                let other = sprt(-elo0 - width, -elo0, model).log_likelihood_ratio(&pairs.reversed());
                prop_assert!((own + other).abs() < 1e-6 * (1.0 + own.abs()), "{own} {other}");
            }
        }

        #[test]
        fn fits_in_the_normalised_scale_fulfil_their_condition(counts in prop::array::uniform5(1u64..200), distance in -0.2f64..0.2) {
            let pairs = Pentanomial(counts);
            let total = pairs.pairs() as f64;
            let fitted = with_distance(&pairs.counts().map(|count| count / total), distance);
            prop_assert!((fitted.iter().sum::<f64>() - 1.0).abs() < 1e-6);
            let Moments { mean, variance } = moments(&fitted);
            prop_assert!((mean - 0.5 - distance * variance.sqrt()).abs() < 1e-6);
        }
    }
}
