//! Positions on their way to a network, and what it says about them.

use games::{Game, MoverValue};
use search::{Evaluation, LeafRequest};

/// Positions: rows and the policy indices of legal actions, back to back.
#[derive(Clone, Debug, Default)]
pub struct PositionBatch {
    rows: Vec<u32>,
    legal: Vec<u32>,
    /// Where each position's row and legal actions end.
    ends: Vec<(usize, usize)>,
}

impl PositionBatch {
    /// Adds a leaf, in its symmetry.
    pub fn push<G: Game>(&mut self, leaf: &LeafRequest<'_, G>, encoding: G::Encoding) {
        leaf.state.write_row(encoding, leaf.symmetry, &mut self.rows);
        let legal = leaf.legal.iter();
        self.legal
            .extend(legal.map(|&action| leaf.state.policy_index(encoding, leaf.symmetry, action)));
        self.ends.push((self.rows.len(), self.legal.len()));
    }

    /// Takes the last one out again.
    pub fn pop(&mut self) {
        self.ends.pop();
        let (rows, legal) = self.ends.last().copied().unwrap_or_default();
        self.rows.truncate(rows);
        self.legal.truncate(legal);
    }

    /// Empties it; the memory is kept.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.legal.clear();
        self.ends.clear();
    }

    /// Number of positions.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The row and the legal policy indices of one position.
    pub fn get(&self, position: usize) -> (&[u32], &[u32]) {
        let start = position.checked_sub(1).map_or((0, 0), |before| self.ends[before]);
        let end = self.ends[position];
        (&self.rows[start.0..end.0], &self.legal[start.1..end.1])
    }

    /// All rows back to back.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// All legal policy indices back to back.
    pub fn legal(&self) -> &[u32] {
        &self.legal
    }

    /// Row and legal policy indices of every position.
    pub fn iter(&self) -> impl Iterator<Item = (&[u32], &[u32])> {
        (0..self.len()).map(|position| self.get(position))
    }
}

/// What a network says about [`PositionBatch`], in their order.
#[derive(Clone, Debug, Default)]
pub struct Predictions {
    /// One value for each position, in [-1, 1], as the player to act sees it.
    pub values: Vec<f32>,
    /// One prior for each legal action of each position, back to back.
    pub priors: Vec<f32>,
}

impl Predictions {
    /// Empties it; the memory is kept.
    pub fn clear(&mut self) {
        self.values.clear();
        self.priors.clear();
    }

    /// What was said about one of the batch.
    pub fn get(&self, batch: &PositionBatch, position: usize) -> Evaluation<'_> {
        let start = position.checked_sub(1).map_or(0, |before| batch.ends[before].1);
        Evaluation {
            priors: &self.priors[start..batch.ends[position].1],
            value: MoverValue::new(self.values[position].clamp(-1.0, 1.0)),
        }
    }
}
