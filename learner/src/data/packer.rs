//! [`Packer`]: checks batches from the wire and packs them on the host.
//!
//! Packing is plain Rust, so that it can run in other threads during training. It also applies a random symmetry of the game
//! (Silver et al., 2018) to each sample's row and policy indices. The symmetry is drawn from the run's seed, the batch's number
//! and the sample's index, so that a batch drawn again gets equal symmetries.

use games::{PlaneStack, RowLayout, RowSymmetries, Symmetry, codec::Candidates};
use proto::{
    columns::{Ragged, SparsePolicies, check_length},
    decisions::{Decision, DecisionColumns},
    v1,
};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use search::CompletedQ;

use crate::data::{
    batches::{BatchError, HostBatch},
    expanded::BatchExpander,
    outcomes,
    policies::{self, Policies},
    territories::{Territories, Territory, TerritoryColumns},
};

/// Amount by which rounding may move a value out of its range. The replay store accepts it too.
const VALUE_SLACK: f32 = 1e-3;

/// Mask that is combined with the seed, so that symmetries are independent of other draws from it.
const SYMMETRY_DRAWS: u64 = 0x7379_6d6d_6574_7279;

/// Checks batches from the wire against the layout and packs them.
#[derive(Clone, Debug)]
pub struct Packer {
    /// Layout of the rows.
    pub layout: RowLayout,
    /// Symmetries of the rows, one of which, drawn by `seed`, is applied to each sample.
    pub symmetries: RowSymmetries,
    /// The run's seed.
    pub seed: u64,
    /// Computation of policy targets from the values of actions, where a search is recorded with them. With `None`, and in other
    /// positions, targets are the visits.
    pub completed_q: Option<CompletedQ>,
    /// Share (0 to 1) of the search's root value in the value targets; the rest is the final result. A position that was not searched
    /// has its result alone.
    pub root_value_share: f32,
    /// True if value targets are the probabilities of a win, a draw and a loss.
    pub has_outcomes: bool,
    /// True if there are targets for the owners of the squares and for the score.
    pub has_territory: bool,
}

impl Packer {
    /// Makes a packer whose targets are visits and final results.
    pub fn new(layout: RowLayout, symmetries: RowSymmetries, seed: u64) -> Self {
        Self {
            layout,
            symmetries,
            seed,
            completed_q: None,
            root_value_share: 0.0,
            has_outcomes: false,
            has_territory: false,
        }
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
        let alone = |sample| self.pack_only(batch, |other| other == sample).err();
        let errors: Vec<Option<BatchError>> = (0..batch.positions as usize).map(alone).collect();
        if errors.iter().all(Option::is_some) {
            return Err(error);
        }
        let packed = self.pack_only(batch, |sample| errors[sample].is_none())?;
        Ok((packed, errors.into_iter().flatten().collect()))
    }

    /// Checks and packs a batch.
    ///
    /// # Errors
    /// [`BatchError`] with the first error found.
    pub fn pack(&self, batch: &v1::Batch) -> Result<HostBatch, BatchError> {
        self.pack_only(batch, |_| true)
    }

    /// Checks and packs those samples of a batch for which `is_wanted` returns true.
    fn pack_only(
        &self,
        batch: &v1::Batch,
        is_wanted: impl Fn(usize) -> bool,
    ) -> Result<HostBatch, BatchError> {
        check_game(batch, &self.layout)?;
        let mut draw = ChaCha8Rng::seed_from_u64(self.seed ^ SYMMETRY_DRAWS);
        draw.set_stream(batch.number);
        let mut packing = Packing::new(self, batch)?;
        for sample in 0..batch.positions as usize {
            let columns = packing.next(sample);
            if !is_wanted(sample) {
                continue;
            }
            packing
                .push(columns, |count| draw.random_range(0..count))
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

/// A batch that is being packed, sample by sample.
struct Packing<'a> {
    rules: &'a Packer,
    batch: &'a v1::Batch,
    packed: HostBatch,
    rows: Ragged<'a>,
    policy: SparsePolicies<'a>,
    /// Search results, if policy targets are computed from them.
    decisions: Option<DecisionColumns<'a>>,
    /// Territories of the games, if there are targets for them.
    territories: Option<TerritoryColumns<'a>>,
    /// Places of the samples without a result that have not been reached yet.
    undecided: std::slice::Iter<'a, u32>,
    expander: BatchExpander,
    /// Place, among the packed samples, of the sample of each entry of the policy targets.
    samples: Vec<usize>,
    /// Least value that a position can have.
    least: f32,
}

/// The columns of one sample.
struct Sample<'a> {
    row: &'a [u32],
    /// Visited actions and their visits.
    visited: (&'a [u32], &'a [u32]),
    decision: Option<Decision<'a>>,
    result: f32,
    root_value: f32,
    is_undecided: bool,
    territory: Option<Territory<'a>>,
}

impl<'a> Packing<'a> {
    /// Checks the lengths of all columns and begins to pack.
    ///
    /// # Errors
    /// [`BatchError::Length`] if the lengths do not fit each other.
    fn new(rules: &'a Packer, batch: &'a v1::Batch) -> Result<Self, BatchError> {
        let layout = &rules.layout;
        let positions = batch.positions as usize;
        let rows = batch.row_columns(layout.row_len())?;
        let policy = batch.policy_columns()?;
        check_length("results", batch.results.len(), positions)?;
        check_length("root_values", batch.root_values.len(), positions)?;
        let decisions = rules.completed_q.map(|_| batch.decision_columns()).transpose()?;
        let squares = layout.stack().map_or(0, PlaneStack::squares);
        let territories = rules
            .has_territory
            .then(|| TerritoryColumns::new(batch, squares))
            .transpose()?;
        let targets = policy.entries();
        Ok(Self {
            rules,
            batch,
            packed: HostBatch {
                number: batch.number,
                positions: 0,
                pairs: 0,
                rows: Vec::with_capacity(batch.rows.len()),
                row_ends: Vec::with_capacity(positions),
                inputs: Vec::new(),
                candidates: None,
                policy: Policies::with_capacity(targets),
                results: Vec::with_capacity(positions),
                outcomes: rules.has_outcomes.then(|| Vec::with_capacity(3 * positions)),
                territories: rules.has_territory.then(|| Territories::new(squares)),
                positions_inserted: batch.positions_inserted,
                inserted: batch.positions_inserted,
                forgone: 0,
                window_positions: batch.window_positions,
            },
            rows,
            policy,
            decisions,
            territories,
            undecided: batch.undecided.iter(),
            expander: BatchExpander::new(layout),
            samples: Vec::with_capacity(targets),
            least: layout.codec().lowest_value(),
        })
    }

    /// Returns the columns of the next sample, which has this number.
    fn next(&mut self, sample: usize) -> Sample<'a> {
        let is_undecided = self.undecided.as_slice().first() == Some(&(sample as u32));
        if is_undecided {
            self.undecided.next();
        }
        Sample {
            row: self.rows.next().unwrap_or_default(),
            visited: self.policy.next().unwrap_or_default(),
            decision: self.decisions.as_mut().and_then(Iterator::next),
            result: self.batch.results[sample],
            root_value: self.batch.root_values[sample],
            is_undecided,
            territory: self.territories.as_mut().and_then(|columns| columns.next(sample)),
        }
    }

    /// Adds a sample. `draw` returns a random number below its argument.
    ///
    /// # Errors
    /// Reason why the sample is invalid.
    fn push(&mut self, sample: Sample<'a>, draw: impl FnOnce(u8) -> u8) -> Result<(), String> {
        let Packer {
            layout, symmetries, ..
        } = self.rules;
        let packed = &mut self.packed;
        layout.validate(sample.row).map_err(|error| error.to_string())?;
        packed.pairs += u64::from(layout.codec().is_pair(sample.row));
        let symmetry = Symmetry(draw(symmetries.count(sample.row)));
        let row = push_row(&mut packed.rows, sample.row, symmetries, symmetry)?;
        let candidates = self.expander.push(row).map_err(|error| error.to_string())?;
        packed.row_ends.push(packed.rows.len());
        let own_place = |action| {
            let turned = symmetries.turn_action(symmetry, action);
            place(layout, candidates.as_ref(), turned)
        };
        let (actions, visits) = sample.visited;
        match (
            self.rules.completed_q,
            sample.decision.filter(Decision::is_searched),
        ) {
            (Some(rule), Some(decision)) if !actions.is_empty() => {
                let shares = policies::completed_q(rule, visits, &decision)?;
                let actions = actions.iter().chain(decision.unvisited).copied();
                packed.policy.push_shares(actions.zip(shares), own_place)?;
            }
            _ => packed.policy.push(sample.visited, own_place)?,
        }
        if let (Some(targets), Some(territory)) = (&mut packed.territories, sample.territory) {
            targets.push(packed.positions, territory, |square| {
                symmetries.turn_square(symmetry, square)
            })?;
        }
        self.samples.resize(packed.policy.at.len(), packed.positions);
        packed.positions += 1;
        self.push_value(&sample)
    }

    fn push_value(&mut self, sample: &Sample<'_>) -> Result<(), String> {
        let least = self.least;
        let in_range = |what, value: f32| match (least - VALUE_SLACK..=1.0 + VALUE_SLACK).contains(&value) {
            true => Ok(value.clamp(least, 1.0)),
            false => Err(format!("the {what} is {value}, it must be in [{least}, 1]")),
        };
        let result = in_range("result", sample.result)?;
        let root_value = in_range("root value", sample.root_value)?;
        let was_searched = !sample.visited.0.is_empty();
        let share = if was_searched {
            self.rules.root_value_share
        } else {
            0.0
        };
        // A game without a result has its root value in place of the result.
        let outcomes = match sample.is_undecided {
            true => Some(outcomes::of_value(result)),
            false => outcomes::of_result(result),
        };
        self.packed.results.push(result + share * (root_value - result));
        if let Some(targets) = &mut self.packed.outcomes {
            let outcomes = outcomes.ok_or_else(|| {
                format!(
                    "the result is {result}, which is not a win, a draw or a loss: model.value_head must be \"scalar\" for such games"
                )
            })?;
            targets.extend(outcomes::mixed(outcomes, root_value, share));
        }
        Ok(())
    }

    /// Returns the batch, after the last sample was added.
    fn finish(self) -> HostBatch {
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
