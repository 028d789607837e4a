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

#[cfg(test)]
mod tests {
    use games::{MoverValue, Player};
    use proptest::prelude::*;

    use super::*;
    use crate::{
        arena::Step,
        draws::{GameKey, Purpose},
    };

    const KEY: GameKey = GameKey { run_seed: 1, game: 2 };

    /// An active node whose edges have these priors, mean values, visits and leaves out.
    fn node(value: f32, edges: &[(f32, f32, u32, u32)]) -> (Arena, NodeId) {
        let settings = Settings::default();
        let mut arena = Arena::new(&settings);
        let legal: Vec<u32> = (0..edges.len() as u32).collect();
        let node = arena.push_empty(Player::First, &legal).unwrap();
        let priors: Vec<f32> = edges.iter().map(|edge| edge.0).collect();
        arena.evaluate(node, &priors, MoverValue::new(value));
        arena.activate(node, 1);
        for (edge, &(_, mean, visits, out)) in edges.iter().enumerate() {
            let path = [Step {
                node,
                edge: edge as u32,
            }];
            for _ in 0..visits {
                arena.back_up(&path, games::FirstValue::new(mean), 1.0);
            }
            for _ in 0..out {
                arena.send_out(&path);
            }
        }
        (arena, node)
    }

    fn any_first_play() -> impl Strategy<Value = FirstPlay> {
        prop_oneof![
            Just(FirstPlay::Parent),
            Just(FirstPlay::Zero),
            (0.0f32..1.0).prop_map(FirstPlay::Reduction),
        ]
    }

    proptest! {
        /// What is selected has, in double precision and term by term, the greatest V.
        #[test]
        fn selects_the_greatest_value_of_the_formula(
            value in -1.0f32..1.0,
            edges in prop::collection::vec((0.0f32..1.0, -1.0f32..1.0, 0u32..40, 0u32..4), 1..70),
            exploration in 0.0f32..4.0,
            first_play in any_first_play(),
        ) {
            let (arena, node) = node(value, &edges);
            let settings = Settings { exploration, first_play, ..Settings::default() };
            let mut ties = Draws::new(KEY, 0, Purpose::Ties);
            let chosen = Selector::new(&settings).select(&arena, node, &[], &mut ties) as usize;

            let sum: u32 = edges.iter().map(|edge| edge.2 + edge.3).sum();
            let mass: f64 = edges.iter().filter(|edge| edge.2 + edge.3 > 0).map(|edge| f64::from(edge.0)).sum();
            let v = |&(prior, mean, visits, out): &(f32, f32, u32, u32)| {
                let (visits, out) = (f64::from(visits), f64::from(out));
                let n = visits + out;
                let w = f64::from(mean) * visits - out;
                let f = match first_play {
                    FirstPlay::Zero => 0.0,
                    FirstPlay::Reduction(r) if n == 0.0 => f64::from(value) - f64::from(r) * mass.sqrt(),
                    FirstPlay::Parent | FirstPlay::Reduction(_) => f64::from(value),
                };
                let q = (f + w) / (1.0 + n);
                let u = f64::from(exploration) * f64::from(prior) * f64::from(sum).sqrt() / (1.0 + n);
                q + u
            };
            let greatest = edges.iter().map(v).fold(f64::NEG_INFINITY, f64::max);
            prop_assert!(v(&edges[chosen]) > greatest - 1e-4);
        }
    }

    /// Without visits the exploration term is 0 for all: the prior decides, the generator among equals.
    #[test]
    fn a_new_node_begins_with_its_greatest_prior() {
        let mut selector = Selector::new(&Settings::default());
        let mut ties = Draws::new(KEY, 0, Purpose::Ties);
        let unvisited = |prior| (prior, 0.0, 0, 0);
        let (arena, one) = node(0.3, &[unvisited(0.2), unvisited(0.5), unvisited(0.3)]);
        let (others, two) = node(0.3, &[unvisited(0.4), unvisited(0.2), unvisited(0.4)]);
        let mut drawn = [0; 3];
        for _ in 0..100 {
            assert_eq!(selector.select(&arena, one, &[], &mut ties), 1);
            drawn[selector.select(&others, two, &[], &mut ties) as usize] += 1;
        }
        assert!(drawn[0] > 25 && drawn[2] > 25 && drawn[1] == 0, "{drawn:?}");
    }

    /// The priors given in their stead (the decision node's, with noise) replace the node's own.
    #[test]
    fn priors_can_be_replaced() {
        let (arena, at) = node(0.0, &[(0.9, 0.0, 1, 0), (0.1, 0.0, 1, 0)]);
        let mut selector = Selector::new(&Settings::default());
        let mut ties = Draws::new(KEY, 0, Purpose::Ties);
        assert_eq!(selector.select(&arena, at, &[], &mut ties), 0);
        assert_eq!(selector.select(&arena, at, &[0.2, 0.8], &mut ties), 1);
    }
}
