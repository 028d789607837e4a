//! Packs one batch: checks each sample, applies its symmetry and appends it to the arrays.

use games::{RowLayout, RowSymmetries, Symmetry, codec::Candidates};
use proto::{
    columns::{Ragged, SparsePolicies, check_length},
    decisions::{Decision, DecisionColumns},
    v1,
};
use search::CompletedQ;

use crate::data::{
    batches::{BatchError, HostBatch},
    completed_q,
    expanded::BatchExpander,
    outcomes,
    policies::Policies,
};

/// Amount by which rounding may move a value out of its range. The replay store accepts it too.
const VALUE_SLACK: f32 = 1e-3;

/// Settings of packing that are common to all batches of a run.
#[derive(Clone, Debug)]
pub(crate) struct PackingRules {
    /// Layout of the rows.
    pub(crate) layout: RowLayout,
    /// Symmetries of the rows, one of which is applied to each sample.
    pub(crate) symmetries: RowSymmetries,
    /// Computation of policy targets from the values of actions; `None`: targets are the visits.
    pub(crate) completed_q: Option<CompletedQ>,
    /// Share (0 to 1) of the search's root value in the value targets.
    pub(crate) root_value_share: f32,
    /// True if value targets are the probabilities of a win, a draw and a loss.
    pub(crate) has_outcomes: bool,
}

/// A batch that is being packed, sample by sample.
pub(crate) struct Packing<'a> {
    rules: &'a PackingRules,
    batch: &'a v1::Batch,
    packed: HostBatch,
    rows: Ragged<'a>,
    policy: SparsePolicies<'a>,
    /// Search results, if policy targets are computed from them.
    decisions: Option<DecisionColumns<'a>>,
    /// Places of the samples without a result that have not been reached yet.
    undecided: std::slice::Iter<'a, u32>,
    expander: BatchExpander,
    /// Sample of each entry of the policy targets.
    samples: Vec<usize>,
    /// Least value that a position can have.
    least: f32,
}

impl<'a> Packing<'a> {
    /// Checks the lengths of all columns and begins to pack.
    ///
    /// # Errors
    /// [`BatchError::Length`] if the lengths do not fit each other.
    pub(crate) fn new(rules: &'a PackingRules, batch: &'a v1::Batch) -> Result<Self, BatchError> {
        let layout = &rules.layout;
        let positions = batch.positions as usize;
        let rows = batch.row_columns(layout.row_len())?;
        let row_ends = rows.clone().scan(0, |end, row| {
            *end += row.len();
            Some(*end)
        });
        let policy = batch.policy_columns()?;
        check_length("results", batch.results.len(), positions)?;
        check_length("root_values", batch.root_values.len(), positions)?;
        let decisions = rules.completed_q.map(|_| batch.decision_columns()).transpose()?;
        let targets = policy.entries();
        Ok(Self {
            rules,
            batch,
            packed: HostBatch {
                number: batch.number,
                positions,
                pairs: 0,
                rows: Vec::with_capacity(batch.rows.len()),
                row_ends: row_ends.collect(),
                inputs: Vec::new(),
                candidates: None,
                policy: Policies::with_capacity(targets),
                results: Vec::with_capacity(positions),
                outcomes: rules.has_outcomes.then(|| Vec::with_capacity(3 * positions)),
                positions_inserted: batch.positions_inserted,
                inserted: batch.positions_inserted,
                forgone: 0,
                window_positions: batch.window_positions,
            },
            rows,
            policy,
            decisions,
            undecided: batch.undecided.iter(),
            expander: BatchExpander::new(layout),
            samples: Vec::with_capacity(targets),
            least: layout.codec().lowest_value(),
        })
    }

    /// Adds a sample. `draw` returns a random number below its argument.
    ///
    /// # Errors
    /// Reason why the sample is invalid.
    pub(crate) fn push(&mut self, sample: usize, draw: impl FnOnce(u8) -> u8) -> Result<(), String> {
        let PackingRules {
            layout, symmetries, ..
        } = self.rules;
        let packed = &mut self.packed;
        let row = self.rows.next().unwrap_or_default();
        layout.validate(row).map_err(|error| error.to_string())?;
        packed.pairs += u64::from(layout.codec().is_pair(row));
        let symmetry = Symmetry(draw(symmetries.count(row)));
        let row = push_row(&mut packed.rows, row, symmetries, symmetry)?;
        let candidates = self.expander.push(row).map_err(|error| error.to_string())?;
        let visited = self.policy.next().unwrap_or_default();
        let decision = self.decisions.as_mut().and_then(Iterator::next);
        let own_place = |action| {
            let turned = symmetries.turn_action(symmetry, action);
            place(layout, candidates.as_ref(), turned)
        };
        match (self.rules.completed_q, decision.filter(Decision::is_searched)) {
            (Some(rule), Some(decision)) if !visited.0.is_empty() => {
                let shares = completed_q::target(rule, visited.1, &decision)?;
                let actions = visited.0.iter().chain(decision.unvisited).copied();
                packed.policy.push_shares(actions.zip(shares), own_place)?;
            }
            _ => packed.policy.push(visited, own_place)?,
        }
        self.samples.resize(packed.policy.at.len(), sample);
        self.push_value(sample, !visited.0.is_empty())
    }

    fn push_value(&mut self, sample: usize, was_searched: bool) -> Result<(), String> {
        let least = self.least;
        let in_range = |what, value: f32| match (least - VALUE_SLACK..=1.0 + VALUE_SLACK).contains(&value) {
            true => Ok(value.clamp(least, 1.0)),
            false => Err(format!("the {what} is {value}, it must be in [{least}, 1]")),
        };
        let result = in_range("result", self.batch.results[sample])?;
        let root_value = in_range("root value", self.batch.root_values[sample])?;
        let is_undecided = self.undecided.as_slice().first() == Some(&(sample as u32));
        if is_undecided {
            self.undecided.next();
        }
        let share = if was_searched {
            self.rules.root_value_share
        } else {
            0.0
        };
        // A game without a result has its root value in place of the result.
        let outcomes = match is_undecided {
            true => Some(outcomes::of_value(result)),
            false => outcomes::of_result(result),
        };
        self.packed.results.push(result + share * (root_value - result));
        if let Some(targets) = &mut self.packed.outcomes {
            let outcomes = outcomes.ok_or_else(|| {
                format!(
                    "the result is {result}, which is no win, draw or loss: model.value_head must be \"scalar\" for such games"
                )
            })?;
            targets.extend(outcomes::mixed(outcomes, root_value, share));
        }
        Ok(())
    }

    /// Returns the batch, after the last sample was added.
    pub(crate) fn finish(self) -> HostBatch {
        let mut packed = self.packed;
        packed.policy.finish();
        (packed.inputs, packed.candidates) = self.expander.finish();
        let actions = self.rules.layout.actions as usize;
        let width = packed
            .candidates
            .as_ref()
            .map_or(actions, |candidates| candidates.width);
        for (at, sample) in packed.policy.at.iter_mut().zip(self.samples) {
            *at += (sample * width) as i64;
        }
        packed
    }
}

/// Appends the image of a row under a symmetry, and returns the image.
fn push_row<'a>(
    rows: &'a mut Vec<u32>,
    row: &[u32],
    symmetries: &RowSymmetries,
    symmetry: Symmetry,
) -> Result<&'a [u32], String> {
    if let Some(value) = row.iter().find(|&&value| value > i32::MAX as u32) {
        return Err(format!("the row contains {value}, which is above {}", i32::MAX));
    }
    let start = rows.len();
    rows.extend_from_slice(row);
    let added = &mut rows[start..];
    symmetries.turn_row(symmetry, added);
    Ok(added)
}

/// Returns the place of a policy entry among the entries over which the sample's softmax is taken.
fn place(layout: &RowLayout, candidates: Option<&Candidates>, entry: u32) -> Result<usize, String> {
    match candidates {
        None if entry < layout.actions => Ok(entry as usize),
        None => Err(format!("action {entry} of {}", layout.actions)),
        Some(candidates) => candidates
            .place(entry)
            .ok_or_else(|| format!("action {entry} is impossible in this position")),
    }
}
