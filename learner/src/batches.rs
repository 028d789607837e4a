//! Training batches: checked and packed on the host where they arrive, then tensors on the device.
//!
//! Packing is plain Rust, so that it can run beside training in other threads. It is also where each sample is turned
//! by a random symmetry of its game (Silver et al., 2018): its row and its policy indices, drawn by the run's seed, the
//! batch's number and the sample's place, so that a batch that is drawn again is turned alike.

use games::{RowLayout, RowSymmetries, Symmetry};
use proto::v1;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use tch::{Device, Tensor};

use crate::torch::{TorchError, from_host};

/// A batch on the host, every number checked.
#[derive(Clone, Debug, PartialEq)]
pub struct HostBatch {
    /// Its number in the run's sequence of draws.
    pub number: u64,
    /// Samples in it.
    pub positions: usize,
    /// Rows back to back, `[positions · row_len]`.
    pub rows: Vec<i32>,
    /// For each searched action of each sample: `sample · actions + policy index`.
    pub policy_at: Vec<i64>,
    /// For each of these its share of the sample's visits.
    pub policy_share: Vec<f32>,
    /// Samples that have a policy target; the others train the value only.
    pub searched: usize,
    /// Mean entropy of the policy targets, in nats: the policy loss cannot fall below it.
    pub target_entropy: f64,
    /// Final results, in [-1, 1], the view of the player to act.
    pub results: Vec<f32>,
    /// Positions ever inserted into the store when this was drawn, by the store's own count.
    pub positions_inserted: u64,
    /// Positions ever inserted, also into earlier stores of the run: what samples are counted against.
    pub inserted: u64,
    /// Positions in the store's window.
    pub window_positions: u64,
}

/// A batch that cannot be trained on.
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
    /// A field contradicts the others.
    #[error("{field} has {found} entries, {expected} expected")]
    Length {
        /// The field.
        field: &'static str,
        /// Entries there are.
        found: usize,
        /// Entries there must be.
        expected: usize,
    },
    /// A sample makes no sense.
    #[error("sample {sample} (game {game}, ply {ply}): {reason}")]
    Sample {
        /// Its place in the batch.
        sample: usize,
        /// The game's sequence number in the store.
        game: u64,
        /// The ply in the game.
        ply: u32,
        /// What is wrong.
        reason: String,
    },
}

/// Keeps the symmetries' draws apart from others by the same seed.
const SYMMETRY_DRAWS: u64 = 0x7379_6d6d_6574_7279;

/// Checks batches from the wire against the layout and packs them.
#[derive(Clone, Debug)]
pub struct Packer {
    layout: RowLayout,
    symmetries: RowSymmetries,
    seed: u64,
}

impl Packer {
    /// Packs batches of `layout`, each sample turned by one of `symmetries`, drawn by `seed`.
    pub fn new(layout: RowLayout, symmetries: RowSymmetries, seed: u64) -> Self {
        Self {
            layout,
            symmetries,
            seed: seed ^ SYMMETRY_DRAWS,
        }
    }

    /// Checks and packs a batch.
    ///
    /// # Errors
    /// [`BatchError`] naming the first thing wrong.
    pub fn pack(&self, batch: &v1::Batch) -> Result<HostBatch, BatchError> {
        let mut draw = ChaCha8Rng::seed_from_u64(self.seed);
        draw.set_stream(batch.number);
        pack(batch, &self.layout, &self.symmetries, |count| {
            draw.random_range(0..count)
        })
    }
}

/// `draw` gives a number below its argument; it is asked once for each sample.
fn pack(
    batch: &v1::Batch,
    layout: &RowLayout,
    symmetries: &RowSymmetries,
    mut draw: impl FnMut(u8) -> u8,
) -> Result<HostBatch, BatchError> {
    check_game(batch, layout)?;
    let positions = batch.positions as usize;
    let row_len = layout.row_len().ok_or_else(|| BatchError::Game {
        found: format!("rows of many lengths of {}", layout.game),
        expected: "rows of one length".into(),
    })?;
    let actions = layout.actions as usize;
    let targets: usize = batch.visit_counts.iter().map(|&count| count as usize).sum();
    let lengths = [
        ("rows", batch.rows.len(), positions * row_len),
        ("visit_counts", batch.visit_counts.len(), positions),
        ("visit_actions", batch.visit_actions.len(), targets),
        ("visits", batch.visits.len(), targets),
        ("results", batch.results.len(), positions),
    ];
    for (field, found, expected) in lengths {
        if found != expected {
            return Err(BatchError::Length {
                field,
                found,
                expected,
            });
        }
    }
    let mut packed = HostBatch {
        number: batch.number,
        positions,
        rows: Vec::with_capacity(batch.rows.len()),
        policy_at: Vec::with_capacity(targets),
        policy_share: Vec::with_capacity(targets),
        searched: 0,
        target_entropy: 0.0,
        results: Vec::with_capacity(positions),
        positions_inserted: batch.positions_inserted,
        inserted: batch.positions_inserted,
        window_positions: batch.window_positions,
    };
    let (mut visit_actions, mut visits) = (batch.visit_actions.as_slice(), batch.visits.as_slice());
    for sample in 0..positions {
        let fault = |reason: String| BatchError::Sample {
            sample,
            game: batch.game_sequences.get(sample).copied().unwrap_or_default(),
            ply: batch.plies.get(sample).copied().unwrap_or_default(),
            reason,
        };
        let row = &batch.rows[sample * row_len..][..row_len];
        layout.validate(row).map_err(|error| fault(error.to_string()))?;
        let symmetry = Symmetry(draw(symmetries.count(row)));
        packed.push_row(row, symmetries, symmetry).map_err(&fault)?;
        let count = batch.visit_counts[sample] as usize;
        let (these_actions, other_actions) = visit_actions.split_at(count);
        let (these_visits, other_visits) = visits.split_at(count);
        packed
            .push_policy(sample, actions, these_actions, these_visits, |action| {
                symmetries.turn_action(symmetry, action)
            })
            .map_err(fault)?;
        (visit_actions, visits) = (other_actions, other_visits);
        let result = batch.results[sample];
        if !(-1.0..=1.0).contains(&result) {
            return Err(fault(format!("the result is {result}, it must be in [-1, 1]")));
        }
        packed.results.push(result);
    }
    packed.target_entropy /= packed.searched.max(1) as f64;
    Ok(packed)
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

impl HostBatch {
    fn push_row(
        &mut self,
        row: &[u32],
        symmetries: &RowSymmetries,
        symmetry: Symmetry,
    ) -> Result<(), String> {
        let mut row = row.to_vec();
        symmetries.turn_row(symmetry, &mut row);
        for value in row {
            let value = i32::try_from(value).map_err(|_| format!("the row holds {value}"))?;
            self.rows.push(value);
        }
        Ok(())
    }

    fn push_policy(
        &mut self,
        sample: usize,
        all_actions: usize,
        actions: &[u32],
        visits: &[u32],
        turned: impl Fn(u32) -> u32,
    ) -> Result<(), String> {
        let total: u64 = visits.iter().copied().map(u64::from).sum();
        if actions.is_empty() {
            return Ok(());
        }
        if total == 0 {
            return Err("none of its actions was visited".into());
        }
        self.searched += 1;
        for (&action, &visits) in actions.iter().zip(visits) {
            if action as usize >= all_actions {
                return Err(format!("action {action} of {all_actions}"));
            }
            if visits == 0 {
                continue;
            }
            let share = f64::from(visits) / total as f64;
            self.policy_at
                .push((sample * all_actions + turned(action) as usize) as i64);
            self.policy_share.push(share as f32);
            self.target_entropy -= share * share.ln();
        }
        Ok(())
    }
}

/// A batch on the training device.
#[derive(Debug)]
pub struct DeviceBatch {
    /// i32 `[batch, row_len]`
    pub rows: Tensor,
    /// i64 `[targets]`: where the policy targets stand in the flattened `[batch · actions]` logits.
    pub policy_at: Tensor,
    /// f32 `[targets]`
    pub policy_share: Tensor,
    /// Samples with a policy target.
    pub searched: usize,
    /// f32 `[batch]`
    pub results: Tensor,
}

impl DeviceBatch {
    /// Copies a batch to the device.
    ///
    /// # Errors
    /// [`TorchError`], e.g. where the device has no memory.
    pub fn new(batch: &HostBatch, device: Device) -> Result<Self, TorchError> {
        let targets = [batch.policy_at.len() as i64];
        let positions = batch.positions as i64;
        Ok(Self {
            rows: from_host(&batch.rows, &[positions, -1], device)?,
            policy_at: from_host(&batch.policy_at, &targets, device)?,
            policy_share: from_host(&batch.policy_share, &targets, device)?,
            searched: batch.searched,
            results: from_host(&batch.results, &[positions], device)?,
        })
    }
}
