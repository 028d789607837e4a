//! Repeats the searches of a record with the same network and compares every decision.
//!
//! The settings, the key of the game and the evaluations determine a search. A record names at each position the newest model
//! version so far. So a game can be repeated up to the position where a second version appears; from there on the record does not
//! tell which version made which evaluation.

use games::{Game, MoverValue, Symmetry};
use network::{PositionBatch, Predictions};
use proto::v1;
use search::{LeafId, Search};

use super::{Position, Premises, Problem, Unplayable, positions};

/// Tolerance for root values, which are sums of network values in single precision.
const VALUE_TOLERANCE: f32 = 1e-5;

/// Result of repeating the searches of a record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Followed {
    /// Number of positions whose decision is exactly as recorded: all visits, and the action.
    pub positions: usize,
    /// Number of positions before the second model version.
    pub of: usize,
    /// Largest difference of a root value.
    pub value_difference: f32,
    /// First difference, if there is one.
    pub difference: Option<Problem>,
}

/// Error: the searches of a record cannot be repeated.
#[derive(Debug, thiserror::Error)]
pub enum FollowError<E> {
    /// The record cannot be replayed.
    #[error(transparent)]
    Unplayable(#[from] Unplayable),
    /// The network returned no evaluations.
    #[error("the network returns no evaluations: {0}")]
    Network(E),
    /// The search refuses an evaluation or an action of the record.
    #[error("the search cannot continue: {0}")]
    Search(String),
}

/// Repeats the searches of a record. `evaluate` appends the predictions for a batch of leaves. Their priors must be rounded to
/// half precision, as on the wire.
///
/// # Errors
/// [`FollowError`] if the searches cannot be repeated.
pub fn follow<G: Game, E>(
    record: &v1::Game,
    mut evaluate: impl FnMut(&PositionBatch, &mut Predictions) -> Result<(), E>,
) -> Result<Followed, FollowError<E>> {
    let premises = Premises::<G>::of(record)?;
    let first = record.model_of_position.first().copied();
    let of = (record.model_of_position.iter())
        .take_while(|&&model| Some(model) == first)
        .count();
    let mut search = Search::new(premises.start.clone(), premises.settings.clone(), premises.key);
    let mut followed = Followed {
        of,
        ..Followed::default()
    };
    for position in positions(record).map_err(Unplayable::from)?.take(of) {
        decide(&mut search, premises.encoding, &mut evaluate)?;
        let decision = search.decision();
        let state = search.state();
        let index = |action| state.policy_index(premises.encoding, Symmetry::IDENTITY, action);
        // As in the record, the next action of a known solution stands for all visits.
        let visited: Vec<(u32, u32)> = match decision.solution {
            Some(solution) => vec![(index(solution), decision.visits.iter().sum::<u32>().max(1))],
            None => decision
                .actions
                .iter()
                .zip(&decision.visits)
                .filter(|&(_, &visits)| visits > 0)
                .map(|(&action, &visits)| (index(action), visits))
                .collect(),
        };
        let difference = (decision.value.get() - position.root_value).abs();
        let chosen = search.choose(premises.settings.temperature_after(position.ply));
        let problem = compare(&position, &visited, decision.value, chosen);
        // A NaN fails the comparison, and the maximum stays as it is.
        if difference > followed.value_difference {
            followed.value_difference = difference;
        }
        if problem.is_some() {
            followed.difference = problem;
            return Ok(followed);
        }
        search
            .advance(position.action)
            .map_err(|error| FollowError::Search(error.to_string()))?;
        followed.positions += 1;
    }
    Ok(followed)
}

fn compare(
    position: &Position<'_>,
    visited: &[(u32, u32)],
    value: MoverValue,
    chosen: Option<u32>,
) -> Option<Problem> {
    let problem = |field, problem| {
        Some(Problem {
            ply: Some(position.ply),
            field,
            problem,
        })
    };
    let recorded: Vec<(u32, u32)> = position
        .visit_actions
        .iter()
        .copied()
        .zip(position.visits.iter().copied())
        .collect();
    if !recorded.is_empty() && recorded != visited {
        let first = recorded
            .iter()
            .zip(visited)
            .find(|(recorded, found)| recorded != found);
        let text = match first {
            Some((recorded, found)) => format!(
                "policy index {} with {} visits is recorded, the search comes to index {} with {}",
                recorded.0, recorded.1, found.0, found.1
            ),
            None => format!(
                "{} visited actions are recorded, the search visits {}",
                recorded.len(),
                visited.len()
            ),
        };
        return problem("visits", text);
    }
    let recorded = position.root_value;
    let difference = (value.get() - recorded).abs();
    if difference.is_nan() || difference > VALUE_TOLERANCE {
        let text = format!("{recorded} is recorded, the search comes to {}", value.get());
        return problem("root_values", text);
    }
    if chosen != Some(position.action) {
        let text = format!("{} is recorded, the search chooses {chosen:?}", position.action);
        return problem("actions", text);
    }
    None
}

/// Completes one decision.
fn decide<G: Game, E>(
    search: &mut Search<G>,
    encoding: G::Encoding,
    evaluate: &mut impl FnMut(&PositionBatch, &mut Predictions) -> Result<(), E>,
) -> Result<(), FollowError<E>> {
    let mut leaves: Vec<LeafId> = Vec::new();
    let (mut batch, mut predictions) = (PositionBatch::default(), Predictions::default());
    while !search.is_decided() {
        leaves.clear();
        batch.clear();
        predictions.clear();
        search.gather(|leaf| {
            leaves.push(leaf.id);
            batch.push(&leaf, encoding);
        });
        if leaves.is_empty() {
            continue;
        }
        evaluate(&batch, &mut predictions).map_err(FollowError::Network)?;
        let (priors, values) = (predictions.priors.len(), predictions.values.len());
        if priors != batch.legal().len() || values != batch.len() {
            return Err(FollowError::Search(format!(
                "{priors} priors and {values} values for {} leaves with {} legal actions",
                batch.len(),
                batch.legal().len()
            )));
        }
        for (position, &id) in leaves.iter().enumerate() {
            search
                .apply(id, predictions.get(&batch, position))
                .map_err(|error| FollowError::Search(error.to_string()))?;
        }
    }
    Ok(())
}
