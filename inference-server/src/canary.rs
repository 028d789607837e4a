//! Whether a provider gives the answers of plain f32: a batch of made-up rows, evaluated by both.

use games::RowLayout;

use crate::{
    backend::Bound,
    reply::softmax,
    runner::{Batch, Outputs, RunError},
};

/// Rows in the canary batch.
pub const ROWS: usize = 64;
/// Share of a row's entries that point at squares of their own.
const FILLED: f32 = 0.8;
const SEED: u64 = 0x6d69_6e75_6574;

/// Rows that a game of this layout could have, always the same ones.
pub fn batch(layout: &RowLayout, size: usize) -> Batch {
    let rows = onnx::random::rows(layout, size, FILLED, SEED);
    let rows = rows.into_iter().map(|number| number as i32).collect();
    Batch::new(rows, size)
}

/// What a model says about the canary batch, all actions taken as legal.
#[derive(Clone, Debug, PartialEq)]
pub struct Opinion {
    priors: Vec<f32>,
    values: Vec<f32>,
}

/// How far two opinions are apart, on average over the positions. Made-up rows are stranger than those of games, so single
/// positions are no measure; an average is, and whatever is broken is off by tenths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distance {
    /// Total variation distance of the priors: half the sum of the differences, in [0, 1].
    pub prior: f32,
    /// Difference of the values, in [0, 2].
    pub value: f32,
}

impl Opinion {
    /// Reads the outputs of [`batch`].
    ///
    /// # Errors
    /// Where they are not finite.
    pub fn new(outputs: &dyn Outputs, layout: &RowLayout) -> Result<Self, RunError> {
        let all: Vec<u32> = (0..layout.actions).collect();
        let mut priors = Vec::with_capacity(outputs.logits().len());
        let is_finite = outputs
            .logits()
            .chunks(all.len())
            .all(|logits| softmax(logits, &all, &mut priors))
            && outputs.values().iter().all(|value| value.is_finite());
        if !is_finite {
            return Err(RunError("the model's answers are not finite".into()));
        }
        Ok(Self {
            priors,
            values: outputs.values().to_vec(),
        })
    }

    /// How far `other` is from this one.
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
    /// Whether it is small enough.
    pub fn is_within(self, bound: Bound) -> bool {
        self.prior <= bound.prior && self.value <= bound.value
    }
}
