//! Owners of the squares at the end of the game, and scores, as training targets (auxiliary targets of KataGo, Wu 2019, section 4.1).

use proto::{
    columns::{ColumnError, check_length},
    v1::Batch,
};

/// Targets of the samples whose games have a territory.
#[derive(Clone, Debug, PartialEq)]
pub struct Territories {
    /// Number of squares of the board.
    pub squares: usize,
    /// Places of the samples in the batch, ascending.
    pub samples: Vec<i64>,
    /// Share of the player to act in each square: 1 if that player owns it, 0 if the other does, 0.5 if nobody does;
    /// `[samples, squares]`.
    pub owners: Vec<f32>,
    /// Points of the player to act less those of the other, divided by the number of squares and cut off at -1 and 1.
    pub scores: Vec<f32>,
}

/// Owners of the squares, one signed byte each, and the score in points, both for the player to act.
pub(super) type Territory<'a> = (&'a [u8], f32);

impl Territories {
    pub(super) const fn new(squares: usize) -> Self {
        Self {
            squares,
            samples: Vec::new(),
            owners: Vec::new(),
            scores: Vec::new(),
        }
    }

    /// Adds the targets of the sample with this place in the batch. `turn` returns the image of a square in the sample's symmetry.
    ///
    /// # Errors
    /// Reason why the territory is invalid.
    pub(super) fn push(
        &mut self,
        sample: usize,
        (owners, score): Territory<'_>,
        turn: impl Fn(u32) -> u32,
    ) -> Result<(), String> {
        if !score.is_finite() {
            return Err(format!("the score of the territory is {score}"));
        }
        let start = self.owners.len();
        self.owners.resize(start + self.squares, 0.0);
        for (square, owner) in (0..).zip(owners) {
            let owner = owner.cast_signed();
            if !(-1..=1).contains(&owner) {
                return Err(format!("the owner of square {square} is {owner}, not -1, 0 or 1"));
            }
            if let Some(share) = self.owners.get_mut(start + turn(square) as usize) {
                *share = (1.0 + f32::from(owner)) / 2.0;
            }
        }
        self.samples.push(sample as i64);
        self.scores.push((score / self.squares as f32).clamp(-1.0, 1.0));
        Ok(())
    }
}

/// The territories of a batch from the wire.
pub(super) struct TerritoryColumns<'a> {
    squares: usize,
    /// Places of the samples with a territory that have not been reached yet.
    samples: &'a [u32],
    owners: &'a [u8],
    scores: &'a [f32],
}

impl<'a> TerritoryColumns<'a> {
    /// Makes a view of a batch's columns, for a board of this many squares.
    ///
    /// # Errors
    /// [`ColumnError`] if the lengths do not fit each other.
    pub fn new(batch: &'a Batch, squares: usize) -> Result<Self, ColumnError> {
        let samples = &batch.territory_positions;
        check_length("territories", batch.territories.len(), samples.len() * squares)?;
        check_length("territory_scores", batch.territory_scores.len(), samples.len())?;
        Ok(Self {
            squares,
            samples,
            owners: &batch.territories,
            scores: &batch.territory_scores,
        })
    }

    /// Returns the territory of the sample with this number, the number after that of the last call.
    pub fn next(&mut self, sample: usize) -> Option<Territory<'a>> {
        let (&place, samples) = self.samples.split_first()?;
        if place != sample as u32 {
            return None;
        }
        let (owners, others) = self.owners.split_at_checked(self.squares)?;
        let (&score, scores) = self.scores.split_first()?;
        (self.samples, self.owners, self.scores) = (samples, others, scores);
        Some((owners, score))
    }
}
