//! The canary: compares a provider's outputs on a batch of positions with those of f32 on the CPU.

use games::{RowLayout, registry};
use search::{Draws, GameKey, Purpose};

use crate::{
    batch::{Batch, Outputs, RunError, Runner},
    file::rules_of,
    softmax::softmax,
};

/// Number of rows in the canary batch.
pub const ROWS: usize = 64;
/// Number of different rows in a batch.
pub const MOST: usize = 256;
/// Share of a row's entries that point at distinct squares.
const FILLED: f32 = 0.8;
/// Seed of the random rows.
const SEED: u64 = 0x6d69_6e75_6574;

/// Returns a batch of `size` rows of this layout: positions of random play if the layout is that of a game of the registry, random
/// rows otherwise. The rows are always the same, and repeat after [`MOST`].
pub fn batch(layout: &RowLayout, size: usize) -> Batch {
    batch_from(&rows(layout, size.min(MOST)), 0, size)
}

fn rows(layout: &RowLayout, count: usize) -> Vec<Vec<i32>> {
    let rows = played_rows(layout, count).unwrap_or_else(|| onnx::random::rows(layout, count, FILLED, SEED));
    let rows = layout.split(&rows);
    rows.map(|row| row.iter().map(|&number| number as i32).collect())
        .collect()
}

/// Returns the rows of positions of random play. `None` if no game of the registry has this layout.
fn played_rows(layout: &RowLayout, count: usize) -> Option<Vec<u32>> {
    let game = registry::find(&layout.game).ok()?;
    let rules = rules_of(game.sizes, layout);
    let variant = game.variant(&rules, Some(layout.options)).ok()?;
    let key = GameKey {
        run_seed: SEED,
        game: 0,
    };
    let mut draws = Draws::new(key, 0, Purpose::Opening);
    let rows = variant.random_rows(count, &mut |below| draws.below(below)).ok()?;
    (variant.layout() == *layout).then_some(rows)
}

/// Returns a batch of `size` of the rows that starts with number `first` and wraps around.
fn batch_from(rows: &[Vec<i32>], first: usize, size: usize) -> Batch {
    let rows = rows.iter().cycle().skip(first).take(size);
    rows.map(|row| row.iter().copied()).collect()
}

/// Runs the canary's rows in batches of `size`. With `picks`, all actions are named as legal, in a different order for each
/// row, and the runner picks their logits.
///
/// # Errors
/// [`RunError`] if the runner fails or an output is not finite.
pub fn run(
    runner: &mut dyn Runner,
    layout: &RowLayout,
    size: usize,
    picks: bool,
) -> Result<CanaryOutput, RunError> {
    let (rows, size, actions) = (rows(layout, ROWS), size.max(1), layout.actions as usize);
    let mut output = CanaryOutput {
        priors: Vec::with_capacity(ROWS * actions),
        values: Vec::with_capacity(ROWS),
    };
    for first in (0..ROWS).step_by(size) {
        let batch = batch_from(&rows, first, size);
        let batch = if picks {
            let order =
                (0..size).flat_map(|row| (0..actions).map(move |place| ((row + place) % actions) as i32));
            batch.with_legal(order.collect(), actions)
        } else {
            batch
        };
        let outputs = runner.run(batch)?;
        output.add(&outputs, layout, size.min(ROWS - first))?;
    }
    Ok(output)
}

/// Outputs of a model for the canary batch, with all actions legal.
#[derive(Clone, Debug, PartialEq)]
pub struct CanaryOutput {
    priors: Vec<f32>,
    values: Vec<f32>,
}

/// Distance between two outputs, averaged over the positions. Random rows are unlike those of games, so the distance at a single
/// position says little. A broken provider is off by tenths on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distance {
    /// Total variation distance of the priors: half the sum of the absolute differences, in [0, 1].
    pub prior: f32,
    /// Difference of the values, in [0, 2].
    pub value: f32,
}

impl CanaryOutput {
    /// Adds the outputs of the first `rows` rows of a batch.
    fn add(&mut self, outputs: &Outputs, layout: &RowLayout, rows: usize) -> Result<(), RunError> {
        let all: Vec<u32> = (0..layout.actions).collect();
        let width = all.len().max(1);
        let is_finite = match outputs.legal_logits() {
            None => {
                let mut logits = outputs.logits().chunks(width).take(rows);
                logits.all(|logits| softmax(logits, &all, &mut self.priors))
            }
            Some((picked, _)) => {
                let mut picked = picked.chunks(width).take(rows).enumerate();
                picked.all(|(row, picked)| {
                    let mut logits = picked.to_vec();
                    logits.rotate_right(row % width);
                    softmax(&logits, &all, &mut self.priors)
                })
            }
        };
        let values = outputs.values().get(..rows).unwrap_or_default();
        self.values.extend_from_slice(values);
        let is_whole = self.priors.len() == self.values.len() * all.len() && values.len() == rows;
        if is_finite && is_whole && values.iter().all(|value| value.is_finite()) {
            return Ok(());
        }
        Err(RunError("the outputs of the model are not finite".into()))
    }

    /// Returns the distance from `other`.
    pub fn distance(&self, other: &Self) -> Distance {
        let positions = self.values.len().max(1) as f32;
        let differences = |left: &[f32], right: &[f32]| -> f32 {
            left.iter()
                .zip(right)
                .map(|(left, right)| (left - right).abs())
                .sum()
        };
        Distance {
            prior: differences(&self.priors, &other.priors) / 2.0 / positions,
            value: differences(&self.values, &other.values) / positions,
        }
    }
}

impl Distance {
    /// Distance zero.
    pub const NONE: Self = Self {
        prior: 0.0,
        value: 0.0,
    };

    /// Returns the larger distance of both, for priors and values separately.
    pub fn max(self, other: Self) -> Self {
        Self {
            prior: self.prior.max(other.prior),
            value: self.value.max(other.value),
        }
    }

    /// True if both distances are at most `bound`.
    pub fn is_within(self, bound: f32) -> bool {
        self.prior <= bound && self.value <= bound
    }
}

#[cfg(test)]
mod tests {
    use games::{Game as _, connect_four::ConnectFour};

    use super::*;

    /// Number of columns of Connect Four, which are its actions.
    const ACTIONS: usize = 7;

    /// A made-up model that picks legal logits itself, and is wrong in batches of one size, or about one place of what it picks.
    #[derive(Default)]
    struct Fake {
        wrong_size: Option<usize>,
        wrong_place: Option<usize>,
    }

    impl Runner for Fake {
        fn run(&mut self, mut batch: Batch) -> Result<Outputs, RunError> {
            let is_wrong = self.wrong_size == Some(batch.size());
            let logit = |row: &[i32], action: usize| ((row[0] as usize + 3 * action) % 7) as f32;
            let value = |row: &[i32]| if is_wrong { -1.0 } else { row[0] as f32 / 1000.0 };
            let values = batch.each().map(value).collect();
            let Some(legal) = batch.take_legal() else {
                let logits = batch
                    .each()
                    .flat_map(|row| (0..ACTIONS).map(move |action| logit(row, action)));
                return Ok(Outputs::new(logits.collect(), values));
            };
            let mut picked = Vec::new();
            for (row, own) in batch.each().zip(legal.actions.chunks(legal.width)) {
                for (place, &action) in own.iter().enumerate() {
                    picked.push(match self.wrong_place == Some(place) {
                        true => 9.0,
                        false => logit(row, action as usize),
                    });
                }
            }
            Ok(Outputs::new(picked, values).with_width(Some(legal.width)))
        }
    }

    fn distance(size: usize, picks: bool, mut fake: Fake) -> Distance {
        let layout = ConnectFour::layout(Default::default());
        let truth = run(&mut Fake::default(), &layout, ROWS, false).unwrap();
        assert_eq!((truth.values.len(), truth.priors.len()), (ROWS, ACTIONS * ROWS));
        truth.distance(&run(&mut fake, &layout, size, picks).unwrap())
    }

    #[test]
    fn every_size_and_what_is_picked_is_compared_with_the_same_rows() {
        for size in [1, 7, 48, ROWS, 100] {
            for picks in [false, true] {
                let found = distance(size, picks, Fake::default());
                assert!(found.prior < 1e-6 && found.value < 1e-6, "{size}: {found:?}");
            }
        }
        let at_48 = || Fake {
            wrong_size: Some(48),
            ..Fake::default()
        };
        assert!(distance(48, false, at_48()).value > 0.5);
        assert_eq!(distance(ROWS, false, at_48()).value, 0.0);
        let at_place = || Fake {
            wrong_place: Some(2),
            ..Fake::default()
        };
        assert!(distance(16, true, at_place()).prior > 0.1);
        assert_eq!(distance(16, false, at_place()).prior, 0.0);
    }
}
