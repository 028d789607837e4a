//! Systems of equations whose matrix is symmetric and positive definite, and mostly empty: `L·D·Lᵀ` by elimination.
//!
//! Whoever has the fewest neighbours goes first (the minimum-degree rule), so that a tree, and nearly one, takes
//! time and memory in proportion to its nodes.

use std::collections::BTreeMap;

/// A symmetric matrix that is built up entry by entry.
#[derive(Clone, Debug, Default)]
pub(super) struct Symmetric {
    diagonal: Vec<f64>,
    /// What lies off the diagonal, in both halves.
    rest: Vec<BTreeMap<usize, f64>>,
}

/// One eliminated unknown.
#[derive(Clone, Debug)]
struct Step {
    unknown: usize,
    pivot: f64,
    /// Factors of the unknowns that come later.
    factors: Vec<(usize, f64)>,
}

/// A factored matrix.
#[derive(Clone, Debug)]
pub(super) struct Factored(Vec<Step>);

impl Symmetric {
    /// All zeros.
    pub(super) fn zeros(size: usize) -> Self {
        Self {
            diagonal: vec![0.0; size],
            rest: vec![BTreeMap::new(); size],
        }
    }

    /// Adds to an entry of the diagonal.
    pub(super) fn add_diagonal(&mut self, at: usize, value: f64) {
        self.diagonal[at] += value;
    }

    /// Adds to the two entries (`row`, `column`) and (`column`, `row`), which lie off the diagonal.
    pub(super) fn add_pair(&mut self, row: usize, column: usize, value: f64) {
        *self.rest[row].entry(column).or_default() += value;
        *self.rest[column].entry(row).or_default() += value;
    }

    /// Factors it; `None` where it is not positive definite.
    pub(super) fn factor(mut self) -> Option<Factored> {
        let mut left: Vec<usize> = (0..self.diagonal.len()).collect();
        let mut steps = Vec::with_capacity(left.len());
        while !left.is_empty() {
            let (place, _) =
                (left.iter().enumerate()).min_by_key(|&(_, &unknown)| (self.rest[unknown].len(), unknown))?;
            let unknown = left.swap_remove(place);
            let pivot = self.diagonal[unknown];
            if !(pivot > 0.0 && pivot.is_finite()) {
                return None;
            }
            let row: Vec<(usize, f64)> = std::mem::take(&mut self.rest[unknown]).into_iter().collect();
            for (index, &(one, of_one)) in row.iter().enumerate() {
                self.rest[one].remove(&unknown);
                self.diagonal[one] -= of_one * of_one / pivot;
                for &(other, of_other) in &row[index + 1..] {
                    self.add_pair(one, other, -of_one * of_other / pivot);
                }
            }
            steps.push(Step {
                unknown,
                pivot,
                factors: row
                    .into_iter()
                    .map(|(later, value)| (later, value / pivot))
                    .collect(),
            });
        }
        Some(Factored(steps))
    }
}

impl Factored {
    /// The solution for a right-hand side.
    pub(super) fn solve(&self, mut values: Vec<f64>) -> Vec<f64> {
        for step in &self.0 {
            let value = values[step.unknown];
            for &(later, factor) in &step.factors {
                values[later] -= factor * value;
            }
        }
        for step in self.0.iter().rev() {
            let known: f64 = (step.factors.iter())
                .map(|&(later, factor)| factor * values[later])
                .sum();
            values[step.unknown] = values[step.unknown] / step.pivot - known;
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Any graph with weights, each node held a little, is solved to what it was made of.
        #[test]
        fn what_was_multiplied_is_found_again(
            edges in prop::collection::vec((0usize..12, 0usize..12, 0.1f64..10.0), 0..40),
            truth in prop::collection::vec(-5.0f64..5.0, 12),
        ) {
            let mut matrix = Symmetric::zeros(12);
            let mut product = vec![0.0; 12];
            let edges = edges.into_iter().filter(|(one, other, _)| one != other);
            for (one, other, weight) in edges {
                matrix.add_diagonal(one, weight);
                matrix.add_diagonal(other, weight);
                matrix.add_pair(one, other, -weight);
                product[one] += weight * (truth[one] - truth[other]);
                product[other] += weight * (truth[other] - truth[one]);
            }
            for (at, value) in truth.iter().enumerate() {
                matrix.add_diagonal(at, 0.5);
                product[at] += 0.5 * value;
            }
            let found = matrix.factor().unwrap().solve(product);
            for (found, truth) in found.iter().zip(&truth) {
                prop_assert!((found - truth).abs() < 1e-9, "{found} {truth}");
            }
        }
    }

    #[test]
    fn what_is_not_positive_definite_is_refused() {
        let mut matrix = Symmetric::zeros(2);
        matrix.add_diagonal(0, 1.0);
        matrix.add_diagonal(1, 1.0);
        matrix.add_pair(0, 1, 2.0);
        assert!(matrix.factor().is_none());
        assert!(Symmetric::zeros(1).factor().is_none());
    }
}
