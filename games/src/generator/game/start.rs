//! Starts of [`GeneratorGame`] in JSON: read, checked and written.

use serde::{Deserialize, Serialize};

use super::{EpisodeEnd, GeneratorGame};
use crate::generator::{
    clan::Clan,
    grid::Grid,
    problem::{Examples, Problem},
    rules::Rules,
};

/// Start position as JSON, e.g. `{"target":[[1,1],[1,0]]}`. Every field may be missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct StartText {
    /// Packed clan. The default is [`Clan::start`].
    #[serde(skip_serializing_if = "Option::is_none")]
    clan: Option<Vec<u32>>,
    /// First grid to draw, as rows of colours.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<Grid>,
    /// Second grid of a pair.
    #[serde(skip_serializing_if = "Option::is_none")]
    second_target: Option<Grid>,
    /// Examples of the task of a pair, in any order, e.g. `[{"input":[[1]],"output":[[2]]}]`.
    #[serde(skip_serializing_if = "Examples::is_empty")]
    examples: Examples,
    /// True if the first grid of a pair was marked.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    marked: bool,
    /// Number of moves so far, for the move limit.
    #[serde(skip_serializing_if = "is_zero")]
    plies: u32,
    /// True for the position that every failed move leads to. The other fields have no meaning then.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    oops: bool,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl StartText {
    /// Returns the problem of the start.
    ///
    /// # Errors
    /// Message that names the fields that contradict each other.
    fn problem(&self) -> Result<Problem, String> {
        match (self.target, self.second_target) {
            (Some(_), None) if self.marked => Err("`marked` without a `second_target`".into()),
            (None, None) => Ok(Problem::Free),
            (Some(target), None) => Ok(Problem::Draw(target)),
            (Some(first), Some(second)) => Ok(Problem::Pair(first, second)),
            (None, Some(_)) => Err("`second_target` without a `target`".into()),
        }
    }
}

impl GeneratorGame {
    /// Reads a start in JSON.
    pub(super) fn parse(rules: &Rules, text: &str) -> Result<Self, String> {
        let text: StartText = serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| {
            format!(r#"{error} (a start is JSON, e.g. {{"clan":[1,272,528,785],"target":[[1,1],[1,0]]}})"#)
        })?;
        let clan = match &text.clan {
            None => Clan::start(),
            Some(packed) => Clan::unpack(packed).map_err(|error| format!("`clan`: {error}"))?,
        };
        let state = Self::from_clan(rules, text.problem()?, clan);
        let mut state = state
            .with_examples(text.examples)
            .map_err(|error| format!("`examples`: {error}"))?;
        if text.oops {
            state.become_oops();
            return Ok(state);
        }
        state.plies = text.plies;
        if text.marked {
            state.step_marked = true;
            state.record_visit();
        }
        if state.plies >= rules.move_limit {
            state.end = Some(EpisodeEnd::MoveLimit);
        }
        Ok(state)
    }

    /// Returns the position as a start in JSON.
    pub(super) fn as_start(&self) -> String {
        let problem = &self.episode.problem;
        let text = match self.end {
            Some(EpisodeEnd::Oops) => StartText {
                oops: true,
                ..StartText::default()
            },
            Some(EpisodeEnd::Solved | EpisodeEnd::MoveLimit | EpisodeEnd::Proposed) | None => StartText {
                clan: Some(self.clan.packed().collect()),
                target: problem.target().copied(),
                second_target: problem.second_target().copied(),
                examples: self.episode.examples.clone(),
                marked: self.step_marked,
                plies: self.plies,
                oops: false,
            },
        };
        serde_json::to_string(&text).unwrap_or_default()
    }
}
