//! Pairs of games with the colours changed, counted by their score: [`Pentanomial`].
//!
//! Two games from the same opening are not independent: an opening that favours one colour makes one of each. Taken
//! together the pair is one observation with five possible scores, and the variance is right again.

use serde::{Deserialize, Serialize};

/// Number of pairs whose two games gave a player 0, ½, 1, 1½ and 2 points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pentanomial(pub [u64; 5]);

/// Mean and variance of one pair's score, each pair counted as a share in [0, 1].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// Mean.
    pub mean: f64,
    /// Variance of a single pair (of the counts as they are, not an estimate from a sample).
    pub variance: f64,
}

impl Pentanomial {
    /// What a pair scores in each of the five cases, as a share.
    pub const SCORES: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

    /// Adds a pair in which a player got this many half-points (0 to 4; more count as 4).
    pub fn add(&mut self, half_points: u8) {
        self.0[usize::from(half_points.min(4))] += 1;
    }

    /// Number of pairs.
    pub fn pairs(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The same pairs as the other player sees them.
    #[must_use]
    pub fn reversed(mut self) -> Self {
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
