//! PUCT: the choice of an edge of an active node, and first-play urgency.
//!
//! # The formula
//! At an active node the search takes the action that maximises
//!
//! ```text
//! V = Q + U,   Q = (F + W) / (1 + N),   U = c · P · √ΣN / (1 + N)
//! ```
//!
//! as seen by the player to act. `N` is the number of visits of the edge, `W` the sum of their values, `P` the prior (at
//! the decision node with [noise](crate::noise)), `c` the exploration constant, and `ΣN` the sum of `N` over the node's own
//! edges, so nothing counted before a re-root enters it.
//!
//! `F` is the first-play urgency ([`FirstPlay`]). `W` starts from it, so an action without visits has exactly `Q = F`, and
//! the `1` in the denominator is the weight that `F` keeps afterwards. (If `F` applied to unvisited actions alone, the
//! first visit of an action worth as much as its parent would halve its `Q`, and a player who is winning would try every
//! action once before trying any twice.) `F` applies to every edge from the moment its node becomes active, and again after
//! a re-root. With `F = 0` the formula is `W/(1+N) + c·P·√ΣN/(1+N)`.
//!
//! In one-player games the best visit of an edge can have a share λ of its value: `(1 - λ)·W + λ·N·max` then replaces
//! `W`, because no opponent can refute a line that was found ([`Settings::max_share`]).
//!
//! [Virtual losses](crate::tree) count as visits that were lost. Actions that a [proof](crate::proof) refutes are
//! left out.
//!
//! Of equal `V` the greater prior wins. (At a node whose edges have no visits `U` is 0 for all; this is the formula's
//! limit.) The seeded generator draws among actions that are still equal.

use crate::{
    draws::Draws,
    look::Terms,
    settings::{FirstPlay, Settings},
    tree::{NodeId, Statistics, Step, Tree, virtual_losses},
};

/// The constants of the formula, and memory for the scores of a node's edges.
#[derive(Clone, Debug)]
pub(crate) struct Selector {
    exploration: f32,
    first_play: FirstPlay,
    first_play_reduction: f32,
    /// Value of a virtual loss.
    lowest: f32,
    max_share: f32,
    scores: Vec<f32>,
}

impl Selector {
    /// Makes a selector. `lowest` is the least value that a state of the game can have.
    pub(crate) fn new(settings: &Settings, lowest: f32) -> Self {
        Self {
            exploration: settings.exploration,
            first_play: settings.first_play,
            first_play_reduction: settings.first_play_reduction,
            lowest,
            max_share: settings.max_share,
            scores: Vec::new(),
        }
    }

    /// Returns the value from which the total of a visited edge of a node starts.
    pub(crate) fn first_value(&self, tree: &Tree, node: NodeId) -> f32 {
        match self.first_play {
            FirstPlay::Zero => 0.0,
            FirstPlay::Parent | FirstPlay::Reduction => tree.evaluation(node).get(),
        }
    }

    /// Returns the reduction of the first-play urgency; `None` if it has none.
    fn reduction(&self) -> Option<f32> {
        (self.first_play == FirstPlay::Reduction).then_some(self.first_play_reduction)
    }

    /// Returns the terms of the formula for every edge of an active node, virtual losses left out. `priors` as in
    /// [`Selector::select`].
    pub(crate) fn terms(&self, tree: &Tree, node: NodeId, priors: &[u32]) -> Vec<Terms> {
        let edges = tree.statistics(node);
        let priors = edges.priors_or(priors);
        let sum: u32 = edges.visits.iter().sum();
        let scale = self.exploration * float(sum).sqrt();
        let first = self.first_value(tree, node);
        let reduction = self.reduction().unwrap_or(0.0);
        let unvisited = unvisited_value(&edges, priors, first, reduction);
        let statistics = edges.totals.iter().zip(edges.visits).zip(priors);
        let terms = statistics.enumerate().map(|(edge, ((&total, &visits), &prior))| {
            let first_play = if visits == 0 { unvisited } else { first };
            let total = match edges.best.get(edge) {
                Some(&best) => mixed(total, best, visits, self.max_share),
                None => f32::from_bits(total),
            };
            Terms {
                first_play,
                total,
                value: (first_play + total) / (1.0 + float(visits)),
                exploration: scale * f32::from_bits(prior) / (1.0 + float(visits)),
            }
        });
        terms.collect()
    }

    /// Returns the edge to take from an active node. `priors` (bits of floats) replace the node's own if there are any.
    /// `any_pending` says whether leaves are pending anywhere in the tree, so that edges may have virtual losses.
    pub(crate) fn select(
        &mut self,
        tree: &Tree,
        node: NodeId,
        priors: &[u32],
        any_pending: bool,
        ties: &mut Draws,
    ) -> u32 {
        let edges = tree.statistics(node);
        let priors = edges.priors_or(priors);
        let sum = tree.visit_sum(node);
        if self.scores.len() < priors.len() {
            self.scores.resize(priors.len(), 0.0);
        }
        let first = self.first_value(tree, node);
        let reduction = self.reduction();
        let is_mixed = !edges.best.is_empty();
        let shared = Shared {
            first,
            unvisited: match reduction {
                Some(reduction) if sum > 0 => unvisited_value(&edges, priors, first, reduction),
                _ => first,
            },
            scale: self.exploration * float(sum).sqrt(),
            lowest: self.lowest,
            max_share: self.max_share,
        };
        let room = &mut self.scores[..priors.len()];
        let best = match reduction {
            _ if sum == 0 => argmax(room, priors.iter().map(|&prior| f32::from_bits(prior))),
            _ if is_mixed => argmax(room, scores::<true, true, true>(&edges, priors, shared)),
            Some(_) => argmax(room, scores::<true, true, false>(&edges, priors, shared)),
            None if any_pending => argmax(room, scores::<true, false, false>(&edges, priors, shared)),
            None => argmax(room, scores::<false, false, false>(&edges, priors, shared)),
        };
        let best = if tree.is_near_proof(node) {
            for (edge, score) in (0u32..).zip(room.iter_mut()) {
                let is_refuted = tree.is_refuted(Step { node, edge });
                *score = if is_refuted {
                    f32::NEG_INFINITY
                } else {
                    *score + 0.0
                };
            }
            argmax_stored(room)
        } else {
            best
        };
        match best {
            Best::Edge(edge) => edge,
            Best::Tied(score) => draw_among_equals(room, priors, score, ties),
        }
    }
}

/// Returns the value of an edge without visits: `first` less `reduction · √(sum of the priors of the visited edges)`.
fn unvisited_value(edges: &Statistics<'_>, priors: &[u32], first: f32, reduction: f32) -> f32 {
    let statistics = edges.visits.iter().zip(priors).zip(edges.actions);
    let mut mass = 0.0;
    for ((&visits, &prior), &action) in statistics {
        mass += if visits + virtual_losses(action) > 0 {
            f32::from_bits(prior)
        } else {
            0.0
        };
    }
    first - reduction * f32::sqrt(mass)
}

/// Numbers of the formula that all edges of a node share.
#[derive(Clone, Copy)]
struct Shared {
    /// Value from which the total of an edge starts.
    first: f32,
    /// Value from which that of an edge without visits starts, with `REDUCED`.
    unvisited: f32,
    /// `c·√ΣN`.
    scale: f32,
    /// Value of a virtual loss, with `LOST`.
    lowest: f32,
    /// Share of the best visit in an edge's value, with `MIXED`.
    max_share: f32,
}

/// Returns `V` of every edge. The flags say which terms the formula has; a branch for each edge would cost more than the arithmetic.
#[inline(always)]
fn scores<'a, const LOST: bool, const REDUCED: bool, const MIXED: bool>(
    edges: &Statistics<'a>,
    priors: &'a [u32],
    shared: Shared,
) -> impl Iterator<Item = f32> + use<'a, LOST, REDUCED, MIXED> {
    // A column that is not read is any column of the same length.
    let best = if MIXED { edges.best } else { edges.totals };
    let actions = if LOST { edges.actions } else { edges.totals };
    let statistics = edges.totals.iter().zip(edges.visits).zip(best);
    statistics
        .zip(priors)
        .zip(actions)
        .map(move |((((&total, &visits), &best), &prior), &action)| {
            let lost = if LOST { virtual_losses(action) } else { 0 };
            let total = match MIXED {
                true => mixed(total, best, visits, shared.max_share),
                false => f32::from_bits(total),
            };
            let total = match LOST {
                true => total + shared.lowest * float(lost),
                false => total,
            };
            let is_reduced = REDUCED && visits + lost == 0;
            let first = if is_reduced {
                shared.unvisited
            } else {
                shared.first
            };
            v(first, total, shared.scale, f32::from_bits(prior), visits + lost)
        })
}

/// Returns the sum of the values of an edge's visits, in which the best visit has the share `share`.
#[inline(always)]
fn mixed(total: u32, best: u32, visits: u32, share: f32) -> f32 {
    // Both terms of an edge without visits are 0.
    let best = if visits == 0 {
        0.0
    } else {
        f32::from_bits(best) * float(visits)
    };
    (1.0 - share) * f32::from_bits(total) + share * best
}

/// Returns `V` of one edge, computed over the common denominator; `scale` is `c·√ΣN`.
#[inline(always)]
fn v(first: f32, total: f32, scale: f32, prior: f32, visits: u32) -> f32 {
    (first + total + scale * prior) / (1.0 + float(visits))
}

/// Converts a count. Counts stay below 2³¹, and the signed conversion is one instruction for four of them.
#[inline(always)]
fn float(count: u32) -> f32 {
    count.cast_signed() as f32
}

/// Edge with the largest score.
enum Best {
    /// Index of the only edge with the largest score.
    Edge(u32),
    /// Largest score, which several edges have.
    Tied(f32),
}

/// Number of edges from which four at a time are faster. (Chess, 30 edges: 1.2 times as many visits a second; Connect Four,
/// 7 edges: 0.9 times.)
const MANY: usize = 12;

/// Stores every score in `room` and finds the largest, without a branch for each edge.
#[inline(always)]
fn argmax(room: &mut [f32], scores: impl Iterator<Item = f32>) -> Best {
    if room.len() < MANY {
        argmax_of_few(room, scores)
    } else {
        argmax_of_many(room, scores)
    }
}

#[inline(always)]
fn argmax_of_few(room: &mut [f32], scores: impl Iterator<Item = f32>) -> Best {
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

#[inline(always)]
fn argmax_of_many(room: &mut [f32], scores: impl Iterator<Item = f32>) -> Best {
    for (kept, score) in room.iter_mut().zip(scores) {
        // The integer order below would place a negative zero below zero.
        *kept = score + 0.0;
    }
    argmax_stored(room)
}

/// Finds the largest of stored scores, none of which is a negative zero, in loops each of which the compiler vectorises.
#[inline(always)]
fn argmax_stored(scores: &[f32]) -> Best {
    let best = scores.iter().map(|&score| order(score)).fold(i32::MIN, i32::max);
    let (mut equals, mut places) = (0, 0);
    for (edge, &score) in (0u32..).zip(scores) {
        let is_best = u32::from(order(score) == best);
        equals += is_best;
        places += is_best * edge;
    }
    if equals > 1 {
        Best::Tied(scores.iter().copied().fold(f32::NEG_INFINITY, f32::max))
    } else {
        Best::Edge(places)
    }
}

/// Maps a float to an integer of the same order: processors have vector instructions for the maximum of integers.
#[inline(always)]
fn order(score: f32) -> i32 {
    let bits = score.to_bits().cast_signed();
    bits ^ ((bits >> 31) & i32::MAX)
}

/// Returns one of the edges with the score `best`: the one with the largest prior. Draws among equal priors.
fn draw_among_equals(scores: &[f32], priors: &[u32], best: f32, ties: &mut Draws) -> u32 {
    let (mut largest, mut equals) = (0, 0);
    for (&score, &prior) in scores.iter().zip(priors) {
        // Floats that are not negative have the order of their bits.
        let is_best = score == best;
        let is_greater = is_best & (prior > largest);
        equals = if is_greater {
            1
        } else {
            equals + usize::from(is_best & (prior == largest))
        };
        largest = if is_greater { prior } else { largest };
    }
    let mut drawn = if equals > 1 { ties.below(equals) } else { 0 };
    for (edge, (&score, &prior)) in scores.iter().zip(priors).enumerate() {
        if score == best && prior == largest {
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
    use crate::draws::{GameKey, Purpose};

    const KEY: GameKey = GameKey { run_seed: 1, game: 2 };

    /// Returns an active node whose edges have these priors, mean values, visits and virtual losses.
    fn node(settings: &Settings, value: f32, edges: &[(f32, f32, u32, u32)]) -> (Tree, NodeId) {
        let mut tree = Tree::new(settings, settings.max_share > 0.0);
        let legal: Vec<u32> = (0..edges.len() as u32).collect();
        let node = tree.push_empty(Player::First, &legal, 0).unwrap();
        let priors: Vec<f32> = edges.iter().map(|edge| edge.0).collect();
        tree.evaluate(node, &priors, MoverValue::new(value));
        tree.activate(node, 1);
        tree.add_statistics(node);
        for (edge, &(_, mean, visits, lost)) in edges.iter().enumerate() {
            let path = [Step {
                node,
                edge: edge as u32,
            }];
            for _ in 0..visits {
                tree.back_up(&path, games::FirstValue::new(mean), 1.0);
            }
            for _ in 0..lost {
                tree.add_virtual_loss(&path);
            }
        }
        (tree, node)
    }

    fn any_first_play() -> impl Strategy<Value = FirstPlay> {
        prop_oneof![
            Just(FirstPlay::Parent),
            Just(FirstPlay::Zero),
            Just(FirstPlay::Reduction),
        ]
    }

    proptest! {
        /// Compares with the formula in double precision, term by term.
        #[test]
        fn selection_maximises_the_formula(
            value in -1.0f32..1.0,
            edges in prop::collection::vec((0.0f32..1.0, -1.0f32..1.0, 0u32..40, 0u32..4), 1..70),
            exploration in 0.0f32..4.0,
            first_play in any_first_play(),
            first_play_reduction in 0.0f32..1.0,
            max_share in prop_oneof![Just(0.0f32), 0.0f32..1.0],
            lowest in prop_oneof![Just(-1.0f32), Just(0.0)],
        ) {
            let settings = Settings { exploration, first_play, first_play_reduction, max_share, ..Settings::default() };
            let (tree, node) = node(&settings, value, &edges);
            let mut ties = Draws::new(KEY, 0, Purpose::Ties);
            let chosen = Selector::new(&settings, lowest).select(&tree, node, &[], true, &mut ties) as usize;

            let sum: u32 = edges.iter().map(|edge| edge.2 + edge.3).sum();
            let mass: f64 = edges.iter().filter(|edge| edge.2 + edge.3 > 0).map(|edge| f64::from(edge.0)).sum();
            let v = |&(prior, mean, visits, lost): &(f32, f32, u32, u32)| {
                let (visits, lost) = (f64::from(visits), f64::from(lost));
                let n = visits + lost;
                // Every visit of an edge has the same value here, so the best is the mean.
                let w = f64::from(mean) * visits + f64::from(lowest) * lost;
                let start = match first_play {
                    FirstPlay::Zero => 0.0,
                    FirstPlay::Parent | FirstPlay::Reduction => f64::from(value),
                };
                let is_reduced = n == 0.0 && first_play == FirstPlay::Reduction;
                let f = if is_reduced { start - f64::from(first_play_reduction) * mass.sqrt() } else { start };
                let q = (f + w) / (1.0 + n);
                let u = f64::from(exploration) * f64::from(prior) * f64::from(sum).sqrt() / (1.0 + n);
                q + u
            };
            let largest = edges.iter().map(v).fold(f64::NEG_INFINITY, f64::max);
            prop_assert!(v(&edges[chosen]) > largest - 1e-4);
        }
    }

    /// One good visit among bad ones counts for more if the best has a share.
    #[test]
    fn max_share_raises_an_edge_with_one_good_visit() {
        for (max_share, expected) in [(0.0, 0), (0.9, 1)] {
            let settings = Settings {
                max_share,
                exploration: 0.0,
                first_play: FirstPlay::Zero,
                ..Settings::default()
            };
            let (mut tree, at) = node(&settings, 0.0, &[(0.5, 0.4, 4, 0), (0.5, 0.0, 3, 0)]);
            tree.back_up(&[Step { node: at, edge: 1 }], games::FirstValue::new(1.0), 1.0);
            let mut ties = Draws::new(KEY, 0, Purpose::Ties);
            let chosen = Selector::new(&settings, 0.0).select(&tree, at, &[], false, &mut ties);
            assert_eq!(chosen, expected);
        }
    }
}
