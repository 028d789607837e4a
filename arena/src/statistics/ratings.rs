//! Ratings of more than two players: the Elo differences under which the points they took from each other are likeliest.
//!
//! Bradley and Terry's model, a draw counted as half a win for each, fitted by minorisation–maximisation (Hunter, *MM algorithms
//! for generalized Bradley–Terry models*, 2004). Half a point for and against each opponent met stands in
//! for games not played, so that a player who won every game has a finite rating.

/// Games of the prior for each pair of players that met.
const PRIOR: f64 = 1.0;
const ITERATIONS: usize = 10_000;
const PRECISION: f64 = 1e-9;

/// Ratings with mean 0, from `points[i][j]`, the points that `i` took from `j`.
/// Players who are not connected by games have no common scale; theirs are as good as any.
pub fn ratings(points: &[Vec<f64>]) -> Vec<f64> {
    let count = points.len();
    let games = |i: usize, j: usize| {
        let played = points[i][j] + points[j][i];
        if i != j && played > 0.0 {
            played + PRIOR
        } else {
            0.0
        }
    };
    let mut strengths = vec![1.0f64; count];
    for _ in 0..ITERATIONS {
        let mut change: f64 = 0.0;
        for i in 0..count {
            let (mut won, mut expected) = (0.0, 0.0);
            for j in 0..count {
                let games = games(i, j);
                if games > 0.0 {
                    won += points[i][j] + PRIOR / 2.0;
                    expected += games / (strengths[i] + strengths[j]);
                }
            }
            if expected > 0.0 {
                let next = won / expected;
                change = change.max((next / strengths[i]).ln().abs());
                strengths[i] = next;
            }
        }
        if change < PRECISION {
            break;
        }
    }
    let elo: Vec<f64> = strengths
        .iter()
        .map(|strength| 400.0 * strength.log10())
        .collect();
    let mean = elo.iter().sum::<f64>() / count.max(1) as f64;
    elo.iter().map(|elo| elo - mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::score_of_elo;

    #[test]
    fn finds_the_ratings_that_made_the_points() {
        let truth = [120.0, 30.0, -150.0];
        let games = 100_000.0;
        let points: Vec<Vec<f64>> = truth
            .iter()
            .map(|own| {
                truth
                    .iter()
                    .map(|other| games * score_of_elo(own - other))
                    .collect()
            })
            .collect();
        for (found, truth) in ratings(&points).iter().zip(truth) {
            assert!((found - truth).abs() < 0.1, "{found} {truth}");
        }
    }

    #[test]
    fn a_clean_sweep_and_strangers_are_finite() {
        let found = ratings(&[vec![0.0, 10.0, 0.0], vec![0.0; 3], vec![0.0; 3]]);
        assert!(found.iter().all(|rating| rating.is_finite()));
        assert!(found[0] > found[1] + 300.0);
        assert!(ratings(&[]).is_empty());
    }
}
