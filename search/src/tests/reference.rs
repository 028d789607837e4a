//! A second implementation of serial UCT, straight from the specification: recursive, boxed, one edge after the other, with
//! the kept subtree cleared node by node. It shares only the seeded generator with the search.

use games::{Action, FirstValue, Game, Outcome, Player};
use proptest::prelude::*;

use super::{
    Shape, TreeGame, any_key, any_settings,
    game::{any_shape, evaluate},
};
use crate::{Draws, FirstPlay, GameKey, Purpose, Reuse, Search, Settings, noise};

/// An edge and, once it was visited, the node below it.
struct Edge {
    action: Action,
    prior: f32,
    total: f32,
    visits: u32,
    child: Option<Box<Node>>,
}

/// Terminal nodes have a result; empty ones no evaluation; gray ones are not expanded.
struct Node {
    mover: Player,
    result: Option<FirstValue>,
    evaluation: Option<f32>,
    is_expanded: bool,
    edges: Vec<Edge>,
}

struct Reference<const PLAYERS: u8> {
    settings: Settings,
    key: GameKey,
    ply: u32,
    state: TreeGame<PLAYERS>,
    root: Node,
    root_priors: Vec<f32>,
    ties: Draws,
    evaluations: u64,
}

impl Node {
    fn new<const PLAYERS: u8>(state: &TreeGame<PLAYERS>) -> Self {
        let mut legal = Vec::new();
        state.legal_actions(&mut legal);
        let result = match state.outcome() {
            Some(outcome) => Some(outcome.value()),
            None if legal.is_empty() => Some(Outcome::Draw.value()),
            None => None,
        };
        let edge = |action| Edge {
            action,
            prior: 0.0,
            total: 0.0,
            visits: 0,
            child: None,
        };
        Self {
            mover: state.mover,
            result,
            evaluation: None,
            is_expanded: false,
            edges: legal.into_iter().map(edge).collect(),
        }
    }

    fn clear(&mut self) {
        self.is_expanded = false;
        for edge in &mut self.edges {
            edge.total = 0.0;
            edge.visits = 0;
            if let Some(child) = &mut edge.child {
                child.clear();
            }
        }
    }
}

impl<const PLAYERS: u8> Reference<PLAYERS> {
    fn new(state: TreeGame<PLAYERS>, settings: Settings, key: GameKey) -> Self {
        Self {
            root: Node::new(&state),
            settings,
            key,
            ply: 0,
            state,
            root_priors: Vec::new(),
            ties: Draws::new(key, 0, Purpose::Ties),
            evaluations: 0,
        }
    }

    fn decide(&mut self) {
        self.ties = Draws::new(self.key, self.ply, Purpose::Ties);
        let mut root = std::mem::replace(&mut self.root, Node::new(&self.state));
        if root.result.is_none() {
            let state = self.state.clone();
            if root.evaluation.is_none() {
                self.evaluate(&mut root, &state);
            }
            root.is_expanded = true;
            self.root_priors = root.edges.iter().map(|edge| edge.prior).collect();
            let mut draws = Draws::new(self.key, self.ply, Purpose::Noise);
            let (fraction, total_alpha) = (self.settings.noise_fraction, self.settings.noise_total_alpha);
            noise::mix(fraction, total_alpha, &mut draws, &mut self.root_priors);
            for _ in 0..self.settings.visits {
                self.visit(&mut root, state.clone(), true);
            }
        }
        self.root = root;
    }

    fn evaluate(&mut self, node: &mut Node, state: &TreeGame<PLAYERS>) {
        let (priors, value) = state.evaluation();
        node.evaluation = Some(value.get());
        for (edge, prior) in node.edges.iter_mut().zip(priors) {
            edge.prior = prior;
        }
        self.evaluations += 1;
    }

    /// Makes one visit from `node` down; returns the value for the first player.
    fn visit(&mut self, node: &mut Node, mut state: TreeGame<PLAYERS>, is_root: bool) -> f32 {
        if let Some(result) = node.result {
            return result.get();
        }
        let sign = if node.mover == Player::First { 1.0 } else { -1.0 };
        if node.is_expanded {
            let best = self.best(node, is_root);
            let edge = &mut node.edges[best];
            state.play(edge.action).unwrap();
            let child = edge.child.get_or_insert_with(|| Box::new(Node::new(&state)));
            let mut value = self.visit(child, state, false);
            if PLAYERS == 1 {
                value *= self.settings.discount;
            }
            edge.total += sign * value;
            edge.visits += 1;
            return value;
        }
        if node.evaluation.is_none() {
            self.evaluate(node, &state);
        }
        node.is_expanded = true;
        sign * node.evaluation.unwrap()
    }

    fn best(&mut self, node: &Node, is_root: bool) -> usize {
        let prior = |index: usize| {
            if is_root {
                self.root_priors[index]
            } else {
                node.edges[index].prior
            }
        };
        let sum: u32 = node.edges.iter().map(|edge| edge.visits).sum();
        let value = match self.settings.first_play {
            FirstPlay::Zero => 0.0,
            FirstPlay::Parent | FirstPlay::Reduction => node.evaluation.unwrap(),
        };
        let mut mass = 0.0;
        for (index, edge) in node.edges.iter().enumerate() {
            if edge.visits > 0 {
                mass += prior(index);
            }
        }
        // All edges with the greatest (V, P). V is 0 for all at a node whose edges have no visits.
        let mut best: Vec<usize> = Vec::new();
        let mut greatest = (f32::NEG_INFINITY, f32::NEG_INFINITY);
        for (index, edge) in node.edges.iter().enumerate() {
            let mut first = value;
            if let (FirstPlay::Reduction, 0) = (self.settings.first_play, edge.visits) {
                first -= self.settings.first_play_reduction * mass.sqrt();
            }
            let explore = self.settings.exploration * (sum as f32).sqrt();
            let mut v = (first + edge.total + explore * prior(index)) / (1.0 + edge.visits as f32);
            if sum == 0 {
                v = 0.0;
            }
            let key = (v, prior(index));
            if key > greatest {
                greatest = key;
                best.clear();
            }
            if key == greatest {
                best.push(index);
            }
        }
        if best.len() == 1 {
            best[0]
        } else {
            best[self.ties.below(best.len())]
        }
    }

    fn advance(&mut self, action: Action) {
        self.state.play(action).unwrap();
        self.ply += 1;
        let child = self
            .root
            .edges
            .iter_mut()
            .find(|edge| edge.action == action)
            .and_then(|edge| edge.child.take());
        self.root = match (child, self.settings.reuse) {
            (None, _) | (_, Reuse::Drop) => Node::new(&self.state),
            (Some(child), Reuse::Keep) => *child,
            (Some(mut child), Reuse::Gray) => {
                child.clear();
                *child
            }
        };
    }
}

/// Plays a game with both implementations and compares every result of each decision.
fn compare<const PLAYERS: u8>(shape: &Shape, settings: Settings, key: GameKey) -> Result<(), TestCaseError> {
    let start = TreeGame::<PLAYERS>::of(shape);
    let mut reference = Reference::new(start.clone(), settings.clone(), key);
    let mut search = Search::new(start, settings, key);
    loop {
        reference.decide();
        search.decide(evaluate).unwrap();
        let decision = search.decision();
        let edges = &reference.root.edges;
        prop_assert_eq!(
            &decision.actions,
            &edges.iter().map(|edge| edge.action).collect::<Vec<_>>()
        );
        prop_assert_eq!(
            &decision.visits,
            &edges.iter().map(|edge| edge.visits).collect::<Vec<_>>()
        );
        prop_assert_eq!(search.counters().evaluations, reference.evaluations);
        for (edge, value) in edges.iter().zip(&decision.values) {
            if edge.visits > 0 {
                prop_assert_eq!(edge.total / edge.visits as f32, value.get());
            }
        }
        let Some(action) = search.choose(1.0) else {
            prop_assert!(reference.root.result.is_some());
            return Ok(());
        };
        prop_assert_eq!(&decision.searched_priors, &reference.root_priors);
        search.advance(action).unwrap();
        reference.advance(action);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn two_player_search_equals_the_reference_visit_for_visit(shape in any_shape(), settings in any_settings(Just(1)), key in any_key()) {
        compare::<2>(&shape, settings, key)?;
    }

    #[test]
    fn one_player_search_equals_the_reference_visit_for_visit(shape in any_shape(), settings in any_settings(Just(1)), key in any_key()) {
        compare::<1>(&shape, settings, key)?;
    }
}
