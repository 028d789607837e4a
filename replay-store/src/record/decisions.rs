//! Search results ([`proto::v1::Decisions`]): their check before they are stored, their stored form, and the copy that batches are made
//! from.
//!
//! ```text
//! names   = section: kinds · counts of unvisited actions · unvisited actions · places of the played actions
//! numbers = section: evaluations · priors of visited actions · priors of unvisited ones · values
//! ```
//!
//! Numbers are stored as they are, in half precision: all low bytes of a column, then all high bytes.

use bytes::Bytes;
use proto::{
    decisions::{Decision, Halves, Recorder},
    v1::{DecisionKind, Decisions},
};

use super::{
    decoded::Numbers,
    planes,
    sections::{DecodeError, Reader},
    validate::VALUE_SLACK,
};

/// Amount by which the sum of a position's priors may exceed 1. Actors accept replies whose sum is within 0.01 of 1, and rounding adds to
/// that. A sum below 1 is valid, because an action that a proof refutes is recorded with the prior 0.
const SUM_SLACK: f32 = 0.02;

/// Checks the results of one search. `visited` is the number of visited actions, `least` the lowest value that a position can have.
///
/// # Errors
/// The column that is wrong, and what its position has.
pub(super) fn check(
    decision: &Decision<'_>,
    visited: usize,
    least: f32,
) -> Result<(), (&'static str, String)> {
    let refuse = |field, problem| Err((field, problem));
    let is_value = |value: f32| (least - VALUE_SLACK..=1.0 + VALUE_SLACK).contains(&value);
    if DecisionKind::try_from(i32::from(decision.kind)).is_err() {
        let problem = format!("has kind {}, which is unknown to this build", decision.kind);
        return refuse("decisions.kinds", problem);
    }
    if !is_value(decision.evaluation) {
        return refuse("decisions.evaluations", format!("has no value in [{least}, 1]"));
    }
    if !decision.values.iter().all(is_value) {
        let problem = format!("has an action without a value in [{least}, 1]");
        return refuse("decisions.values", problem);
    }
    let is_prior = |prior: f32| (0.0..=1.0 + VALUE_SLACK).contains(&prior);
    for (field, priors) in [
        ("decisions.visited_priors", decision.visited_priors),
        ("decisions.unvisited_priors", decision.unvisited_priors),
    ] {
        if !priors.iter().all(is_prior) {
            return refuse(field, "has a prior outside of [0, 1]".into());
        }
    }
    let actions = visited + decision.unvisited.len();
    if !decision.is_recorded() {
        return match decision.unvisited {
            [] => Ok(()),
            _ => refuse(
                "decisions.unvisited_actions",
                "names actions although nothing is recorded".into(),
            ),
        };
    }
    let sum: f32 = decision
        .visited_priors
        .iter()
        .chain(decision.unvisited_priors.iter())
        .sum();
    if sum > 1.0 + SUM_SLACK {
        return refuse(
            "decisions.visited_priors",
            format!("has priors with the sum {sum}"),
        );
    }
    if decision.played.is_some_and(|played| played as usize >= actions) {
        return refuse("decisions.played", format!("has {actions} actions"));
    }
    Ok(())
}

/// Appends the first section of a game's decisions: kinds and actions.
pub(super) fn put_names(decisions: &Decisions, plain: &mut Vec<u8>) {
    plain.extend_from_slice(&decisions.kinds);
    planes::put(&decisions.unvisited_counts, plain);
    planes::put(&decisions.unvisited_actions, plain);
    planes::put(&decisions.played, plain);
}

/// Appends the second section of a game's decisions: evaluations, priors and values.
pub(super) fn put_numbers(decisions: &Decisions, plain: &mut Vec<u8>) {
    for column in [
        &decisions.evaluations,
        &decisions.visited_priors,
        &decisions.unvisited_priors,
        &decisions.values,
    ] {
        plain.extend(column.iter().step_by(2));
        plain.extend(column.iter().skip(1).step_by(2));
    }
}

/// Reads the first section of the decisions of `positions` positions with `unvisited` unvisited actions in all.
pub(super) fn take_names(
    section: &mut Reader<'_>,
    positions: usize,
    unvisited: usize,
) -> Result<Decisions, DecodeError> {
    Ok(Decisions {
        kinds: section.take(positions)?.to_vec().into(),
        unvisited_counts: planes::take(section, positions)?,
        unvisited_actions: planes::take(section, unvisited)?,
        played: planes::take(section, positions)?,
        ..Decisions::default()
    })
}

/// Reads the second section of the decisions of `positions` positions with `visited` visited actions in all.
pub(super) fn take_numbers(
    section: &mut Reader<'_>,
    decisions: &mut Decisions,
    visited: usize,
) -> Result<(), DecodeError> {
    decisions.evaluations = take_halves(section, decisions.kinds.len())?;
    decisions.visited_priors = take_halves(section, visited)?;
    decisions.unvisited_priors = take_halves(section, decisions.unvisited_actions.len())?;
    decisions.values = take_halves(section, visited)?;
    Ok(())
}

fn take_halves(section: &mut Reader<'_>, count: usize) -> Result<Bytes, DecodeError> {
    let (low, high) = (section.take(count)?, section.take(count)?);
    let pairs = low.iter().zip(high);
    Ok(pairs.flat_map(|(&low, &high)| [low, high]).collect())
}

/// Decisions of a game's trainable positions, in flat arrays.
#[derive(Debug)]
pub(super) struct KeptDecisions {
    kinds: Box<[u8]>,
    /// End of each position's unvisited actions.
    ends: Box<[u32]>,
    unvisited: Numbers,
    unvisited_priors: Box<[u8]>,
    visited_priors: Box<[u8]>,
    values: Box<[u8]>,
    evaluations: Box<[f32]>,
}

impl KeptDecisions {
    /// Copies the decisions.
    pub fn new<'a>(decisions: impl Iterator<Item = Decision<'a>>) -> Self {
        let (mut kinds, mut ends, mut evaluations) = (Vec::new(), Vec::new(), Vec::new());
        let (mut unvisited, mut unvisited_priors) = (Vec::new(), Vec::new());
        let (mut visited_priors, mut values) = (Vec::new(), Vec::new());
        for decision in decisions {
            kinds.push(decision.kind);
            unvisited.extend_from_slice(decision.unvisited);
            ends.push(unvisited.len() as u32);
            unvisited_priors.extend_from_slice(decision.unvisited_priors.bytes());
            visited_priors.extend_from_slice(decision.visited_priors.bytes());
            values.extend_from_slice(decision.values.bytes());
            evaluations.push(decision.evaluation);
        }
        Self {
            kinds: kinds.into(),
            ends: ends.into(),
            unvisited: Numbers::new(unvisited),
            unvisited_priors: unvisited_priors.into(),
            visited_priors: visited_priors.into(),
            values: values.into(),
            evaluations: evaluations.into(),
        }
    }

    /// Returns the memory that the columns take beyond the size of this type, in bytes.
    pub fn bytes(&self) -> usize {
        self.kinds.len()
            + size_of_val(&*self.ends)
            + self.unvisited.bytes()
            + self.unvisited_priors.len()
            + self.visited_priors.len()
            + self.values.len()
            + size_of_val(&*self.evaluations)
    }

    /// Appends the decision of the position with index `at`, whose visited actions are those from `visited.0` to `visited.1`. Returns
    /// false if there is no such position.
    #[must_use]
    pub fn append(&self, at: usize, visited: (usize, usize), recorder: &mut Recorder) -> bool {
        let (Some(&kind), Some(&end), Some(&evaluation)) =
            (self.kinds.get(at), self.ends.get(at), self.evaluations.get(at))
        else {
            return false;
        };
        let begin = at.checked_sub(1).and_then(|before| self.ends.get(before));
        let unvisited = (begin.copied().unwrap_or_default() as usize, end as usize);
        let mut actions = Vec::with_capacity(unvisited.1 - unvisited.0);
        self.unvisited.append(unvisited.0, unvisited.1, &mut actions);
        recorder.copy(&Decision {
            kind,
            visited_priors: part(&self.visited_priors, visited),
            values: part(&self.values, visited),
            unvisited: &actions,
            unvisited_priors: part(&self.unvisited_priors, unvisited),
            evaluation,
            played: None,
        });
        true
    }
}

/// Returns the numbers of a span of a column.
fn part(column: &[u8], (from, to): (usize, usize)) -> Halves<'_> {
    Halves::new(column.get(2 * from..2 * to).unwrap_or_default())
}
