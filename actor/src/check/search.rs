//! The record against its search: with the same network, every decision comes out as it was recorded.
//!
//! A search is determined by its settings, the game's key and the evaluations. The evaluations of a game belong to the
//! version that answered, and a record says at each position which was the newest until then: so a game is followed up to
//! the position where a second version came in, from where nobody knows who answered what.

use games::{Game, MoverValue, Symmetry};
use proto::v1;
use search::{Evaluation, LeafId, LeafRequest, Search};

use super::{Position, Premises, Problem, Unplayable, positions};
use crate::settings::temperature;

/// Root values may differ by this much: sums of the network's values, in single precision.
const VALUE_TOLERANCE: f32 = 1e-5;

/// A leaf as the network is asked about it.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// The row, in the leaf's symmetry.
    pub row: Vec<u32>,
    /// Policy indices of the legal actions in that symmetry.
    pub legal: Vec<u32>,
}

/// What the network says about a leaf.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// One prior for each legal action, rounded as on the wire (binary16).
    pub priors: Vec<f32>,
    /// The value for the player to act.
    pub value: f32,
}

/// How far a record could be followed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Followed {
    /// Positions whose decision came out exactly as recorded: all visits, and the action.
    pub positions: usize,
    /// Positions that could have been followed: up to the second model version.
    pub of: usize,
    /// The largest difference of a root value.
    pub value_difference: f32,
    /// The first difference, where there is one.
    pub difference: Option<Problem>,
}

/// Why a search cannot be played again.
#[derive(Debug, thiserror::Error)]
pub enum FollowError<E> {
    /// The record does not say what is needed.
    #[error(transparent)]
    Unplayable(#[from] Unplayable),
    /// The network did not answer.
    #[error("the network does not answer: {0}")]
    Network(E),
    /// Search and rules contradict the record.
    #[error("the search cannot go on: {0}")]
    Search(String),
}

/// Plays a record's searches again, all answers coming from `evaluate`, which is asked about several leaves at once, in the
/// search's order.
///
/// # Errors
/// [`FollowError`]
pub fn follow<G: Game, E>(
    record: &v1::Game,
    mut evaluate: impl FnMut(&[Question]) -> Result<Vec<Answer>, E>,
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
        // As the record is written: a solution that is known stands for all visits.
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
        let chosen = search.choose(temperature(&premises.config.temperature, position.ply));
        let problem = compare(&position, &visited, decision.value, chosen);
        // NaN is not larger than anything.
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
    evaluate: &mut impl FnMut(&[Question]) -> Result<Vec<Answer>, E>,
) -> Result<(), FollowError<E>> {
    let mut asked: Vec<LeafId> = Vec::new();
    let mut questions: Vec<Question> = Vec::new();
    while !search.is_decided() {
        asked.clear();
        questions.clear();
        search.gather(|leaf| {
            asked.push(leaf.id);
            questions.push(question(&leaf, encoding));
        });
        if asked.is_empty() {
            continue;
        }
        let answers = evaluate(&questions).map_err(FollowError::Network)?;
        if answers.len() != asked.len() {
            return Err(FollowError::Search(format!(
                "{} answers came to {} questions",
                answers.len(),
                asked.len()
            )));
        }
        for (&id, answer) in asked.iter().zip(&answers) {
            let evaluation = Evaluation {
                priors: &answer.priors,
                value: MoverValue::new(answer.value.clamp(-1.0, 1.0)),
            };
            search
                .apply(id, evaluation)
                .map_err(|error| FollowError::Search(error.to_string()))?;
        }
    }
    Ok(())
}

fn question<G: Game>(leaf: &LeafRequest<'_, G>, encoding: G::Encoding) -> Question {
    let mut row = Vec::new();
    leaf.state.write_row(encoding, leaf.symmetry, &mut row);
    let legal = leaf.legal.iter();
    Question {
        row,
        legal: legal
            .map(|&action| leaf.state.policy_index(encoding, leaf.symmetry, action))
            .collect(),
    }
}
