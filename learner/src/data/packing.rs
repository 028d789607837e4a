//! Packing one batch: each sample checked, turned and put beside the others.
//!
//! The other player's reply comes as that player saw it. It is put onto the board as the sample's row shows it
//! ([`games::OtherSide`]), and turned as that is: so convolutions over this board find it where it happens.

use std::borrow::Cow;

use games::{RowForm, RowLayout, RowSymmetries, Symmetry};
use proto::{
    columns::{ColumnError, Ragged, SparsePolicies, check_length},
    targets::{Shape, Target},
    v1,
};

use crate::data::{
    batches::{BatchError, HostBatch, HostTarget, Packer},
    clans::{Choices, ClanPacker},
    outcomes,
    policies::Policies,
};

/// A batch that is being packed, sample by sample.
pub(crate) struct Packing<'a> {
    by: &'a Packer,
    batch: &'a v1::Batch,
    packed: HostBatch,
    rows: Ragged<'a>,
    policy: SparsePolicies<'a>,
    /// Parallel to the batch's auxiliary targets.
    auxiliary: Vec<WireTarget<'a>>,
    clans: Option<ClanPacker>,
    /// For each policy target the sample that it belongs to.
    samples: Vec<usize>,
    /// The least value that a position can have.
    least: f32,
}

/// A target of a batch as it came over the wire.
enum WireTarget<'a> {
    Numbers(Cow<'a, [f32]>),
    Policies(SparsePolicies<'a>),
}

impl<'a> WireTarget<'a> {
    fn new(batch: &'a v1::Batch, target: Target) -> Result<Self, ColumnError> {
        Ok(match target.shape() {
            Shape::Number => Self::Numbers(batch.number_target(target)?),
            Shape::OpponentPolicy => Self::Policies(batch.policy_target(target)?),
        })
    }

    /// Returns an empty target with room for all samples.
    fn room(&self) -> HostTarget {
        match self {
            Self::Numbers(numbers) => HostTarget::Numbers(Vec::with_capacity(numbers.len())),
            Self::Policies(policies) => HostTarget::Policies(Policies::with_capacity(policies.entries())),
        }
    }
}

impl<'a> Packing<'a> {
    /// Begins with checking all lengths.
    ///
    /// # Errors
    /// [`BatchError::Length`].
    pub(crate) fn new(by: &'a Packer, batch: &'a v1::Batch) -> Result<Self, BatchError> {
        let positions = batch.positions as usize;
        let rows = batch.row_columns(by.layout.row_len())?;
        let row_ends = rows.clone().scan(0, |end, row| {
            *end += row.len();
            Some(*end)
        });
        let policy = batch.policy_columns()?;
        check_length("results", batch.results.len(), positions)?;
        check_length("root_values", batch.root_values.len(), positions)?;
        let auxiliary = by
            .auxiliary
            .iter()
            .map(|&target| WireTarget::new(batch, target))
            .collect::<Result<Vec<_>, ColumnError>>()?;
        let has_clans = matches!(by.layout.form, RowForm::Clan(_));
        let targets = policy.entries();
        Ok(Self {
            by,
            batch,
            packed: HostBatch {
                number: batch.number,
                positions,
                rows: Vec::with_capacity(batch.rows.len()),
                row_ends: row_ends.collect(),
                clans: None,
                policy: Policies::with_capacity(targets),
                results: Vec::with_capacity(positions),
                outcomes: by.has_outcomes.then(|| Vec::with_capacity(3 * positions)),
                auxiliary: by
                    .auxiliary
                    .iter()
                    .copied()
                    .zip(auxiliary.iter().map(WireTarget::room))
                    .collect(),
                positions_inserted: batch.positions_inserted,
                inserted: batch.positions_inserted,
                forgone: 0,
                window_positions: batch.window_positions,
            },
            rows,
            policy,
            auxiliary,
            clans: has_clans.then(ClanPacker::default),
            samples: Vec::with_capacity(targets),
            least: if has_clans { 0.0 } else { -1.0 },
        })
    }

    /// Adds a sample. `draw` gives a number below its argument; it is asked once.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn push(&mut self, sample: usize, draw: impl FnOnce(u8) -> u8) -> Result<(), String> {
        let Packer {
            layout, symmetries, ..
        } = self.by;
        let packed = &mut self.packed;
        let row = self.rows.next().unwrap_or_default();
        layout.validate(row).map_err(|error| error.to_string())?;
        let symmetry = Symmetry(draw(symmetries.count(row)));
        let row = push_row(&mut packed.rows, row, symmetries, symmetry)?;
        let choices = match &mut self.clans {
            Some(clans) => Some(clans.push(row).map_err(|error| error.to_string())?),
            None => None,
        };
        let visited = self.policy.next().unwrap_or_default();
        packed.policy.push(visited, |action| {
            let turned = symmetries.turn_action(symmetry, action);
            place(layout, choices.as_ref(), turned)
        })?;
        self.samples.resize(packed.policy.at.len(), sample);
        let first = sample * layout.actions as usize;
        let place = |action| {
            let turned = symmetries.turn_action(symmetry, self.by.other_side.entry(action));
            place(layout, None, turned).map(|place| first + place)
        };
        for ((target, packed), column) in packed.auxiliary.iter_mut().zip(&mut self.auxiliary) {
            match (packed, column) {
                (HostTarget::Numbers(packed), WireTarget::Numbers(numbers)) => {
                    packed.extend(numbers.get(sample));
                }
                (HostTarget::Policies(packed), WireTarget::Policies(policies)) => packed
                    .push(policies.next().unwrap_or_default(), place)
                    .map_err(|reason| format!("{}: {reason}", target.name()))?,
                // The columns were made from one list of targets.
                (HostTarget::Numbers(_), WireTarget::Policies(_))
                | (HostTarget::Policies(_), WireTarget::Numbers(_)) => {}
            }
        }
        self.push_value(sample, !visited.0.is_empty())
    }

    fn push_value(&mut self, sample: usize, was_searched: bool) -> Result<(), String> {
        let least = self.least;
        let (result, root_value) = (self.batch.results[sample], self.batch.root_values[sample]);
        for (what, value) in [("result", result), ("root value", root_value)] {
            if !(least..=1.0).contains(&value) {
                return Err(format!("the {what} is {value}, it must be in [{least}, 1]"));
            }
        }
        let share = if was_searched {
            self.by.root_value_share
        } else {
            0.0
        };
        self.packed.results.push(result + share * (root_value - result));
        if let Some(targets) = &mut self.packed.outcomes {
            let target = outcomes::mixed(result, root_value, share).ok_or_else(|| {
                format!(
                    "the result is {result}, which is no win, draw or loss: model.value_head must be \"scalar\" for such games"
                )
            })?;
            targets.extend(target);
        }
        Ok(())
    }

    /// All samples are in.
    pub(crate) fn finish(self) -> HostBatch {
        let mut packed = self.packed;
        packed.policy.finish();
        for (_, target) in &mut packed.auxiliary {
            if let HostTarget::Policies(policies) = target {
                policies.finish();
            }
        }
        packed.clans = self.clans.map(ClanPacker::finish);
        let width = packed
            .clans
            .as_ref()
            .map_or(self.by.layout.actions as usize, |clans| clans.width);
        for (at, sample) in packed.policy.at.iter_mut().zip(self.samples) {
            *at += (sample * width) as i64;
        }
        packed
    }
}

/// Adds a row, turned, and gives it.
fn push_row<'a>(
    rows: &'a mut Vec<u32>,
    row: &[u32],
    symmetries: &RowSymmetries,
    symmetry: Symmetry,
) -> Result<&'a [u32], String> {
    if let Some(value) = row.iter().find(|&&value| value > i32::MAX as u32) {
        return Err(format!("the row holds {value}"));
    }
    let start = rows.len();
    rows.extend_from_slice(row);
    let added = &mut rows[start..];
    symmetries.turn_row(symmetry, added);
    Ok(added)
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
