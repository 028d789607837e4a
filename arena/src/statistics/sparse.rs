//! Systems of equations whose matrix is symmetric and positive definite, and mostly empty: `L·D·Lᵀ` by elimination.
//!
//! Whoever has the fewest neighbours goes first (the minimum-degree rule), so that a tree, and nearly one, takes
//! memory in proportion to its nodes, and time to that times its logarithm: those that are left wait in order of their neighbours.

use std::collections::{BTreeMap, BTreeSet};

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
        let neighbours = |rest: &[BTreeMap<usize, f64>], unknown: usize| (rest[unknown].len(), unknown);
        let mut left: BTreeSet<(usize, usize)> = (0..self.diagonal.len())
            .map(|unknown| neighbours(&self.rest, unknown))
            .collect();
        let mut steps = Vec::with_capacity(left.len());
        while let Some((_, unknown)) = left.pop_first() {
            let pivot = self.diagonal[unknown];
            if !(pivot > 0.0 && pivot.is_finite()) {
                return None;
            }
            let row: Vec<(usize, f64)> = std::mem::take(&mut self.rest[unknown]).into_iter().collect();
            for &(one, _) in &row {
                left.remove(&neighbours(&self.rest, one));
            }
            for (index, &(one, of_one)) in row.iter().enumerate() {
                self.rest[one].remove(&unknown);
                self.diagonal[one] -= of_one * of_one / pivot;
                for &(other, of_other) in &row[index + 1..] {
                    self.add_pair(one, other, -of_one * of_other / pivot);
                }
            }
            left.extend(row.iter().map(|&(one, _)| neighbours(&self.rest, one)));
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

    /// As many checkpoints as nobody will rate: a scan of those that are left, for each of them, would take minutes.
    #[test]
    fn a_long_chain_with_branches_is_factored_without_fill_in() {
        let size = 400_000;
        let parent = |node: usize| {
            if node.is_multiple_of(3) {
                node / 2
            } else {
                node - 1
            }
        };
        let truth = |node: usize| (node % 17) as f64 - 8.0;
        let mut matrix = Symmetric::zeros(size);
        let mut product = vec![0.0; size];
        for node in 0..size {
            matrix.add_diagonal(node, 0.5);
            product[node] += 0.5 * truth(node);
            if node > 0 {
                let other = parent(node);
                matrix.add_diagonal(node, 1.0);
                matrix.add_diagonal(other, 1.0);
                matrix.add_pair(node, other, -1.0);
                product[node] += truth(node) - truth(other);
                product[other] += truth(other) - truth(node);
            }
        }
        let factored = matrix.factor().unwrap();
        let factors: usize = factored.0.iter().map(|step| step.factors.len()).sum();
        assert_eq!(
            factors,
            size - 1,
            "each node of a tree but the last is eliminated as a leaf"
        );
        for (node, found) in factored.solve(product).into_iter().enumerate() {
            assert!((found - truth(node)).abs() < 1e-9, "{node}: {found}");
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
