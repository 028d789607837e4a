//! [`Outcome`]: the result of checking a game, and [`Failure`]: the reason why a check of several games fails.

use actor::check::{Problem, search::Followed};
use proto::{ids::hex, v1};
use serde_json::json;

/// Result of checking a game.
pub enum Outcome {
    /// The record agrees with the rules. There was no search to repeat, for this reason.
    Replayed(String),
    /// The record agrees with the rules, and its searches come to every recorded visit.
    Reproduced(Followed),
    /// The record agrees with the rules. Its searches cannot be repeated, for this reason.
    NotTried(String),
    /// The record contradicts the rules or its searches.
    Differs(Vec<Problem>),
}

impl Outcome {
    /// Name of the outcome in the output.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Replayed(_) => "replayed",
            Self::Reproduced(_) => "search reproduced",
            Self::NotTried(_) => "not tried",
            Self::Differs(_) => "differs",
        }
    }

    /// Prints the outcome of a game, as one JSON object if `as_json`.
    pub fn print(&self, game: &v1::Game, as_json: bool) {
        let (id, plies) = (hex(&game.id), game.actions.len());
        let (reason, problems) = match self {
            Self::Replayed(reason) | Self::NotTried(reason) => (Some(reason.as_str()), [].as_slice()),
            Self::Reproduced(_) => (None, [].as_slice()),
            Self::Differs(problems) => (None, problems.as_slice()),
        };
        if as_json {
            let value_difference = match self {
                Self::Reproduced(followed) => Some(followed.value_difference),
                _ => None,
            };
            let line = json!({
                "id": id,
                "outcome": self.name(),
                "positions": plies,
                "reason": reason,
                "problems": problems,
                "value_difference": value_difference,
            });
            println!("{line}");
            return;
        }
        let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
        println!("{id}  {plies} positions  {}{reason}", self.name());
        for problem in problems {
            println!("    {problem}");
        }
    }
}

/// Numbers of games by their outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    replayed: u64,
    reproduced: u64,
    not_tried: u64,
    differ: u64,
}

impl Counts {
    /// Counts a game.
    pub fn add(&mut self, outcome: &Outcome) {
        let count = match outcome {
            Outcome::Replayed(_) => &mut self.replayed,
            Outcome::Reproduced(_) => &mut self.reproduced,
            Outcome::NotTried(_) => &mut self.not_tried,
            Outcome::Differs(_) => &mut self.differ,
        };
        *count += 1;
    }

    /// Returns the failure of the whole check. With `is_strict`, every search must have been reproduced.
    pub fn failure(&self, is_strict: bool) -> Option<Failure> {
        let not_reproduced = self.not_tried + if is_strict { self.replayed } else { 0 };
        match (self.differ, not_reproduced) {
            (0, 0) => None,
            (0, games) => Some(Failure::NotReproduced(games)),
            (games, _) => Some(Failure::Differ(games)),
        }
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            out,
            "{} games: {} replayed, {} searches reproduced, {} not tried, {} differ",
            self.replayed + self.reproduced + self.not_tried + self.differ,
            self.replayed,
            self.reproduced,
            self.not_tried,
            self.differ
        )
    }
}

/// Error: not all games were checked with success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Games that do not agree with their records. The process exits with 1.
    #[error("{0} games do not agree with their records")]
    Differ(u64),
    /// Games whose searches were not reproduced. The process exits with 4.
    #[error("the searches of {0} games were not reproduced")]
    NotReproduced(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_replayed_games_and_reproduced_searches_are_success() {
        let counts = |outcomes: &[Outcome]| {
            let mut counts = Counts::default();
            outcomes.iter().for_each(|outcome| counts.add(outcome));
            counts
        };
        let replayed = || Outcome::Replayed("a known solution".into());
        let reproduced = || Outcome::Reproduced(Followed::default());
        let not_tried = || Outcome::NotTried("the checkpoint is gone".into());
        let differs = || Outcome::Differs(Vec::new());

        let good = counts(&[replayed(), reproduced()]);
        assert_eq!(
            (good.failure(false), good.failure(true)),
            (None, Some(Failure::NotReproduced(1)))
        );
        assert_eq!(counts(&[reproduced()]).failure(true), None);
        let gone = counts(&[replayed(), reproduced(), not_tried()]);
        assert_eq!(gone.failure(false), Some(Failure::NotReproduced(1)));
        assert_eq!(gone.failure(true), Some(Failure::NotReproduced(2)));
        let bad = counts(&[not_tried(), differs()]);
        assert_eq!(bad.failure(false), Some(Failure::Differ(1)));
        assert_eq!(
            bad.to_string(),
            "2 games: 0 replayed, 0 searches reproduced, 1 not tried, 1 differ"
        );
    }
}
