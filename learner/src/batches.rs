//! Training batches: checked and packed on the host where they arrive, then tensors on the device. Clans are expanded
//! while packing.
//!
//! Packing is plain Rust, so that it can run beside training in other threads. It is also where each sample is turned
//! by a random symmetry of its game (Silver et al., 2018): its row and its policy indices, drawn by the run's seed, the
//! batch's number and the sample's place, so that a batch that is drawn again is turned alike.

use games::{RowForm, RowLayout, RowSymmetries, Symmetry};
use proto::v1;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use tch::{Device, Tensor};

use crate::{
    clans::{Choices, ClanPacker, ClanSamples},
    torch::{TorchError, from_host},
};

/// A batch on the host, every number checked.
#[derive(Clone, Debug, PartialEq)]
pub struct HostBatch {
    /// Its number in the run's sequence of draws.
    pub number: u64,
    /// Samples in it.
    pub positions: usize,
    /// Rows back to back; every number is below 2^31.
    pub rows: Vec<u32>,
    /// Where each row ends.
    pub row_ends: Vec<usize>,
    /// The same as the network takes them, where rows hold clans.
    pub clans: Option<ClanSamples>,
    /// For each searched action of each sample its place: `sample · actions + policy index`, over clans
    /// `sample · width + place` ([`ClanSamples`]).
    pub policy_at: Vec<i64>,
    /// For each of these its share of the sample's visits.
    pub policy_share: Vec<f32>,
    /// Samples that have a policy target; the others train the value only.
    pub searched: usize,
    /// Mean entropy of the policy targets, in nats: the policy loss cannot fall below it.
    pub target_entropy: f64,
    /// What the values are trained towards, results mixed with root values: in [-1, 1], the view of the player to act; over
    /// clans discounted, in [0, 1].
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
    root_value_share: f32,
}

impl Packer {
    /// Packs batches of `layout`, each sample turned by one of `symmetries`, drawn by `seed`.
    pub fn new(layout: RowLayout, symmetries: RowSymmetries, seed: u64) -> Self {
        Self {
            layout,
            symmetries,
            seed: seed ^ SYMMETRY_DRAWS,
            root_value_share: 0.0,
        }
    }

    /// The same with this share (0 to 1) of the search's root value in the value targets; the rest is the final result. A position
    /// that was not searched has its result alone.
    #[must_use]
    pub fn with_root_values(self, share: f32) -> Self {
        Self {
            root_value_share: share,
            ..self
        }
    }

    /// Checks and packs a batch.
    ///
    /// # Errors
    /// [`BatchError`] naming the first thing wrong.
    pub fn pack(&self, batch: &v1::Batch) -> Result<HostBatch, BatchError> {
        let mut draw = ChaCha8Rng::seed_from_u64(self.seed);
        draw.set_stream(batch.number);
        pack(
            batch,
            &self.layout,
            &self.symmetries,
            self.root_value_share,
            |count| draw.random_range(0..count),
        )
    }
}

/// `draw` gives a number below its argument; it is asked once for each sample.
fn pack(
    batch: &v1::Batch,
    layout: &RowLayout,
    symmetries: &RowSymmetries,
    root_value_share: f32,
    mut draw: impl FnMut(u8) -> u8,
) -> Result<HostBatch, BatchError> {
    check_game(batch, layout)?;
    let positions = batch.positions as usize;
    let row_ends = row_ends(batch, layout)?;
    let targets: usize = batch.visit_counts.iter().map(|&count| count as usize).sum();
    let lengths = [
        (
            "rows",
            batch.rows.len(),
            row_ends.last().copied().unwrap_or_default(),
        ),
        ("visit_counts", batch.visit_counts.len(), positions),
        ("visit_actions", batch.visit_actions.len(), targets),
        ("visits", batch.visits.len(), targets),
        ("results", batch.results.len(), positions),
        ("root_values", batch.root_values.len(), positions),
    ];
    for (field, found, expected) in lengths {
        check_length(field, found, expected)?;
    }
    let mut packed = HostBatch {
        number: batch.number,
        positions,
        rows: Vec::with_capacity(batch.rows.len()),
        row_ends,
        clans: None,
        policy_at: Vec::with_capacity(targets),
        policy_share: Vec::with_capacity(targets),
        searched: 0,
        target_entropy: 0.0,
        results: Vec::with_capacity(positions),
        positions_inserted: batch.positions_inserted,
        inserted: batch.positions_inserted,
        window_positions: batch.window_positions,
    };
    let has_clans = matches!(layout.form, RowForm::Clan(_));
    let mut clans = has_clans.then(ClanPacker::default);
    let least = if has_clans { 0.0 } else { -1.0 };
    // For each policy target the sample that it belongs to.
    let mut samples = Vec::with_capacity(targets);
    let (mut visit_actions, mut visits) = (batch.visit_actions.as_slice(), batch.visits.as_slice());
    for sample in 0..positions {
        let fault = |reason: String| BatchError::Sample {
            sample,
            game: batch.game_sequences.get(sample).copied().unwrap_or_default(),
            ply: batch.plies.get(sample).copied().unwrap_or_default(),
            reason,
        };
        let row = &batch.rows[packed.rows.len()..packed.row_ends[sample]];
        layout.validate(row).map_err(|error| fault(error.to_string()))?;
        let symmetry = Symmetry(draw(symmetries.count(row)));
        let row = packed.push_row(row, symmetries, symmetry).map_err(fault)?;
        let choices = match &mut clans {
            Some(clans) => Some(clans.push(row).map_err(|error| fault(error.to_string()))?),
            None => None,
        };
        let count = batch.visit_counts[sample] as usize;
        let (these_actions, other_actions) = visit_actions.split_at(count);
        let (these_visits, other_visits) = visits.split_at(count);
        let place = |action| {
            let turned = symmetries.turn_action(symmetry, action);
            place(layout, choices.as_ref(), turned)
        };
        packed
            .push_policy(these_actions, these_visits, place)
            .map_err(fault)?;
        samples.resize(packed.policy_at.len(), sample);
        (visit_actions, visits) = (other_actions, other_visits);
        let (result, root_value) = (batch.results[sample], batch.root_values[sample]);
        for (what, value) in [("result", result), ("root value", root_value)] {
            if !(least..=1.0).contains(&value) {
                return Err(fault(format!(
                    "the {what} is {value}, it must be in [{least}, 1]"
                )));
            }
        }
        let share = if count > 0 { root_value_share } else { 0.0 };
        packed.results.push(result + share * (root_value - result));
    }
    packed.target_entropy /= packed.searched.max(1) as f64;
    packed.clans = clans.map(ClanPacker::finish);
    let width = packed
        .clans
        .as_ref()
        .map_or(layout.actions as usize, |clans| clans.width);
    for (at, sample) in packed.policy_at.iter_mut().zip(samples) {
        *at += (sample * width) as i64;
    }
    Ok(packed)
}

/// Where the rows of a batch end, by what the batch or the layout says of their lengths.
fn row_ends(batch: &v1::Batch, layout: &RowLayout) -> Result<Vec<usize>, BatchError> {
    let positions = batch.positions as usize;
    if let Some(row_len) = layout.row_len() {
        return Ok((1..=positions).map(|number| number * row_len).collect());
    }
    check_length("row_lengths", batch.row_lengths.len(), positions)?;
    let ends = batch.row_lengths.iter().scan(0_usize, |end, &length| {
        *end = end.saturating_add(length as usize);
        Some(*end)
    });
    Ok(ends.collect())
}

fn check_length(field: &'static str, found: usize, expected: usize) -> Result<(), BatchError> {
    if found == expected {
        return Ok(());
    }
    Err(BatchError::Length {
        field,
        found,
        expected,
    })
}

/// The place of an action among those that a sample's softmax is taken over.
fn place(layout: &RowLayout, choices: Option<&Choices>, action: u32) -> Result<usize, String> {
    match choices {
        None if action < layout.actions => Ok(action as usize),
        None => Err(format!("action {action} of {}", layout.actions)),
        Some(choices) => choices
            .place(action)
            .ok_or_else(|| format!("action {action} is no move of any of its imps")),
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

impl HostBatch {
    /// Adds a row, turned, and gives it.
    fn push_row(
        &mut self,
        row: &[u32],
        symmetries: &RowSymmetries,
        symmetry: Symmetry,
    ) -> Result<&[u32], String> {
        if let Some(value) = row.iter().find(|&&value| value > i32::MAX as u32) {
            return Err(format!("the row holds {value}"));
        }
        let start = self.rows.len();
        self.rows.extend_from_slice(row);
        let added = &mut self.rows[start..];
        symmetries.turn_row(symmetry, added);
        Ok(added)
    }

    fn push_policy(
        &mut self,
        actions: &[u32],
        visits: &[u32],
        place: impl Fn(u32) -> Result<usize, String>,
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
            let place = place(action)?;
            if visits == 0 {
                continue;
            }
            let share = f64::from(visits) / total as f64;
            self.policy_at.push(place as i64);
            self.policy_share.push(share as f32);
            self.target_entropy -= share * share.ln();
        }
        Ok(())
    }
}

/// What the outputs for a batch are compared with, on the training device.
#[derive(Debug)]
pub struct Targets {
    /// i64 `[targets]`: where the policy targets stand in the flattened `[batch · actions]` logits, or among the choices.
    pub policy_at: Tensor,
    /// f32 `[targets]`
    pub policy_share: Tensor,
    /// Samples with a policy target.
    pub searched: usize,
    /// f32 `[batch]`
    pub results: Tensor,
    /// What the softmaxes are taken over where a position's logits are no row of a matrix.
    pub choices: Option<ChoiceTensors>,
}

/// The choices of [`ClanSamples`] on the training device.
#[derive(Debug)]
pub struct ChoiceTensors {
    /// i64 `[choices]`: places in the flattened logits.
    pub logits: Tensor,
    /// i64 `[choices]`: places in `[batch · width]`.
    pub places: Tensor,
    /// Samples, and most choices of one.
    pub sides: [i64; 2],
}

impl Targets {
    /// Copies a batch's targets to the device.
    ///
    /// # Errors
    /// [`TorchError`], e.g. where the device has no memory.
    pub fn new(batch: &HostBatch, device: Device) -> Result<Self, TorchError> {
        let list = |numbers: &[i64]| from_host(numbers, &[numbers.len() as i64], device);
        let choices = match &batch.clans {
            None => None,
            Some(clans) => Some(ChoiceTensors {
                logits: list(&clans.logits)?,
                places: list(&clans.places)?,
                sides: [batch.positions as i64, clans.width as i64],
            }),
        };
        let share = [batch.policy_share.len() as i64];
        Ok(Self {
            policy_at: list(&batch.policy_at)?,
            policy_share: from_host(&batch.policy_share, &share, device)?,
            searched: batch.searched,
            results: from_host(&batch.results, &[batch.positions as i64], device)?,
            choices,
        })
    }
}
