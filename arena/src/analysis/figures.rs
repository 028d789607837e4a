//! A search in numbers: [`Figures`].

use std::collections::VecDeque;

use games::{Action, FirstValue, MoverValue, Outcome, Player, erased::AnyState};
use proto::v1::AnalysisNode;

use crate::players::searches::AnySearch;

/// Figures of a search of one position.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Visits so far.
    pub visits: u32,
    /// Value of the position, for the player to act.
    pub value: MoverValue,
    /// Value of the position by the network alone, for the player to act.
    pub evaluation: MoverValue,
    /// Player to act.
    pub mover: Player,
    /// Outcome, if it is proven.
    pub proven: Option<Outcome>,
    /// Share of the visits whose value is an outcome instead of an evaluation, in [0, 1].
    pub certain: f32,
    /// Figures of the legal actions, most visited first, and of equally visited ones those with the larger prior.
    pub rows: Vec<Row>,
}

/// Figures of one action.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The action.
    pub action: Action,
    /// Prior of the network.
    pub prior: f32,
    /// Visits of the action.
    pub visits: u32,
    /// Mean value of these visits for the player to act; `None` without visits.
    pub value: Option<MoverValue>,
    /// Outcome of the game after the action, if it is proven.
    pub proven: Option<Outcome>,
    /// Most visited line that begins with the action; empty for all but the first rows.
    pub line: Vec<Action>,
}

impl Figures {
    /// Returns the figures of a search, with lines of the first `lines` rows.
    pub fn of(search: &dyn AnySearch, lines: usize) -> Self {
        let decision = search.decision();
        let look = search.look(&[]);
        let proven = |action| {
            let children = look.as_ref().map(|look| &look.children)?;
            children.iter().find(|child| child.action == action)?.proven
        };
        let numbers = decision.visits.iter().zip(&decision.values);
        let actions = decision.actions.iter().zip(&decision.priors).zip(numbers);
        let mut rows: Vec<Row> = actions
            .map(|((&action, &prior), (&visits, &value))| Row {
                action,
                prior,
                visits,
                value: (visits > 0).then_some(value),
                proven: proven(action),
                line: Vec::new(),
            })
            .collect();
        rows.sort_by(|one, other| {
            (other.visits, other.prior.to_bits()).cmp(&(one.visits, one.prior.to_bits()))
        });
        for row in rows.iter_mut().take(lines).filter(|row| row.visits > 0) {
            row.line = search.principal_variation(Some(row.action));
        }
        let visits = search.visits_done();
        Self {
            visits,
            value: decision.value,
            evaluation: decision.evaluation,
            mover: decision.mover,
            proven: look.as_ref().and_then(|look| look.proven),
            certain: search.counters().terminal_visits as f32 / visits.max(1) as f32,
            rows,
        }
    }

    /// Value of the position, for the first player.
    pub fn first_value(&self) -> FirstValue {
        self.value.of_first(self.mover)
    }
}

/// Returns every node of a search that has visits, in the order of depth.
pub fn tree(search: &dyn AnySearch) -> Vec<AnalysisNode> {
    let mut nodes = Vec::new();
    let root = AnalysisNode {
        visits: search.visits_done(),
        ..AnalysisNode::default()
    };
    let mut waiting: VecDeque<(Vec<Action>, AnalysisNode)> = VecDeque::from([(Vec::new(), root)]);
    while let Some((path, mut node)) = waiting.pop_front() {
        if let Some(look) = search.look(&path) {
            node.mover = look.mover.index() as u32;
            node.evaluation = look.evaluation.map(MoverValue::get);
            let visited = look.children.iter().filter(|child| child.visits > 0);
            waiting.extend(visited.map(|child| {
                let below = AnalysisNode {
                    parent: Some(nodes.len() as u32),
                    action: Some(child.action),
                    prior: child.prior,
                    visits: child.visits,
                    value: child.value.map(MoverValue::get),
                    q: child.terms.map(|terms| terms.value),
                    u: child.terms.map(|terms| terms.exploration),
                    ..AnalysisNode::default()
                };
                (path.iter().copied().chain([child.action]).collect(), below)
            }));
        }
        nodes.push(node);
    }
    nodes
}

/// Divides a line that begins in `state` into turns, of which the last may be incomplete.
pub fn turns(state: &dyn AnyState, line: &[Action]) -> Vec<Vec<Action>> {
    let mut state = state.copy();
    let mut turns: Vec<Vec<Action>> = Vec::new();
    for &action in line {
        match turns.last_mut().filter(|_| state.is_mid_turn()) {
            Some(turn) => turn.push(action),
            None => turns.push(vec![action]),
        }
        state.play_legal(action);
    }
    turns
}

/// Writes turns that begin in `state` as people write them.
pub fn texts(state: &dyn AnyState, turns: &[Vec<Action>]) -> Vec<String> {
    let mut state = state.copy();
    let write = |turn: &Vec<Action>| {
        let text = state.write_turn(turn);
        turn.iter().for_each(|&action| state.play_legal(action));
        text
    };
    turns.iter().map(write).collect()
}
