//! Planes as a representation: a batch has one input, which holds the rows themselves.

use std::{borrow::Cow, ops::RangeInclusive};

use super::{INDICES, PlaneStack};
use crate::codec::{Candidates, Codec, Expander, Input, PolicyHead, RowError};

impl Codec for PlaneStack {
    fn row_lengths(&self) -> RangeInclusive<usize> {
        self.row_len()..=self.row_len()
    }

    fn first_row_len(&self, rows: &[u32]) -> usize {
        self.row_len().min(rows.len())
    }

    fn actions_in(&self, _row: &[u32], actions: u32) -> u32 {
        actions
    }

    fn lowest_value(&self) -> f32 {
        -1.0
    }

    fn check(&self, actions: u32, head: PolicyHead) -> Result<(), RowError> {
        self.check()?;
        match head {
            PolicyHead::Planes if (actions as usize) < self.squares() => {
                Err(RowError::of_layout(format_args!(
                    "a policy head of planes of {} squares for {actions} actions",
                    self.squares()
                )))
            }
            PolicyHead::PerPart => Err(RowError::of_layout(
                "a policy head for each part, but planes have no parts",
            )),
            PolicyHead::Planes | PolicyHead::Dense => Ok(()),
        }
    }

    fn validate(&self, row: &[u32]) -> Result<(), RowError> {
        self.validate(row)
    }

    fn expander(&self) -> Box<dyn Expander> {
        Box::new(PlaneBatch {
            row_len: [self.row_len()],
            stack: self.clone(),
            rows: Vec::new(),
        })
    }
}

/// A batch of rows of planes: one input, which holds the rows themselves.
#[derive(Debug)]
struct PlaneBatch {
    stack: PlaneStack,
    row_len: [usize; 1],
    rows: Vec<i32>,
}

impl Expander for PlaneBatch {
    fn clear(&mut self) {
        self.rows.clear();
    }

    fn push(&mut self, row: &[u32]) -> Result<(), RowError> {
        self.stack.validate(row)?;
        self.rows.extend(row.iter().map(|&value| value as i32));
        Ok(())
    }

    fn inputs(&mut self) -> Vec<Input<'_>> {
        vec![Input {
            name: INDICES,
            inner: &self.row_len,
            numbers: &self.rows,
        }]
    }

    fn candidates(&self) -> Option<Candidates> {
        None
    }

    fn logit_count(&self, actions: usize) -> usize {
        self.rows.len() / self.row_len[0] * actions
    }

    fn dense_logits<'a>(&self, logits: &'a [f32], _actions: usize) -> Cow<'a, [f32]> {
        Cow::Borrowed(logits)
    }
}
