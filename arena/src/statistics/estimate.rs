//! Score, Elo difference, 95 % interval and likelihood of superiority: [`Estimate`]. Interval of a share: [`wilson`].
//!
//! On Elo's logistic scale, a player who is `d` stronger scores `1 / (1 + 10^(-d/400))`. The interval is that of the mean score
//! (normal approximation, variance of pairs), with its ends converted to Elo.

use serde::{Deserialize, Serialize};

use super::pentanomial::Pentanomial;

/// The normal distribution's 97.5 % quantile.
pub(super) const Z: f64 = 1.959_963_984_540_054;
/// After `n` equal observations, the probability of a different one is below about `3/n` at 95 % confidence.
const RULE_OF_THREE: f64 = 3.0;

/// Estimate of a player's strength against another, from pairs of games.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Share of the points, in [0, 1].
    pub score: f64,
    /// Ends of the 95 % interval of the score.
    pub score_interval: [f64; 2],
    /// Elo difference; `None` if the score is 0 or 1, where the difference has no bound.
    pub elo: Option<f64>,
    /// Ends of the 95 % interval of the Elo difference; `None` for an end without bound.
    pub elo_interval: [Option<f64>; 2],
    /// Likelihood that the player is the stronger one, in [0, 1].
    pub superiority: f64,
}

impl Estimate {
    /// Estimates the strength from counted pairs. `None` without pairs.
    pub fn of(pairs: &Pentanomial) -> Option<Self> {
        let moments = pairs.moments()?;
        let count = pairs.pairs() as f64;
        let error = (moments.variance / count).sqrt();
        let score = moments.mean;
        let half = if error > 0.0 {
            Z * error
        } else {
            (RULE_OF_THREE / count).min(1.0)
        };
        let score_interval = [(score - half).max(0.0), (score + half).min(1.0)];
        let superiority = if error > 0.0 {
            normal_below((score - 0.5) / error)
        } else if score == 0.5 {
            0.5
        } else {
            // All pairs have the same score: the estimate adds one pair with the opposite score.
            let shifted = (score * count + (1.0 - score)) / (count + 1.0);
            let spread =
                ((score - shifted).powi(2) * count + (1.0 - score - shifted).powi(2)) / (count + 1.0);
            normal_below((shifted - 0.5) / (spread / (count + 1.0)).sqrt())
        };
        Some(Self {
            score,
            score_interval,
            elo: elo_of_score(score),
            elo_interval: score_interval.map(elo_of_score),
            superiority,
        })
    }
}

/// The Elo difference at which a player scores this share; `None` unless the share is above 0 and below 1.
fn elo_of_score(score: f64) -> Option<f64> {
    (score > 0.0 && score < 1.0).then(|| 400.0 * (score / (1.0 - score)).log10())
}

/// The expected score, in [0, 1], of a player who is `elo` stronger.
pub fn score_of_elo(elo: f64) -> f64 {
    1.0 / (1.0 + 10f64.powf(-elo / 400.0))
}

/// The standard normal distribution function.
fn normal_below(z: f64) -> f64 {
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
}

/// Interval of the share `count / all` by Wilson (1927), 95 %. Without observations it is `[0, 1]`.
pub fn wilson(count: u64, all: u64) -> [f64; 2] {
    if all == 0 {
        return [0.0, 1.0];
    }
    let (count, all) = (count as f64, all as f64);
    let (share, square) = (count / all, Z * Z / all);
    let middle = share + square / 2.0;
    let half = (share * (1.0 - share) * square + square * square / 4.0).sqrt();
    [middle - half, middle + half].map(|end| (end / (1.0 + square)).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// fastchess' own test values (app/tests/elo_test.cpp): pairs, Elo, half the interval, likelihood of superiority in %.
    #[test]
    fn agrees_with_fastchess() {
        let published = [
            ([34, 54, 31 + 32, 64, 75], 55.58, 27.65, Some(100.00)),
            ([332, 433, 457 + 41, 333, 334], -8.64, 10.33, Some(5.05)),
            ([7895, 8757, 5485 + 200, 568, 9999], -21.04, 2.95, None),
        ];
        for (counts, elo, half, superiority) in published {
            let found = Estimate::of(&Pentanomial(counts)).unwrap();
            let [Some(low), Some(high)] = found.elo_interval else {
                panic!("bounded");
            };
            assert!((found.elo.unwrap() - elo).abs() < 0.006, "{found:?}");
            assert!(((high - low) / 2.0 - half).abs() < 0.006, "{found:?}");
            if let Some(superiority) = superiority {
                assert!(
                    (found.superiority * 100.0 - superiority).abs() < 0.006,
                    "{found:?}"
                );
            }
        }
    }

    /// Table A1 of Zelen and Severo (Abramowitz and Stegun 26.1).
    #[test]
    fn normal_distribution_agrees_with_published_values() {
        for (z, below) in [
            (0.0, 0.5),
            (1.0, 0.841_344_746),
            (1.96, 0.975_002_105),
            (3.0, 0.998_650_102),
        ] {
            assert!((normal_below(z) - below).abs() < 1e-9);
            assert!((normal_below(-z) - (1.0 - below)).abs() < 1e-9);
        }
    }

    #[test]
    fn a_clean_sweep_has_no_elo_estimate_but_a_lower_bound() {
        let sweep = Estimate::of(&Pentanomial([0, 0, 0, 0, 100])).unwrap();
        assert_eq!((sweep.score, sweep.elo), (1.0, None));
        assert_eq!(sweep.score_interval, [0.97, 1.0]);
        assert!(sweep.elo_interval[0].unwrap() > 600.0 && sweep.elo_interval[1].is_none());
        assert!(sweep.superiority > 0.999);
        assert!(Estimate::of(&Pentanomial([0, 0, 0, 0, 1])).unwrap().superiority < 0.9);
        assert_eq!(Estimate::of(&Pentanomial::default()), None);
        let even = Estimate::of(&Pentanomial([0, 0, 7, 0, 0])).unwrap();
        assert_eq!((even.elo, even.superiority), (Some(0.0), 0.5));
    }

    /// Values of the formula from Brown, Cai and DasGupta (2001): 0 of 10 and 5 of 10.
    #[test]
    fn the_interval_is_that_of_wilson() {
        for (count, all, expected) in [
            (0, 10, [0.0, 0.2775]),
            (5, 10, [0.2366, 0.7634]),
            (0, 0, [0.0, 1.0]),
        ] {
            let found = wilson(count, all);
            let mut both = found.iter().zip(expected);
            assert!(
                both.all(|(found, expected)| (found - expected).abs() < 5e-4),
                "{found:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn the_estimate_of_the_other_player_is_the_opposite(counts in prop::array::uniform5(0u64..50)) {
            let pairs = Pentanomial(counts);
            prop_assume!(pairs.pairs() > 0);
            let own = Estimate::of(&pairs).unwrap();
            let other = Estimate::of(&pairs.reversed()).unwrap();
            prop_assert!((own.score + other.score - 1.0).abs() < 1e-12);
            prop_assert!((own.superiority + other.superiority - 1.0).abs() < 1e-9);
            prop_assert!(own.score_interval[0] <= own.score && own.score <= own.score_interval[1]);
            if let (Some(own), Some(other)) = (own.elo, other.elo) {
                prop_assert!((own + other).abs() < 1e-9);
            }
        }
    }
}
