//! Invariants of every tree between two batches: [`check`].

use std::collections::HashSet;

use games::{Game, MoverValue};

use super::{TreeGame, game::legal};
use crate::{
    Reuse, Search,
    tree::{ACTION, NodeId, Stage, Step, VISITS},
};

/// Walks all nodes from the decision node down and checks that counts add up, that no virtual loss is left, and that each
/// evaluation belongs to its state. Returns the number of nodes.
pub fn check<const PLAYERS: u8>(search: &Search<TreeGame<PLAYERS>>) -> usize {
    assert!(!search.is_waiting());
    let mut seen = HashSet::new();
    node(search, search.root, &search.state, true, &mut seen);
    let counters = search.counters();
    assert_eq!(
        counters.visits + counters.root_evaluations,
        counters.evaluations + counters.gray_visits + counters.terminal_visits
    );
    assert!(counters.nodes as usize >= seen.len());
    seen.len()
}

fn node<const PLAYERS: u8>(
    search: &Search<TreeGame<PLAYERS>>,
    at: NodeId,
    state: &TreeGame<PLAYERS>,
    is_root: bool,
    seen: &mut HashSet<u32>,
) {
    let tree = &search.tree;
    assert!(seen.insert(at.0), "two edges lead to one node");
    let kind = tree.kind(at, search.generation);
    let legal = legal(state);
    if let (Some(proof), true) = (tree.proof(at), state.shape.depth - state.depth < 4) {
        assert_eq!(proof, state.solved().outcome, "a wrong proof");
    }
    if tree.is_cut(at) {
        let known = state.known().unwrap();
        assert_eq!((kind, tree.result(at)), (Stage::Terminal, known.outcome.value()));
        return;
    }
    if kind == Stage::Terminal {
        assert!(legal.is_empty());
        let result = state.outcome().map_or(0.0, |outcome| outcome.value().get());
        assert_eq!(tree.result(at).get(), result);
        return;
    }
    assert_eq!(tree.mover(at), state.mover);
    // A word of the action column that equals the action has no virtual losses.
    assert_eq!(tree.column(at, ACTION), legal);
    if kind != Stage::Empty {
        let (priors, _) = state.evaluation();
        assert_eq!(tree.priors(at).collect::<Vec<_>>(), priors, "noise in the tree");
        assert_eq!(tree.evaluation(at), state.searched_value(&search.settings));
    }
    let visits = tree.statistic(at, VISITS);
    let sum: u32 = visits.iter().sum();
    assert_eq!(tree.visit_sum(at), sum);
    let keeps = search.settings.reuse == Reuse::Keep;
    if is_root && kind == Stage::Active && (!keeps || search.has_gumbel_root()) {
        assert_eq!(sum, search.visits_done);
    }
    for (edge, (&action, &visits)) in legal.iter().zip(visits).enumerate() {
        let step = Step {
            node: at,
            edge: edge as u32,
        };
        let Some(child) = tree.child(step) else {
            continue;
        };
        let mut below = state.clone();
        below.play_legal(action);
        node(search, child, &below, false, seen);
        // A Gumbel root counts from zero, and the nodes below it may have kept their visits.
        let begins_at_zero = is_root && keeps && search.has_gumbel_root();
        if kind == Stage::Active && !begins_at_zero {
            let total = tree.totals(at).nth(edge).unwrap();
            edge_adds_up(search, step, child, visits, total);
        }
    }
}

/// Checks that an edge's visits are the one of its child and those of the child's edges.
fn edge_adds_up<const PLAYERS: u8>(
    search: &Search<TreeGame<PLAYERS>>,
    step: Step,
    child: NodeId,
    visits: u32,
    total: f32,
) {
    let tree = &search.tree;
    let mover = tree.mover(step.node);
    let discount = if PLAYERS == 1 {
        search.settings.discount
    } else {
        1.0
    };
    // Visits since the child was proven have its outcome as their value and end there.
    let proof = tree
        .proof(child)
        .map(|outcome| outcome.value().seen_by(mover).get());
    let expected = match tree.kind(child, search.generation) {
        Stage::Empty | Stage::Gray => {
            assert!(visits == 0 || proof.is_some());
            proof.unwrap_or(0.0) * visits as f32
        }
        Stage::Terminal => tree.result(child).seen_by(mover).get() * visits as f32,
        Stage::Active => {
            let since = visits - (1 + tree.visit_sum(child));
            // Without room for a node's statistics its own evaluation is backed up again.
            assert!(since == 0 || proof.is_some() || (tree.is_full() && tree.visit_sum(child) == 0));
            let again = tree.evaluation(child).of_first(tree.mover(child)).seen_by(mover);
            let below: f32 = tree.totals(child).sum();
            let own = tree.evaluation(child).get() + below;
            let own = MoverValue::new(own).of_first(tree.mover(child)).seen_by(mover);
            own.get() + since as f32 * proof.unwrap_or(again.get())
        }
    };
    let expected = expected * discount;
    assert!(
        (total - expected).abs() <= 1e-4 * (1.0 + visits as f32),
        "{total} {expected}"
    );
}
