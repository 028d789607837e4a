//! A batch of positions for a network, and the predictions for them.

use std::ops::Range;

use games::{Action, Game, MoverValue, Symmetry};
use proto::v1::EvaluateRequest;
use search::{Evaluation, LeafRequest};

/// A batch of positions: rows and policy indices of legal actions, back to back.
#[derive(Clone, Debug, Default)]
pub struct PositionBatch {
    rows: Vec<u32>,
    legal: Vec<u32>,
    /// Ends of each position's row and legal actions.
    ends: Vec<(usize, usize)>,
}

impl PositionBatch {
    /// Adds a leaf of a search, in the symmetry that the search has drawn for it.
    pub fn push<G: Game>(&mut self, leaf: &LeafRequest<'_, G>, encoding: G::Encoding) {
        self.push_position(leaf.state, leaf.symmetry, leaf.legal, encoding);
    }

    /// Adds a position in a symmetry. `legal` are its legal actions.
    pub fn push_position<G: Game>(
        &mut self,
        state: &G,
        symmetry: Symmetry,
        legal: &[Action],
        encoding: G::Encoding,
    ) {
        state.write_row(encoding, symmetry, &mut self.rows);
        let legal = legal.iter();
        self.legal
            .extend(legal.map(|&action| state.policy_index(encoding, symmetry, action)));
        self.ends.push((self.rows.len(), self.legal.len()));
    }

    /// Removes the last position.
    pub fn pop(&mut self) {
        self.ends.pop();
        let (rows, legal) = self.ends.last().copied().unwrap_or_default();
        self.rows.truncate(rows);
        self.legal.truncate(legal);
    }

    /// Removes everything and keeps the memory.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.legal.clear();
        self.ends.clear();
    }

    /// Returns the number of positions.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if the batch has no positions.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the row and legal policy indices of one position.
    pub fn get(&self, position: usize) -> (&[u32], &[u32]) {
        let start = position.checked_sub(1).map_or((0, 0), |before| self.ends[before]);
        let end = self.ends[position];
        (&self.rows[start.0..end.0], &self.legal[start.1..end.1])
    }

    /// Returns all legal policy indices back to back.
    pub fn legal(&self) -> &[u32] {
        &self.legal
    }

    /// Returns the wire request for the positions with these indices. The caller sets the id and the model. `row_len` is the number
    /// of values of every row, or `None` if rows differ in length; only then does the request carry row lengths.
    pub fn to_request(&self, positions: Range<usize>, row_len: Option<usize>) -> EvaluateRequest {
        let end_before = |position: usize| position.checked_sub(1).map_or((0, 0), |before| self.ends[before]);
        let (first, last) = (end_before(positions.start), end_before(positions.end));
        let lengths = |of: fn((usize, usize)) -> usize| -> Vec<u32> {
            positions
                .clone()
                .map(|position| (of(self.ends[position]) - of(end_before(position))) as u32)
                .collect()
        };
        EvaluateRequest {
            indices: self.rows[first.0..last.0].to_vec(),
            row_lengths: if row_len.is_none() {
                lengths(|end| end.0)
            } else {
                Vec::new()
            },
            legal_actions: self.legal[first.1..last.1].to_vec(),
            legal_counts: lengths(|end| end.1),
            ..EvaluateRequest::default()
        }
    }
}

/// Predictions of a network for a [`PositionBatch`], in the order of its positions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Predictions {
    /// Value of each position in [-1, 1], from the point of view of the player to act.
    pub values: Vec<f32>,
    /// Prior of each legal action of each position, back to back.
    pub priors: Vec<f32>,
}

impl Predictions {
    /// Removes everything and keeps the memory.
    pub fn clear(&mut self) {
        self.values.clear();
        self.priors.clear();
    }

    /// Rounds all priors to half precision, as an inference server sends them.
    pub fn round_priors(&mut self) {
        let packed = proto::priors::encode(&self.priors);
        let count = self.priors.len();
        self.priors.clear();
        // Priors that were just packed can be unpacked.
        let _ = proto::priors::decode(&packed, count, &mut self.priors);
    }

    /// Returns the prediction for one position of `batch`.
    pub fn get(&self, batch: &PositionBatch, position: usize) -> Evaluation<'_> {
        let start = position.checked_sub(1).map_or(0, |before| batch.ends[before].1);
        Evaluation {
            priors: &self.priors[start..batch.ends[position].1],
            value: MoverValue::new(self.values[position].clamp(-1.0, 1.0)),
        }
    }
}
