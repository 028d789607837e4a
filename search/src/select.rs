//! Choosing an edge of an active node by the formula in [`settings`](crate::settings).

use crate::{
    arena::{Arena, NodeId, Statistics, leaves_out},
    draws::Draws,
    settings::{FirstPlay, Settings},
};

/// The parts of the settings that selection needs, and room to score edges in.
#[derive(Clone, Debug)]
pub(crate) struct Selector {
    exploration: f32,
    first_play: FirstPlay,
    scores: Vec<f32>,
}

impl Selector {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            exploration: settings.exploration,
            first_play: settings.first_play,
            scores: Vec::new(),
        }
    }

    /// The value that a visited edge's total starts from at a node with this evaluation.
    pub(crate) fn first_value(&self, evaluation: f32) -> f32 {
        match self.first_play {
            FirstPlay::Zero => 0.0,
            FirstPlay::Parent | FirstPlay::Reduction(_) => evaluation,
        }
    }

    /// The edge to take from an active node. `priors` (bits of floats) stand in for the node's own where they are
    /// not empty. `any_out` says whether leaves are out anywhere in the tree.
    pub(crate) fn select(
        &mut self,
        arena: &Arena,
        node: NodeId,
        priors: &[u32],
        any_out: bool,
        ties: &mut Draws,
    ) -> u32 {
        let edges = arena.statistics(node);
        let priors = if priors.len() == edges.priors.len() {
            priors
        } else {
            edges.priors
        };
        let sum = arena.sum_of_visits(node);
        if self.scores.len() < priors.len() {
            self.scores.resize(priors.len(), 0.0);
        }
        let scores = &mut self.scores[..priors.len()];
        let scale = self.exploration * float(sum).sqrt();
        let value = arena.evaluation(node).get();
        let first = if self.first_play == FirstPlay::Zero {
            0.0
        } else {
            value
        };
        let best = match self.first_play {
            _ if sum == 0 => best_of(scores, priors.iter().map(|&prior| f32::from_bits(prior))),
            FirstPlay::Reduction(reduction) => best_of(
                scores,
                scores_with_reduction(&edges, priors, value, reduction, scale),
            ),
            FirstPlay::Parent | FirstPlay::Zero if any_out => {
                best_of(scores, scores_with_leaves_out(&edges, priors, first, scale))
            }
            FirstPlay::Parent | FirstPlay::Zero => {
                best_of(scores, plain_scores(&edges, priors, first, scale))
            }
        };
        match best {
            Best::Edge(edge) => edge,
            Best::Tied(score) => draw_among_equals(scores, priors, score, ties),
        }
    }
}

/// The edge with the greatest score, or that score where several have it.
enum Best {
    Edge(u32),
    Tied(f32),
}

/// Keeps every score in `room`, and finds the greatest, without a branch.
#[inline(always)]
fn best_of(room: &mut [f32], scores: impl Iterator<Item = f32>) -> Best {
    let (mut best, mut at, mut is_tied) = (f32::NEG_INFINITY, 0, false);
    for (edge, (kept, score)) in room.iter_mut().zip(scores).enumerate() {
        *kept = score;
        let is_better = score > best;
        is_tied = !is_better & (is_tied | (score == best));
        at = if is_better { edge as u32 } else { at };
        best = if is_better { score } else { best };
    }
    if is_tied { Best::Tied(best) } else { Best::Edge(at) }
}

/// `V` of every edge while no leaf is out.
fn plain_scores(edges: &Statistics<'_>, priors: &[u32], first: f32, scale: f32) -> impl Iterator<Item = f32> {
    let statistics = edges.totals.iter().zip(edges.visits).zip(priors);
    statistics.map(move |((&total, &visits), &prior)| {
        v(first, f32::from_bits(total), scale, f32::from_bits(prior), visits)
    })
}

/// `V` of every edge, leaves that are out counting as lost.
fn scores_with_leaves_out(
    edges: &Statistics<'_>,
    priors: &[u32],
    first: f32,
    scale: f32,
) -> impl Iterator<Item = f32> {
    let statistics = edges
        .totals
        .iter()
        .zip(edges.visits)
        .zip(priors)
        .zip(edges.actions);
    statistics.map(move |(((&total, &visits), &prior), &action)| {
        let out = leaves_out(action);
        let total = f32::from_bits(total) - float(out);
        v(first, total, scale, f32::from_bits(prior), visits + out)
    })
}

/// `V` of every edge where an edge without visits has less than its parent's value to begin with.
fn scores_with_reduction(
    edges: &Statistics<'_>,
    priors: &[u32],
    value: f32,
    reduction: f32,
    scale: f32,
) -> impl Iterator<Item = f32> {
    let statistics = || {
        edges
            .totals
            .iter()
            .zip(edges.visits)
            .zip(priors)
            .zip(edges.actions)
    };
    let mut mass = 0.0;
    for (((_, &visits), &prior), &action) in statistics() {
        mass += if visits + leaves_out(action) > 0 {
            f32::from_bits(prior)
        } else {
            0.0
        };
    }
    let unvisited = value - reduction * f32::sqrt(mass);
    statistics().map(move |(((&total, &visits), &prior), &action)| {
        let out = leaves_out(action);
        let first = if visits + out == 0 { unvisited } else { value };
        let total = f32::from_bits(total) - float(out);
        v(first, total, scale, f32::from_bits(prior), visits + out)
    })
}

/// The formula over its common denominator; `scale` is `c·√ΣN`.
#[inline(always)]
fn v(first: f32, total: f32, scale: f32, prior: f32, visits: u32) -> f32 {
    (first + total + scale * prior) / (1.0 + float(visits))
}

/// Counts stay below 2³¹, and signed conversion is one instruction for four of them.
#[inline(always)]
fn float(count: u32) -> f32 {
    count.cast_signed() as f32
}

/// Of the edges with the best score those with the greatest prior; of those, one is drawn.
fn draw_among_equals(scores: &[f32], priors: &[u32], best: f32, ties: &mut Draws) -> u32 {
    let (mut greatest, mut equals) = (0, 0);
    for (&score, &prior) in scores.iter().zip(priors) {
        // Floats that are not negative are ordered as their bits are.
        let is_best = score == best;
        let is_greater = is_best & (prior > greatest);
        equals = if is_greater {
            1
        } else {
            equals + usize::from(is_best & (prior == greatest))
        };
        greatest = if is_greater { prior } else { greatest };
    }
    let mut drawn = if equals > 1 { ties.below(equals) } else { 0 };
    for (edge, (&score, &prior)) in scores.iter().zip(priors).enumerate() {
        if score == best && prior == greatest {
            if drawn == 0 {
                return edge as u32;
            }
            drawn -= 1;
        }
    }
    0
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
            let chosen = Selector::new(&settings).select(&arena, node, &[], true, &mut ties) as usize;

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
            assert_eq!(selector.select(&arena, one, &[], false, &mut ties), 1);
            drawn[selector.select(&others, two, &[], false, &mut ties) as usize] += 1;
        }
        assert!(drawn[0] > 25 && drawn[2] > 25 && drawn[1] == 0, "{drawn:?}");
    }

    /// The priors given in their stead (the decision node's, with noise) replace the node's own.
    #[test]
    fn priors_can_be_replaced() {
        let (arena, at) = node(0.0, &[(0.9, 0.0, 1, 0), (0.1, 0.0, 1, 0)]);
        let mut selector = Selector::new(&Settings::default());
        let mut ties = Draws::new(KEY, 0, Purpose::Ties);
        assert_eq!(selector.select(&arena, at, &[], false, &mut ties), 0);
        assert_eq!(
            selector.select(
                &arena,
                at,
                &[0.2f32.to_bits(), 0.8f32.to_bits()],
                false,
                &mut ties
            ),
            1
        );
    }
}
