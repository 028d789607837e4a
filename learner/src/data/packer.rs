//! [`Packer`]: checks batches from the wire and packs them on the host.
//!
//! Packing is plain Rust, so that it can run in other threads during training. It also applies a random symmetry of the game
//! (Silver et al., 2018) to each sample's row and policy indices. The symmetry is drawn from the run's seed, the batch's number
//! and the sample's index, so that a batch drawn again gets equal symmetries.

use games::{OtherSide, RowLayout, RowSymmetries};
use proto::{targets::Target, v1};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use search::CompletedQ;

use crate::data::{
    batches::{BatchError, HeadTargets, HostBatch},
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
                value_horizon: 0.0,
                blunder_threshold: 0.0,
                root_value_share: 0.0,
                targets: HeadTargets::default(),
                other_side: OtherSide::default(),
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

    /// Sets the horizon, in turns, of the mixture of results with later root values; 0: results alone.
    #[must_use]
    pub fn with_value_horizon(mut self, turns: f32) -> Self {
        self.rules.value_horizon = turns;
        self
    }

    /// Sets the excess of the best action's value over the played one's, above which results are repaired; 0: they are not.
    #[must_use]
    pub fn with_blunder_threshold(mut self, threshold: f32) -> Self {
        self.rules.blunder_threshold = threshold;
        self
    }

    /// Returns the threshold by which the results of batches must be repaired; 0: they are not.
    pub fn blunder_threshold(&self) -> f32 {
        self.rules.blunder_threshold
    }

    /// True if batches must have the results of searches.
    pub fn wants_decisions(&self) -> bool {
        self.rules.completed_q.is_some()
    }

    /// Returns the horizon of the mixed values that batches must have; 0: none.
    pub fn value_horizon(&self) -> f32 {
        self.rules.value_horizon
    }

    /// Adds the targets of a network's heads. `other_side` is that of the rows' representation.
    #[must_use]
    pub fn with_targets(mut self, targets: HeadTargets, other_side: &OtherSide) -> Self {
        self.rules.targets = targets;
        self.rules.other_side = other_side.clone();
        self
    }

    /// True if the fields of earlier releases (`SampleRequest.auxiliary`) contain a target that is needed. A store of an earlier release
    /// sends these fields; a newer store sends named columns.
    pub fn wants_auxiliary(&self) -> bool {
        self.sent_targets().next().is_some()
    }

    /// Returns the names of the targets that a store is asked for.
    pub fn target_names(&self) -> Vec<String> {
        self.sent_targets()
            .map(|target| target.name().to_owned())
            .collect()
    }

    fn sent_targets(&self) -> impl Iterator<Item = Target> {
        let targets = self.rules.targets.auxiliary.iter().copied();
        targets.filter(|target| target.is_sent())
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
