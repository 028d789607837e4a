//! Results of a search as a game record keeps them.

use games::Action;
use proto::{
    decisions::{Entry, Recorder},
    v1::DecisionKind,
};
use search::Decision;

/// Returns the actions that a record names as visited, with their visits. Once a solution is known, its next action is the policy to
/// learn, whatever the visits are.
pub fn visited(decision: &Decision) -> Vec<(Action, u32)> {
    match decision.solution {
        Some(solution) => vec![(solution, decision.visits.iter().sum::<u32>().max(1))],
        None => {
            let visits = decision
                .actions
                .iter()
                .copied()
                .zip(decision.visits.iter().copied());
            visits.filter(|&(_, visits)| visits > 0).collect()
        }
    }
}

/// Records the results of a search in addition to its visits: priors of all legal actions, values of those named as `visited`, and
/// the evaluation. `index` returns the policy index of an action.
pub fn record_search(
    recorder: &mut Recorder,
    decision: &Decision,
    visited: &[(Action, u32)],
    played: Action,
    index: impl Fn(Action) -> u32,
) {
    // A known solution is recorded without a search, and the decision node may not be evaluated before a solution is followed.
    if visited.is_empty() || decision.actions.is_empty() || decision.priors.len() != decision.actions.len() {
        return recorder.push_unrecorded(visited.len());
    }
    let is_named = |action| visited.iter().any(|&(named, _)| named == action);
    let searched = || {
        let numbers = decision.priors.iter().zip(&decision.values);
        decision.actions.iter().zip(numbers)
    };
    let named: Vec<(Action, (f32, f32))> = searched()
        .filter(|&(&action, _)| is_named(action))
        .map(|(&action, (&prior, value))| match decision.solution {
            Some(_) => (action, (prior, decision.value.get())),
            None => (action, (prior, value.get())),
        })
        .collect();
    // A policy computed from these numbers gives nothing to an action that a proof refutes.
    let others: Vec<(Action, f32)> = searched()
        .zip(&decision.refuted)
        .filter(|&((&action, _), _)| !is_named(action))
        .map(|((&action, (&prior, _)), &is_refuted)| (action, if is_refuted { 0.0 } else { prior }))
        .collect();
    let mut places = named
        .iter()
        .map(|&(action, _)| action)
        .chain(others.iter().map(|&(action, _)| action));
    recorder.push(&Entry {
        kind: match decision.solution {
            Some(_) => DecisionKind::Solved,
            None => DecisionKind::Searched,
        },
        played: places.position(|action| action == played).unwrap_or_default(),
        visited: &named.iter().map(|&(_, numbers)| numbers).collect::<Vec<_>>(),
        unvisited: &others
            .iter()
            .map(|&(action, prior)| (index(action), prior))
            .collect::<Vec<_>>(),
        evaluation: decision.evaluation.get(),
    });
}
