//! Results of searches ([`v1::Decisions`]): how a recorder writes them, and a view that checks their lengths.
//!
//! ```
//! use proto::{decisions::{DecisionEntry, Recorder}, v1::{DecisionKind, Game}};
//!
//! // One position with three legal actions, of which two were visited and the second was played.
//! let mut recorder = Recorder::default();
//! recorder.push(&DecisionEntry {
//!     kind: DecisionKind::Searched,
//!     visited: &[(0.5, 0.25), (0.25, -1.0)],
//!     unvisited: &[(7, 0.25)],
//!     evaluation: 0.125,
//!     played: 1,
//! });
//! let game = Game {
//!     actions: vec![4],
//!     visit_counts: vec![2],
//!     visit_actions: vec![3, 5],
//!     visits: vec![9, 1],
//!     decisions: Some(recorder.finish()),
//!     ..Game::default()
//! };
//! let decision = game.decision_columns()?.unwrap().next().unwrap();
//! assert_eq!(decision.unvisited, [7]);
//! assert_eq!(decision.values.iter().collect::<Vec<_>>(), [0.25, -1.0]);
//! # Ok::<(), proto::columns::ColumnError>(())
//! ```

use half::f16;

use crate::{
    columns::{ColumnError, Lengths, Ragged, check_count, check_length},
    v1::{self, Batch, DecisionKind, Game},
};

/// Numbers in half precision, as the bytes of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Halves<'a>(&'a [u8]);

impl<'a> Halves<'a> {
    /// Makes a view of the numbers in `bytes`. An odd byte at the end is not part of it.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns the numbers.
    pub fn iter(self) -> impl ExactSizeIterator<Item = f32> + 'a {
        let pairs = self.0.chunks_exact(HALF_BYTES);
        pairs.map(|pair| f16::from_le_bytes([pair[0], pair[1]]).to_f32())
    }

    /// Returns the bytes of the numbers.
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    fn split_at(self, count: usize) -> (Self, Self) {
        let (first, rest) = self.0.split_at((count * HALF_BYTES).min(self.0.len()));
        (Self(first), Self(rest))
    }
}

/// Bytes of one number.
const HALF_BYTES: usize = size_of::<f16>();

/// Results of the search at one position, as a view of the columns shows them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision<'a> {
    /// Number of the kind, which may be unknown to this build.
    pub kind: u8,
    /// Priors of the visited actions.
    pub visited_priors: Halves<'a>,
    /// Mean values of the visited actions, for the player to act.
    pub values: Halves<'a>,
    /// Policy indices of the unvisited legal actions.
    pub unvisited: &'a [u32],
    /// Priors of the unvisited actions.
    pub unvisited_priors: Halves<'a>,
    /// Evaluation of the position by the network, for the player to act.
    pub evaluation: f32,
    /// Place of the played action among the visited actions and the unvisited ones behind them; `None` in a batch.
    pub played: Option<u32>,
}

impl Decision<'_> {
    /// True if the entries are those of a search.
    pub fn is_searched(&self) -> bool {
        self.kind == DecisionKind::Searched as u8
    }

    /// True if there are entries.
    pub fn is_recorded(&self) -> bool {
        self.kind != DecisionKind::Unrecorded as u8
    }
}

/// An iterator over the decisions of a game or of a batch.
#[derive(Clone, Debug)]
pub struct DecisionColumns<'a> {
    kinds: std::slice::Iter<'a, u8>,
    visited: std::slice::Iter<'a, u32>,
    visited_priors: Halves<'a>,
    values: Halves<'a>,
    unvisited: Ragged<'a>,
    unvisited_priors: Halves<'a>,
    evaluations: Halves<'a>,
    played: std::slice::Iter<'a, u32>,
}

impl<'a> DecisionColumns<'a> {
    /// Makes a view of the decisions of `visit_counts.len()` positions.
    ///
    /// # Errors
    /// [`ColumnError`] if a column does not have the length that the others give it.
    pub fn new(decisions: &'a v1::Decisions, visit_counts: &'a [u32]) -> Result<Self, ColumnError> {
        let positions = visit_counts.len();
        check_length("decisions.kinds", decisions.kinds.len(), positions)?;
        let counts = &decisions.unvisited_counts;
        check_length("decisions.unvisited_counts", counts.len(), positions)?;
        let visited = Lengths::Varying(visit_counts).total(positions);
        let unvisited = decisions.unvisited_actions.len() as u64;
        Ok(Self {
            kinds: decisions.kinds.iter(),
            visited: visit_counts.iter(),
            visited_priors: halves("decisions.visited_priors", &decisions.visited_priors, visited)?,
            values: halves("decisions.values", &decisions.values, visited)?,
            unvisited: Ragged::new(
                "decisions.unvisited_actions",
                &decisions.unvisited_actions,
                Lengths::Varying(counts),
                positions,
            )?,
            unvisited_priors: halves(
                "decisions.unvisited_priors",
                &decisions.unvisited_priors,
                unvisited,
            )?,
            evaluations: halves("decisions.evaluations", &decisions.evaluations, positions as u64)?,
            played: match decisions.played.len() {
                0 => [].iter(),
                found => {
                    check_length("decisions.played", found, positions)?;
                    decisions.played.iter()
                }
            },
        })
    }
}

impl<'a> Iterator for DecisionColumns<'a> {
    type Item = Decision<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let kind = *self.kinds.next()?;
        let visited = *self.visited.next()? as usize;
        let unvisited = self.unvisited.next()?;
        let take = |column: &mut Halves<'a>, count| {
            let (taken, rest) = column.split_at(count);
            *column = rest;
            taken
        };
        Some(Decision {
            kind,
            visited_priors: take(&mut self.visited_priors, visited),
            values: take(&mut self.values, visited),
            unvisited,
            unvisited_priors: take(&mut self.unvisited_priors, unvisited.len()),
            evaluation: take(&mut self.evaluations, 1).iter().next().unwrap_or_default(),
            played: self.played.next().copied(),
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.kinds.size_hint()
    }
}

impl ExactSizeIterator for DecisionColumns<'_> {}

/// Checks that a column has this many numbers.
fn halves<'a>(column: &'static str, bytes: &'a [u8], expected: u64) -> Result<Halves<'a>, ColumnError> {
    check_count(
        column,
        bytes.len() as u64,
        expected.saturating_mul(HALF_BYTES as u64),
    )?;
    Ok(Halves(bytes))
}

impl Game {
    /// Returns the decisions of the positions; `None` if none are recorded.
    ///
    /// # Errors
    /// [`ColumnError`] if the columns do not have the lengths that the counts give them.
    pub fn decision_columns(&self) -> Result<Option<DecisionColumns<'_>>, ColumnError> {
        let Some(decisions) = &self.decisions else {
            return Ok(None);
        };
        check_length("visit_counts", self.visit_counts.len(), self.actions.len())?;
        check_length("decisions.played", decisions.played.len(), self.actions.len())?;
        DecisionColumns::new(decisions, &self.visit_counts).map(Some)
    }
}

impl Batch {
    /// Returns the decisions of the positions.
    ///
    /// # Errors
    /// [`ColumnError`] if the columns do not have the lengths that the counts give them, or are missing.
    pub fn decision_columns(&self) -> Result<DecisionColumns<'_>, ColumnError> {
        let Some(decisions) = &self.decisions else {
            return Err(ColumnError {
                column: "decisions.kinds",
                found: 0,
                expected: self.positions.into(),
            });
        };
        check_length("visit_counts", self.visit_counts.len(), self.positions as usize)?;
        DecisionColumns::new(decisions, &self.visit_counts)
    }
}

/// Results of the search at one position, as a recorder takes them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DecisionEntry<'a> {
    /// Kind of the decision.
    pub kind: DecisionKind,
    /// Prior and mean value of each visited action, in the order of `visit_actions`.
    pub visited: &'a [(f32, f32)],
    /// Policy index and prior of each unvisited legal action.
    pub unvisited: &'a [(u32, f32)],
    /// Evaluation of the position.
    pub evaluation: f32,
    /// Place of the played action among the visited actions and the unvisited ones behind them.
    pub played: usize,
}

/// Writes the columns of [`v1::Decisions`], position by position.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    kinds: Vec<u8>,
    unvisited_counts: Vec<u32>,
    unvisited_actions: Vec<u32>,
    visited_priors: Vec<u8>,
    unvisited_priors: Vec<u8>,
    values: Vec<u8>,
    evaluations: Vec<u8>,
    played: Vec<u32>,
}

impl Recorder {
    /// Adds a position. Numbers are rounded to half precision.
    pub fn push(&mut self, entry: &DecisionEntry<'_>) {
        self.kinds.push(entry.kind as u8);
        self.unvisited_counts.push(entry.unvisited.len() as u32);
        for &(action, prior) in entry.unvisited {
            self.unvisited_actions.push(action);
            put(prior, &mut self.unvisited_priors);
        }
        for &(prior, value) in entry.visited {
            put(prior, &mut self.visited_priors);
            put(value, &mut self.values);
        }
        put(entry.evaluation, &mut self.evaluations);
        self.played.push(entry.played as u32);
    }

    /// Adds a position without a recorded search. `visited` is the number of visited actions in the message.
    pub fn push_unrecorded(&mut self, visited: usize) {
        self.push(&DecisionEntry {
            kind: DecisionKind::Unrecorded,
            visited: &vec![(0.0, 0.0); visited],
            unvisited: &[],
            evaluation: 0.0,
            played: 0,
        });
    }

    /// Adds a copy of a decision.
    pub fn copy(&mut self, decision: &Decision<'_>) {
        self.kinds.push(decision.kind);
        self.unvisited_counts.push(decision.unvisited.len() as u32);
        self.unvisited_actions.extend_from_slice(decision.unvisited);
        self.visited_priors.extend_from_slice(decision.visited_priors.0);
        self.values.extend_from_slice(decision.values.0);
        self.unvisited_priors
            .extend_from_slice(decision.unvisited_priors.0);
        put(decision.evaluation, &mut self.evaluations);
        self.played.extend(decision.played);
    }

    /// True if no position has a recorded search.
    pub fn is_empty(&self) -> bool {
        self.kinds
            .iter()
            .all(|&kind| kind == DecisionKind::Unrecorded as u8)
    }

    /// Returns the columns of a batch, which does not name the played actions.
    pub fn finish_batch(self) -> v1::Decisions {
        v1::Decisions {
            played: Vec::new(),
            ..self.finish()
        }
    }

    /// Returns the columns of a game.
    pub fn finish(self) -> v1::Decisions {
        v1::Decisions {
            kinds: self.kinds.into(),
            unvisited_counts: self.unvisited_counts,
            unvisited_actions: self.unvisited_actions,
            visited_priors: self.visited_priors.into(),
            unvisited_priors: self.unvisited_priors.into(),
            values: self.values.into(),
            evaluations: self.evaluations.into(),
            played: self.played,
        }
    }
}

fn put(number: f32, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&f16::from_f32(number).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns a game of two positions: one whose search visited two of four actions, and one without a search.
    fn game() -> Game {
        let mut recorder = Recorder::default();
        recorder.push(&DecisionEntry {
            kind: DecisionKind::Searched,
            visited: &[(0.5, 0.25), (0.125, -1.0)],
            unvisited: &[(7, 0.25), (2, 0.125)],
            evaluation: -0.5,
            played: 3,
        });
        assert!(!recorder.is_empty());
        recorder.push_unrecorded(1);
        Game {
            actions: vec![4, 5],
            visit_counts: vec![2, 1],
            decisions: Some(recorder.finish()),
            ..Game::default()
        }
    }

    #[test]
    fn a_view_shows_what_was_recorded() {
        let game = game();
        let found: Vec<_> = game.decision_columns().unwrap().unwrap().collect();
        let numbers = |halves: Halves<'_>| halves.iter().collect::<Vec<_>>();
        let first = &found[0];
        assert!(first.is_searched() && first.is_recorded());
        assert_eq!(numbers(first.visited_priors), [0.5, 0.125]);
        assert_eq!(numbers(first.values), [0.25, -1.0]);
        assert_eq!(first.unvisited, [7, 2]);
        assert_eq!(numbers(first.unvisited_priors), [0.25, 0.125]);
        assert_eq!((first.evaluation, first.played), (-0.5, Some(3)));
        let second = &found[1];
        assert!(!second.is_recorded() && !second.is_searched());
        assert_eq!(numbers(second.values), [0.0]);
        assert_eq!((second.unvisited, found.len()), (&[][..], 2));
        let mut copy = Recorder::default();
        assert!(copy.is_empty());
        for decision in &found {
            copy.copy(decision);
        }
        assert_eq!(Some(copy.finish()), game.decisions);
        assert!(Game::default().decision_columns().unwrap().is_none());
    }

    #[test]
    fn lengths_that_do_not_fit_name_the_column() {
        type Change = fn(&mut v1::Decisions);
        let changes: [(&str, Change); 8] = [
            ("kinds", |columns| columns.kinds = vec![1].into()),
            ("unvisited_counts", |columns| columns.unvisited_counts.push(0)),
            ("unvisited_actions", |columns| {
                columns.unvisited_counts[0] = u32::MAX
            }),
            ("visited_priors", |columns| {
                columns.visited_priors = vec![0; 5].into()
            }),
            ("unvisited_priors", |columns| {
                columns.unvisited_priors = vec![0; 6].into()
            }),
            ("values", |columns| columns.values = vec![0; 8].into()),
            ("evaluations", |columns| columns.evaluations = vec![0; 3].into()),
            ("played", |columns| columns.played.clear()),
        ];
        for (column, change) in changes {
            let mut game = game();
            change(game.decisions.as_mut().unwrap());
            let error = game.decision_columns().unwrap_err();
            assert_eq!(error.column, format!("decisions.{column}"));
        }
        let batch = |decisions| Batch {
            positions: 2,
            visit_counts: vec![2, 1],
            decisions,
            ..Batch::default()
        };
        let mut columns = game().decisions.unwrap();
        columns.played.clear();
        let drawn = batch(Some(columns));
        assert!(
            drawn
                .decision_columns()
                .unwrap()
                .all(|decision| decision.played.is_none())
        );
        assert_eq!(
            batch(None).decision_columns().unwrap_err().column,
            "decisions.kinds"
        );
    }

    proptest! {
        #[test]
        fn any_lengths_are_survived(
            counts in prop::collection::vec(any::<u32>(), 0..4),
            unvisited_counts in prop::collection::vec(any::<u32>(), 0..4),
            bytes in prop::collection::vec(any::<u8>(), 0..9),
        ) {
            let columns = v1::Decisions {
                kinds: vec![1; counts.len()].into(),
                unvisited_counts,
                unvisited_actions: vec![3; bytes.len()],
                visited_priors: bytes.clone().into(),
                unvisited_priors: bytes.clone().into(),
                values: bytes.clone().into(),
                evaluations: bytes.into(),
                played: Vec::new(),
            };
            if let Ok(view) = DecisionColumns::new(&columns, &counts) {
                prop_assert_eq!(view.count(), counts.len());
            }
        }
    }
}
