//! [`Line`]: one rated match, as a line of `metrics.jsonl`.

use std::time::{SystemTime, UNIX_EPOCH};

use checkpoints::Version;
use serde::{Deserialize, Serialize};

use super::duel::Live;
use crate::{
    matches::ClassStanding,
    statistics::{Pentanomial, Rating},
};

/// Result of a match for its candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The candidate is the best checkpoint now.
    Promoted,
    /// The test decided against the candidate.
    Kept,
    /// The largest number of games was played before the test decided.
    Undecided,
    /// Somebody else moved `best` during the match.
    Overtaken,
    /// The candidate was the best checkpoint already, because somebody had moved `best`, and played to get a rating.
    Placed,
}

/// Schema of the lines that are written. A field that changes its meaning takes a new number.
pub(super) const SCHEMA: u64 = 1;

/// Schema of lines without one.
pub(super) fn first_schema() -> u64 {
    1
}

/// A rated match. Elo differences are those of the candidate to its opponent; Elo ratings are relative to the first checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Schema number of the line.
    #[serde(default = "first_schema")]
    pub schema: u64,
    /// Time of the end, in milliseconds since the Unix epoch.
    pub time_ms: u64,
    /// The checkpoint that was rated.
    pub candidate: Version,
    /// Training steps of the candidate.
    pub step: u64,
    /// The best checkpoint before the match; for [`Outcome::Placed`], a checkpoint with a rating.
    pub opponent: Version,
    /// Result for the candidate.
    pub outcome: Outcome,
    /// Number of games.
    pub games: u64,
    /// Number of games that the candidate won.
    pub wins: u64,
    /// Number of drawn games.
    pub draws: u64,
    /// Number of games that the candidate lost.
    pub losses: u64,
    /// Numbers of pairs in which the candidate took 0, ½, 1, 1½ and 2 points.
    pub pairs: Pentanomial,
    /// Problems that the candidate and its opponent solved, by kind and level. Empty in games of two players.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<ClassStanding>,
    /// Log-likelihood ratio of the test.
    pub log_likelihood_ratio: f64,
    /// Elo difference estimated from this match alone; `None` if it has no bound.
    pub elo_difference: Option<f64>,
    /// Ends of the 95 % interval of the difference; `None` for an end without bound.
    pub elo_difference_interval: [Option<f64>; 2],
    /// Rating of the candidate after the match.
    pub elo: Option<f64>,
    /// Ends of the 95 % interval of the candidate's rating.
    pub elo_interval: Option<[f64; 2]>,
    /// Rating of the best checkpoint after the match.
    pub best_elo: Option<f64>,
    /// Ends of the 95 % interval of the best checkpoint's rating.
    pub best_elo_interval: Option<[f64; 2]>,
}

impl Line {
    /// Returns the line of a match that ends now, without ratings.
    pub fn new(candidate: &Version, opponent: &Version, outcome: Outcome, live: &Live) -> Self {
        let standing = &live.standing;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let estimate = standing.estimate.as_ref();
        Self {
            schema: SCHEMA,
            time_ms: now.as_millis() as u64,
            candidate: candidate.clone(),
            step: candidate.step(),
            opponent: opponent.clone(),
            outcome,
            games: live.games(),
            wins: standing.wins,
            draws: standing.draws,
            losses: standing.losses,
            pairs: standing.pentanomial,
            problems: standing.problems.clone(),
            log_likelihood_ratio: live.log_likelihood_ratio,
            elo_difference: estimate.and_then(|estimate| estimate.elo),
            elo_difference_interval: estimate.map_or([None; 2], |estimate| estimate.elo_interval),
            elo: None,
            elo_interval: None,
            best_elo: None,
            best_elo_interval: None,
        }
    }

    /// The best checkpoint after the match.
    pub fn best(&self) -> &Version {
        match self.outcome {
            Outcome::Promoted | Outcome::Placed => &self.candidate,
            Outcome::Kept | Outcome::Undecided | Outcome::Overtaken => &self.opponent,
        }
    }

    /// Ratings of the candidate and of the best checkpoint after the match.
    pub fn ratings(&self) -> [Option<Rating>; 2] {
        let rated = |elo: Option<f64>, interval: Option<[f64; 2]>| {
            let [low, high] = interval?;
            Some(Rating { elo: elo?, low, high })
        };
        [
            rated(self.elo, self.elo_interval),
            rated(self.best_elo, self.best_elo_interval),
        ]
    }
}
