//! Choosing an edge of an active node by the formula in [`settings`](crate::settings).

use crate::{
    arena::{Arena, COLUMNS, NodeId, OUT, PRIOR, TOTAL, VISITS},
    draws::Draws,
    settings::{FirstPlay, Settings},
};

/// The parts of the settings that selection needs, and room to score edges in.
#[derive(Clone, Debug)]
pub(crate) struct Selector {
    exploration: f32,
    first_play: FirstPlay,
    scores: Vec<f32>,
    equal: Vec<u32>,
}

impl Selector {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            exploration: settings.exploration,
            first_play: settings.first_play,
            scores: Vec::new(),
            equal: Vec::new(),
        }
    }

    /// The value that a visited edge's total starts from at a node with this evaluation.
    pub(crate) fn first_value(&self, evaluation: f32) -> f32 {
        match self.first_play {
            FirstPlay::Zero => 0.0,
            FirstPlay::Parent | FirstPlay::Reduction(_) => evaluation,
        }
    }

    /// The edge to take from an active node. `priors` stand in for the node's own where they are not empty.
    pub(crate) fn select(&mut self, arena: &Arena, node: NodeId, priors: &[f32], ties: &mut Draws) -> u32 {
        let columns = arena.columns(node);
        let edges = columns.len() / COLUMNS;
        let column = |which: usize| &columns[which * edges..(which + 1) * edges];
        let own = column(PRIOR);
        let prior = |edge: usize| {
            priors
                .get(edge)
                .copied()
                .unwrap_or_else(|| f32::from_bits(own[edge]))
        };
        let sum = arena.sum_of_visits(node);

        self.scores.clear();
        if sum == 0 {
            self.scores.extend((0..edges).map(prior));
        } else {
            let visited = self.first_value(arena.evaluation(node).get());
            let (totals, visits, out) = (column(TOTAL), column(VISITS), column(OUT));
            let unvisited = match self.first_play {
                FirstPlay::Reduction(reduction) => {
                    let mass: f32 = (0..edges)
                        .filter(|&edge| visits[edge] + out[edge] > 0)
                        .map(prior)
                        .sum();
                    visited - reduction * mass.sqrt()
                }
                FirstPlay::Parent | FirstPlay::Zero => visited,
            };
            let scale = self.exploration * (sum as f32).sqrt();
            self.scores.extend((0..edges).map(|edge| {
                let count = visits[edge] + out[edge];
                let first = if count == 0 { unvisited } else { visited };
                let total = f32::from_bits(totals[edge]) - out[edge] as f32;
                (first + total + scale * prior(edge)) / (1 + count) as f32
            }));
        }
        let best = self.scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        self.equal.clear();
        let mut best_prior = f32::NEG_INFINITY;
        for (edge, &score) in self.scores.iter().enumerate() {
            if score == best {
                let prior = prior(edge);
                if prior > best_prior {
                    best_prior = prior;
                    self.equal.clear();
                }
                if prior == best_prior {
                    self.equal.push(edge as u32);
                }
            }
        }
        match self.equal.as_slice() {
            [] => 0,
            &[edge] => edge,
            edges => edges[ties.below(edges.len())],
        }
    }
}
