//! A second implementation of serial UCT, straight from the specification: recursive, boxed, one edge after the other, with
//! the kept subtree cleared node by node. It shares only the seeded generator with the search.

use games::{Action, FirstValue, Game, Outcome, Player};
use proptest::prelude::*;

use super::{
    Shape, TreeGame, any_key, any_noise, any_settings,
    game::{any_shape, evaluate},
};
use crate::{Draws, FirstPlay, GameKey, Purpose, Reuse, Root, Search, Settings, noise};

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
    /// Value for the first player with best play of both, if it is proven.
    proof: Option<f32>,
    /// True if the game continues although the node has a result.
    is_cut: bool,
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

fn sign(player: Player) -> f32 {
    if player == Player::First { 1.0 } else { -1.0 }
}

impl Edge {
    fn proof(&self) -> Option<f32> {
        self.child.as_ref().and_then(|child| child.proof)
    }
}

impl Node {
    fn leaf<const PLAYERS: u8>(state: &TreeGame<PLAYERS>, settings: &Settings) -> Self {
        Self::new(state, settings, TreeGame::<PLAYERS>::is_asked(settings))
    }

    fn root<const PLAYERS: u8>(state: &TreeGame<PLAYERS>, settings: &Settings) -> Self {
        Self::new(state, settings, false)
    }

    fn new<const PLAYERS: u8>(state: &TreeGame<PLAYERS>, settings: &Settings, is_asked: bool) -> Self {
        let mut legal = Vec::new();
        state.legal_actions(&mut legal);
        let result = match state.outcome() {
            Some(outcome) => Some(outcome.value()),
            None if legal.is_empty() => Some(Outcome::Draw.value()),
            None => None,
        };
        let known = state.known().filter(|_| is_asked && result.is_none());
        let is_cut = known.is_some();
        let result = result.or(known.map(|known| known.outcome.value()));
        if is_cut {
            legal.clear();
        }
        let edge = |action| Edge {
            action,
            prior: 0.0,
            total: 0.0,
            visits: 0,
            child: None,
        };
        Self {
            mover: state.mover,
            proof: result
                .map(FirstValue::get)
                .filter(|_| PLAYERS == 2 && settings.solver),
            is_cut,
            result,
            evaluation: None,
            is_expanded: false,
            edges: legal.into_iter().map(edge).collect(),
        }
    }

    /// Proves the node by its children, if they suffice.
    fn prove(&mut self) {
        let sign = sign(self.mover);
        let proofs: Vec<Option<f32>> = self.edges.iter().map(Edge::proof).collect();
        if proofs.contains(&Some(sign)) {
            self.proof = Some(sign);
        } else if !proofs.contains(&None) && !proofs.is_empty() {
            self.proof = Some(if proofs.contains(&Some(0.0)) { 0.0 } else { -sign });
        }
    }

    /// Returns true for an edge that is not worth a visit any more.
    fn refutes(&self, edge: &Edge) -> bool {
        match (self.proof, edge.proof()) {
            (Some(own), below) => below != Some(own),
            (None, below) => below == Some(-sign(self.mover)),
        }
    }

    /// Returns the visits of a decision, without those of refuted edges if others have any.
    fn open_visits(&self) -> Vec<u32> {
        let open = |edge: &Edge| if self.refutes(edge) { 0 } else { edge.visits };
        let open: Vec<u32> = self.edges.iter().map(open).collect();
        if open.iter().sum::<u32>() == 0 {
            return self.edges.iter().map(|edge| edge.visits).collect();
        }
        open
    }

    /// Returns true if all visits went to proven losses, although another edge is open.
    fn has_only_lost_visits(&self) -> bool {
        let mut visited = self.edges.iter().filter(|edge| edge.visits > 0);
        self.proof.is_none() && visited.all(|edge| self.refutes(edge))
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
            root: Node::root(&state, &settings),
            settings,
            key,
            ply: 0,
            state,
            root_priors: Vec::new(),
            ties: Draws::new(key, 0, Purpose::Ties),
            evaluations: 0,
        }
    }

    /// Returns true if a proof ends a decision at this node.
    fn is_solved(&self, root: &Node) -> bool {
        self.settings.stop_when_solved && root.proof.is_some()
    }

    /// Proves a new decision node that the game knows by the actions that it knows.
    fn ask_the_game(&self, root: &mut Node) {
        let asks = PLAYERS == 2 && self.settings.solver;
        if !asks || root.evaluation.is_some() || self.state.known().is_none() {
            return;
        }
        for edge in &mut root.edges {
            let mut state = self.state.clone();
            state.play(edge.action).unwrap();
            let child = Node::leaf(&state, &self.settings);
            edge.child = child.result.is_some().then(|| Box::new(child));
        }
        root.prove();
    }

    fn decide(&mut self) {
        self.ties = Draws::new(self.key, self.ply, Purpose::Ties);
        self.root_priors.clear();
        let mut root = std::mem::replace(&mut self.root, Node::root(&self.state, &self.settings));
        self.ask_the_game(&mut root);
        if root.result.is_none() && (root.evaluation.is_some() || !self.is_solved(&root)) {
            let state = self.state.clone();
            if root.evaluation.is_none() {
                self.evaluate(&mut root, &state);
            }
            root.is_expanded = true;
            self.root_priors = root.edges.iter().map(|edge| edge.prior).collect();
        }
        let is_searched = !self.root_priors.is_empty();
        if is_searched && self.settings.root == Root::Gumbel {
            self.halve(&mut root);
        } else if is_searched {
            let state = self.state.clone();
            let mut draws = Draws::new(self.key, self.ply, Purpose::Noise);
            let (fraction, total_alpha) = (self.settings.noise_fraction, self.settings.noise_total_alpha);
            if fraction > 0.0 {
                noise::mix(fraction, total_alpha, &mut draws, &mut self.root_priors);
            }
            let mut left = self.settings.visits;
            while (left > 0 || root.has_only_lost_visits()) && !self.is_solved(&root) {
                self.visit(&mut root, state.clone(), true, None);
                left = left.saturating_sub(1);
            }
        }
        self.root = root;
    }

    /// Runs sequential halving, one visit after the other.
    fn halve(&mut self, root: &mut Node) {
        let state = self.state.clone();
        for edge in &mut root.edges {
            (edge.total, edge.visits) = (0.0, 0);
        }
        let mut left = self.settings.visits as usize;
        while (left > 0 || root.has_only_lost_visits()) && root.edges.len() > 1 && !self.is_solved(root) {
            left = left.max(1);
            // All actions are open: at first, and again each time when proofs have refuted all candidates.
            let all: Vec<usize> = (0..root.edges.len()).collect();
            let mut candidates = self.ranked(root, all);
            candidates.truncate(left.min(16));
            let phases = (candidates.len() as f64).log2().ceil().max(1.0) as usize;
            let visits = left;
            let mut target = candidates.iter().map(|&at| root.edges[at].visits).min().unwrap();
            let mut sweeps = visits / (phases * candidates.len());
            while !candidates.is_empty() && left > 0 && !self.is_solved(root) {
                target += 1;
                for &at in &candidates {
                    let edge = &root.edges[at];
                    if left > 0 && edge.visits < target && !root.refutes(edge) && !self.is_solved(root) {
                        self.visit(root, state.clone(), true, Some(at));
                        left -= 1;
                    }
                }
                candidates = self.ranked(root, candidates);
                sweeps = sweeps.saturating_sub(1);
                if sweeps == 0 && !candidates.is_empty() {
                    candidates.truncate((candidates.len() / 2).max(2));
                    sweeps = visits / (phases * candidates.len());
                }
            }
        }
    }

    /// Returns the edges that are not refuted, those with the largest score first.
    fn ranked(&self, root: &Node, mut edges: Vec<usize>) -> Vec<usize> {
        let scores = self.scores(root);
        edges.retain(|&at| !root.refutes(&root.edges[at]));
        edges.sort_by(|&a, &b| scores[b].partial_cmp(&scores[a]).unwrap());
        edges
    }

    /// Returns `g + ln P + s(q)` of each edge.
    fn scores(&self, root: &Node) -> Vec<f64> {
        let mut draws = Draws::new(self.key, self.ply, Purpose::Gumbel);
        let has_noise = self.settings.noise_fraction > 0.0;
        let mut g = || if has_noise { draws.gumbel() } else { 0.0 };
        let logits = self.logits_and_values(root);
        logits.into_iter().map(|(logit, _)| logit + g()).collect()
    }

    /// Returns the value of the decision under the policy of softmax(ln P + s(q)).
    fn value(&self) -> f64 {
        let actions = self.logits_and_values(&self.root);
        let weight: f64 = actions.iter().map(|(logit, _)| logit.exp()).sum();
        let products = actions.iter().map(|(logit, value)| logit.exp() * value);
        products.sum::<f64>() / weight
    }

    /// Returns `ln P + s(q)` and `q` of each edge.
    fn logits_and_values(&self, root: &Node) -> Vec<(f64, f64)> {
        let visits: Vec<f64> = root.open_visits().into_iter().map(f64::from).collect();
        let value = |edge: &Edge| match edge.proof() {
            Some(proof) => f64::from(FirstValue::new(proof).seen_by(root.mover).get()),
            None => f64::from(edge.total / edge.visits as f32),
        };
        let (mut count, mut mass, mut product) = (0.0, 0.0, 0.0);
        for (edge, &visits) in root.edges.iter().zip(&visits) {
            if visits > 0.0 {
                count += visits;
                mass += f64::from(edge.prior);
                product += f64::from(edge.prior) * value(edge);
            }
        }
        let mean = if count > 0.0 { product / mass } else { 0.0 };
        let mixed = (f64::from(root.evaluation.unwrap()) + count * mean) / (1.0 + count);
        let values: Vec<f64> = (root.edges.iter().zip(&visits))
            .map(|(edge, &visits)| if visits > 0.0 { value(edge) } else { mixed })
            .collect();
        let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let spread = largest - values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = visits.iter().copied().fold(0.0, f64::max);
        let Settings { q_scale, q_range, .. } = self.settings;
        let factor = (50.0 + most) * q_scale / spread.max(q_range);
        (root.edges.iter().zip(values))
            .map(|(edge, value)| (f64::from(edge.prior).ln() + factor * (value - largest), value))
            .collect()
    }

    /// Returns the best action of sequential halving among the most visited ones.
    fn choice(&self) -> Action {
        let visits = self.root.open_visits();
        let scores = self.scores(&self.root);
        let mut best = 0;
        for at in 1..visits.len() {
            if visits[at] > visits[best] || (visits[at] == visits[best] && scores[at] > scores[best]) {
                best = at;
            }
        }
        self.root.edges[best].action
    }

    fn evaluate(&mut self, node: &mut Node, state: &TreeGame<PLAYERS>) {
        let (priors, _) = state.evaluation();
        node.evaluation = Some(state.searched_value(&self.settings).get());
        for (edge, prior) in node.edges.iter_mut().zip(priors) {
            edge.prior = prior;
        }
        self.evaluations += 1;
    }

    /// Makes one visit from `node` down, through the edge `first` if there is one; returns the value for the first player.
    fn visit(
        &mut self,
        node: &mut Node,
        mut state: TreeGame<PLAYERS>,
        is_root: bool,
        first: Option<usize>,
    ) -> f32 {
        if let Some(result) = node.result {
            return result.get();
        }
        if let (Some(proof), false) = (node.proof, is_root) {
            return proof;
        }
        let sign = sign(node.mover);
        if node.is_expanded {
            let best = first.unwrap_or_else(|| self.best(node, is_root));
            let settings = self.settings.clone();
            let edge = &mut node.edges[best];
            state.play(edge.action).unwrap();
            let child = edge
                .child
                .get_or_insert_with(|| Box::new(Node::leaf(&state, &settings)));
            let mut value = self.visit(child, state, false, None);
            if PLAYERS == 1 {
                value *= self.settings.discount;
            }
            edge.total += sign * value;
            edge.visits += 1;
            if PLAYERS == 2 && settings.solver {
                node.prove();
            }
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
        // All edges with the largest (V, P). V is 0 for all at a node whose edges have no visits.
        let mut best: Vec<usize> = Vec::new();
        let mut largest = (f32::NEG_INFINITY, f32::NEG_INFINITY);
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
            if node.refutes(edge) {
                continue;
            }
            if key > largest {
                largest = key;
                best.clear();
            }
            if key == largest {
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
            (None, _) | (_, Reuse::Drop) => Node::root(&self.state, &self.settings),
            (Some(child), _) if child.is_cut => Node::root(&self.state, &self.settings),
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
        let mut visits = reference.root.open_visits();
        if reference.root.evaluation.is_none() {
            // Solved without an evaluation.
            visits.clear();
        }
        prop_assert_eq!(&decision.visits, &visits);
        if let Some(proof) = reference.root.proof {
            let value = FirstValue::new(proof).seen_by(decision.mover);
            prop_assert_eq!(decision.value, value);
            prop_assert!(decision.solution.is_some() || edges.is_empty());
        }
        prop_assert_eq!(search.counters().evaluations, reference.evaluations);
        for (edge, value) in edges.iter().zip(&decision.values) {
            match edge.proof() {
                Some(proof) => prop_assert_eq!(FirstValue::new(proof).seen_by(decision.mover), *value),
                None if edge.visits > 0 => prop_assert_eq!(edge.total / edge.visits as f32, value.get()),
                None => {}
            }
        }
        let Some(action) = search.choose(1.0) else {
            prop_assert!(reference.root.result.is_some());
            return Ok(());
        };
        prop_assert_eq!(&decision.searched_priors, &reference.root_priors);
        if reference.settings.root == Root::Gumbel && decision.solution.is_none() {
            prop_assert_eq!(action, reference.choice());
            let error = f64::from(decision.value.get()) - reference.value();
            prop_assert!(error.abs() < 1e-6, "{} {:?}", error, decision);
        }
        search.advance(action).unwrap();
        reference.advance(action);
    }
}

/// Returns random trees, some of which begin with more actions than a Gumbel root has candidates.
fn any_tree() -> impl Strategy<Value = Shape> {
    let wide = (any_shape(), 6u32..14).prop_map(|(shape, depth)| Shape {
        branching: 40,
        depth,
        ..shape
    });
    prop_oneof![3 => any_shape(), 1 => wide]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn two_player_search_equals_the_reference_visit_for_visit(shape in any_tree(), settings in any_settings(Just(1)), key in any_key()) {
        compare::<2>(&shape, settings, key)?;
    }

    /// The settings of lab/seeds/sprl.toml, with one leaf at a time.
    #[test]
    fn the_search_of_sprls_text_equals_the_reference_visit_for_visit(shape in any_tree(), visits in 1u32..400, noise in any_noise(), key in any_key()) {
        let settings = Settings {
            visits,
            exploration: 1.0,
            first_play: FirstPlay::Zero,
            noise_fraction: noise.0,
            noise_total_alpha: noise.1,
            leaves: 1,
            ..Settings::default()
        };
        prop_assert_eq!((settings.root, settings.reuse, settings.solver), (Root::Puct, Reuse::Gray, false));
        compare::<2>(&shape, settings, key)?;
    }

    #[test]
    fn one_player_search_equals_the_reference_visit_for_visit(shape in any_tree(), settings in any_settings(Just(1)), key in any_key()) {
        compare::<1>(&shape, settings, key)?;
    }
}
