//! Pairs of games with the colours changed, counted by their score: [`Pentanomial`].
//!
//! Two games from the same opening are not independent: an opening that favours one colour gives each player one win. As one
//! observation with five possible scores, a pair gives the right variance.

use serde::{Deserialize, Serialize};

/// Number of pairs whose two games gave a player 0, ½, 1, 1½ and 2 points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pentanomial(pub [u64; 5]);

/// Mean and variance of the score of a pair, which is a share in [0, 1].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// Mean score.
    pub mean: f64,
    /// Variance of the score of a single pair: that of the counted distribution, without a correction for the sample size.
    pub variance: f64,
}

impl Pentanomial {
    /// Score of a pair, as a share, in each of the five cases.
    pub const SCORES: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

    /// Adds a pair in which the player got this number of half-points (0 to 4; more count as 4).
    pub fn add(&mut self, half_points: u8) {
        self.0[usize::from(half_points.min(4))] += 1;
    }

    /// Number of pairs.
    pub fn pairs(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns the pairs counted by the points of the other player.
    #[cfg(test)]
    pub(crate) fn reversed(mut self) -> Self {
        self.0.reverse();
        self
    }

    /// The counts as floats.
    pub fn counts(&self) -> [f64; 5] {
        self.0.map(|count| count as f64)
    }

    /// Mean and variance; `None` without pairs.
    pub fn moments(&self) -> Option<Moments> {
        let pairs = self.pairs();
        (pairs > 0).then(|| moments(&self.counts().map(|count| count / pairs as f64)))
    }
}

/// Mean and variance of the scores under a distribution.
pub(super) fn moments(shares: &[f64; 5]) -> Moments {
    let scores = Pentanomial::SCORES;
    let mean: f64 = shares
        .iter()
        .zip(scores)
        .map(|(share, score)| share * score)
        .sum();
    let variance = shares
        .iter()
        .zip(scores)
        .map(|(share, score)| share * (score - mean).powi(2))
        .sum();
    Moments { mean, variance }
}
