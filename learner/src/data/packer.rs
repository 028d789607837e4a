//! [`Packer`]: checks batches from the wire and packs them on the host.
//!
//! Packing is plain Rust, so that it can run in other threads during training. It also applies a random symmetry of the game
//! (Silver et al., 2018) to each sample's row and policy indices. The symmetry is drawn from the run's seed, the batch's number
//! and the sample's index, so that a batch drawn again gets equal symmetries.

use games::{RowLayout, RowSymmetries};
use proto::v1;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use search::CompletedQ;

use crate::data::{
    batches::{BatchError, HostBatch},
    packing::{Packing, PackingRules},
    selection,
};

/// Mask that is combined with the seed, so that symmetries are independent of other draws from it.
const SYMMETRY_DRAWS: u64 = 0x7379_6d6d_6574_7279;

/// Checks batches from the wire against the layout and packs them.
#[derive(Clone, Debug)]
pub struct Packer {
    rules: PackingRules,
    seed: u64,
}

impl Packer {
    /// Makes a packer of batches of `layout`. It applies one of `symmetries`, drawn by `seed`, to each sample.
    pub fn new(layout: RowLayout, symmetries: RowSymmetries, seed: u64) -> Self {
        Self {
            rules: PackingRules {
                layout,
                symmetries,
                completed_q: None,
                root_value_share: 0.0,
                has_outcomes: false,
            },
            seed: seed ^ SYMMETRY_DRAWS,
        }
    }

    /// Sets the share (0 to 1) of the search's root value in the value targets; the rest is the final result. A
    /// position that was not searched has its result alone.
    #[must_use]
    pub fn with_root_values(mut self, share: f32) -> Self {
        self.rules.root_value_share = share;
        self
    }

    /// Computes policy targets from the values of actions instead of their visits, where a search is recorded with them. With `None`,
    /// and in other positions, targets are the visits.
    #[must_use]
    pub fn with_completed_q(mut self, completed_q: Option<CompletedQ>) -> Self {
        self.rules.completed_q = completed_q;
        self
    }

    /// True if batches must have the results of searches.
    pub fn wants_decisions(&self) -> bool {
        self.rules.completed_q.is_some()
    }

    /// Sets whether value targets are the probabilities of a win, a draw and a loss.
    #[must_use]
    pub fn with_outcomes(mut self, has_outcomes: bool) -> Self {
        self.rules.has_outcomes = has_outcomes;
        self
    }

    /// Checks and packs a batch, and leaves out invalid samples. Returns the packed batch and the error of each invalid sample.
    ///
    /// # Errors
    /// [`BatchError`] if no sample is valid, or the batch as a whole is invalid.
    pub fn pack_valid(&self, batch: &v1::Batch) -> Result<(HostBatch, Vec<BatchError>), BatchError> {
        let error = match self.pack(batch) {
            Ok(packed) => return Ok((packed, Vec::new())),
            Err(error @ BatchError::Sample { .. }) => error,
            Err(error) => return Err(error),
        };
        let mut valid = Vec::with_capacity(batch.positions as usize);
        let mut errors = Vec::new();
        for sample in 0..batch.positions as usize {
            match self.pack(&selection::select(batch, &[sample])) {
                Ok(_) => valid.push(sample),
                Err(error) => errors.push(error),
            }
        }
        if valid.is_empty() {
            return Err(error);
        }
        let packed = self.pack(&selection::select(batch, &valid))?;
        Ok((packed, errors))
    }

    /// Checks and packs a batch.
    ///
    /// # Errors
    /// [`BatchError`] with the first error found.
    pub fn pack(&self, batch: &v1::Batch) -> Result<HostBatch, BatchError> {
        check_game(batch, &self.rules.layout)?;
        let mut draw = ChaCha8Rng::seed_from_u64(self.seed);
        draw.set_stream(batch.number);
        let mut packing = Packing::new(&self.rules, batch)?;
        for sample in 0..batch.positions as usize {
            packing
                .push(sample, |count| draw.random_range(0..count))
                .map_err(|reason| BatchError::Sample {
                    sample,
                    game: batch.game_sequences.get(sample).copied().unwrap_or_default(),
                    ply: batch.plies.get(sample).copied().unwrap_or_default(),
                    reason,
                })?;
        }
        Ok(packing.finish())
    }
}

fn check_game(batch: &v1::Batch, layout: &RowLayout) -> Result<(), BatchError> {
    if batch.game == layout.game && batch.options == layout.options {
        return Ok(());
    }
    Err(BatchError::Game {
        found: format!("{} with options {}", batch.game, batch.options),
        expected: format!("{} with options {}", layout.game, layout.options),
    })
}
