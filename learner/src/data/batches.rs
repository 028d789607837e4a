//! Training batches, checked and packed on the host. Clans are expanded while packing.
//!
//! Packing is plain Rust, so that it can run in other threads during training. It also applies a random symmetry of the game
//! (Silver et al., 2018) to each sample's row and policy indices. The symmetry is drawn from the run's seed, the batch's number
//! and the sample's index, so that a batch drawn again gets equal symmetries.

use games::{OtherSide, RowLayout, RowSymmetries};
use proto::{columns::ColumnError, targets::Target, v1};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::data::{clans::ClanSamples, packing::Packing, policies::Policies};

/// A checked batch in host memory.
#[derive(Clone, Debug, PartialEq)]
pub struct HostBatch {
    /// Number of the batch in the run's sequence of draws.
    pub number: u64,
    /// Number of samples.
    pub positions: usize,
    /// Concatenated rows; every number is below 2^31.
    pub rows: Vec<u32>,
    /// End of each row in `rows`.
    pub row_ends: Vec<usize>,
    /// The rows in the form of the network's input, if rows contain clans.
    pub clans: Option<ClanSamples>,
    /// Policy targets. Samples without a policy target train the value only.
    pub policy: Policies,
    /// Value targets, results mixed with root values: in [-1, 1], from the view of the player to act; over
    /// clans discounted, in [0, 1].
    pub results: Vec<f32>,
    /// Value targets as probabilities of win, draw and loss, for networks with such a head: `[positions, 3]`.
    pub outcomes: Option<Vec<f32>>,
    /// Targets of the network's auxiliary heads.
    pub auxiliary: Vec<(Target, HostTarget)>,
    /// Positions ever inserted into the store when this was drawn, by the store's own count.
    pub positions_inserted: u64,
    /// Positions ever inserted, also into earlier stores of the run: what samples are counted against.
    pub inserted: u64,
    /// Samples that were allowed and will not be drawn ([`crate::data::ledger`]).
    pub forgone: u64,
    /// Positions in the store's window.
    pub window_positions: u64,
}

/// A target of all samples of a batch.
#[derive(Clone, Debug, PartialEq)]
pub enum HostTarget {
    /// One number for each sample.
    Numbers(Vec<f32>),
    /// Sparse policies. Samples without one do not count in the loss.
    Policies(Policies),
}

/// Targets that the heads of a network are trained towards, beside policy and value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeadTargets {
    /// True if the value head predicts the probabilities of a win, a draw and a loss.
    pub outcomes: bool,
    /// Targets of the auxiliary heads.
    pub auxiliary: Vec<Target>,
}

impl HostBatch {
    /// Returns the target of an auxiliary head; `None` if the batch was packed without it.
    pub fn auxiliary(&self, target: Target) -> Option<&HostTarget> {
        let found = self.auxiliary.iter().find(|(found, _)| *found == target);
        found.map(|(_, column)| column)
    }
}

/// Error: a batch cannot be trained on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// The store holds games of another kind.
    #[error("the replay store holds {found}, this run trains {expected}")]
    Game {
        /// Game and options in the store.
        found: String,
        /// Game and options of the run.
        expected: String,
    },
    /// The packing thread ended.
    #[error("packing failed: {0}")]
    Packing(String),
    /// The lengths of the columns do not add up.
    #[error(transparent)]
    Length(#[from] ColumnError),
    /// A sample is invalid.
    #[error("sample {sample} (game {game}, ply {ply}): {reason}")]
    Sample {
        /// Index of the sample in the batch.
        sample: usize,
        /// The game's sequence number in the store.
        game: u64,
        /// The ply in the game.
        ply: u32,
        /// Reason of the error.
        reason: String,
    },
}

/// Added to the seed, so that symmetries are independent of other draws from it.
const SYMMETRY_DRAWS: u64 = 0x7379_6d6d_6574_7279;

/// Checks batches from the wire against the layout and packs them.
#[derive(Clone, Debug)]
pub struct Packer {
    pub(crate) layout: RowLayout,
    pub(crate) symmetries: RowSymmetries,
    seed: u64,
    pub(crate) root_value_share: f32,
    pub(crate) has_outcomes: bool,
    pub(crate) other_side: OtherSide,
    pub(crate) auxiliary: Vec<Target>,
}

impl Packer {
    /// Makes a packer of batches of `layout`. It applies one of `symmetries`, drawn by `seed`, to each sample.
    pub fn new(layout: RowLayout, symmetries: RowSymmetries, seed: u64) -> Self {
        Self {
            layout,
            symmetries,
            seed: seed ^ SYMMETRY_DRAWS,
            root_value_share: 0.0,
            has_outcomes: false,
            other_side: OtherSide::default(),
            auxiliary: Vec::new(),
        }
    }

    /// Sets the share (0 to 1) of the search's root value in the value targets; the rest is the final result. A
    /// position that was not searched has its result alone.
    #[must_use]
    pub fn with_root_values(self, share: f32) -> Self {
        Self {
            root_value_share: share,
            ..self
        }
    }

    /// Adds the targets of a network's heads. `other_side` is that of the rows' representation.
    #[must_use]
    pub fn with_targets(self, targets: HeadTargets, other_side: &OtherSide) -> Self {
        Self {
            has_outcomes: targets.outcomes,
            auxiliary: targets.auxiliary,
            other_side: other_side.clone(),
            ..self
        }
    }

    /// True if the fields of earlier releases (`SampleRequest.auxiliary`) contain a target that is needed. A store of an earlier release
    /// sends these; a newer one sends named columns.
    pub fn wants_auxiliary(&self) -> bool {
        !self.auxiliary.is_empty()
    }

    /// Names of the targets that a store is asked for.
    pub fn target_names(&self) -> Vec<String> {
        self.auxiliary
            .iter()
            .map(|target| target.name().to_owned())
            .collect()
    }

    /// Checks and packs a batch.
    ///
    /// # Errors
    /// [`BatchError`] naming the first thing wrong.
    pub fn pack(&self, batch: &v1::Batch) -> Result<HostBatch, BatchError> {
        check_game(batch, &self.layout)?;
        let mut draw = ChaCha8Rng::seed_from_u64(self.seed);
        draw.set_stream(batch.number);
        let positions = batch.positions as usize;
        let mut packing = Packing::new(self, batch)?;
        for sample in 0..positions {
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
