//! Checks a record against the rules of its game: every move, row and visit, and the end.

use games::{Action, Game, Symmetry};
use proto::{
    IMPORTED,
    decisions::Decision,
    endings::ADJUDICATED,
    v1::{self, GameResult},
};
use search::{Reuse, Root, completed_q::Results, gumbel::can_choose};

use super::{Premises, Problem, RecordedPosition, positions};
use crate::play::record::{GameEnd, result_of};

/// Largest number of problems reported for one record.
const MOST: usize = 20;
/// Largest error of a recorded value, which is in [-1, 1] and in half precision.
const VALUE_ERROR: f64 = 1.0 / 4096.0;

/// Replays the actions of a record and returns all contradictions; of a record that cannot be replayed at all, the reason.
///
/// The check compares the player to act, the legality of each action, every number of every row, and the end. Visits must be of
/// legal actions and no more than the search can make. Each action must be the one that the game's seed draws from the visits, or with
/// a Gumbel root the one that the seed, the priors and the values choose among the most visited.
pub fn check<G: Game>(record: &v1::Game) -> Vec<Problem> {
    let read = || Ok::<_, Problem>((Premises::<G>::of(record)?, positions(record)?));
    let (premises, positions) = match read() {
        Ok(read) => read,
        Err(problem) => return vec![problem],
    };
    let mut state = premises.start.clone();
    let mut replay = Replay {
        premises,
        problems: Vec::new(),
        ply: None,
        legal: Vec::new(),
        row: Vec::new(),
    };
    for position in positions {
        replay.ply = Some(position.ply);
        if !replay.position(&state, &position) {
            return replay.problems;
        }
        state.play_legal(position.action);
    }
    replay.ply = None;
    replay.end(&state, record);
    replay.problems
}

struct Replay<G: Game> {
    premises: Premises<G>,
    problems: Vec<Problem>,
    ply: Option<usize>,
    legal: Vec<Action>,
    row: Vec<u32>,
}

impl<G: Game> Replay<G> {
    fn note(&mut self, field: &'static str, problem: impl Into<String>) {
        if self.problems.len() < MOST {
            self.problems.push(Problem {
                ply: self.ply,
                field,
                problem: problem.into(),
            });
        }
    }

    /// Checks one position. Returns false if the game cannot be replayed any further.
    fn position(&mut self, state: &G, position: &RecordedPosition<'_>) -> bool {
        if state.outcome().is_some() {
            self.note("actions", "the game is over here, but another action follows");
            return false;
        }
        state.legal_actions(&mut self.legal);
        if self.legal.binary_search(&position.action).is_err() {
            self.note("actions", format!("action {} is not legal here", position.action));
            return false;
        }
        let mover = state.to_move().index();
        if usize::from(position.mover) != mover {
            self.note("movers", format!("{} is recorded, {mover} acts", position.mover));
        }
        self.row(state, position);
        self.visits(state, position);
        true
    }

    fn row(&mut self, state: &G, position: &RecordedPosition<'_>) {
        self.row.clear();
        state.write_row(self.premises.encoding, Symmetry::IDENTITY, &mut self.row);
        if self.row == position.row {
            return;
        }
        let (found, expected) = (position.row, self.row.as_slice());
        let at = found
            .iter()
            .zip(expected)
            .position(|(found, expected)| found != expected);
        let problem = match at {
            Some(at) => format!(
                "value {at} is {}, {} follows from the moves",
                found[at], expected[at]
            ),
            None => format!(
                "the row has {} values, {} follow from the moves",
                found.len(),
                expected.len()
            ),
        };
        self.note("rows", problem);
    }

    fn visits(&mut self, state: &G, position: &RecordedPosition<'_>) {
        if position.visits.is_empty() {
            return;
        }
        let encoding = self.premises.encoding;
        let index = |&action: &Action| state.policy_index(encoding, Symmetry::IDENTITY, action);
        let indices: Vec<u32> = self.legal.iter().map(index).collect();
        let mut visits = vec![0u32; self.legal.len()];
        for (&index, &count) in position.visit_actions.iter().zip(position.visits) {
            let edge = indices.iter().position(|&of_edge| of_edge == index);
            match edge.and_then(|edge| visits.get_mut(edge)) {
                Some(visits) => *visits += count,
                None => {
                    self.note(
                        "visit_actions",
                        format!("policy index {index} belongs to no legal action"),
                    );
                    return;
                }
            }
        }
        let total: u64 = visits.iter().map(|&count| u64::from(count)).sum();
        // With proofs, a search may continue until it has visited every action.
        let further = if self.premises.settings.solver {
            self.legal.len() as u64
        } else {
            0
        };
        let most = u64::from(self.premises.settings.visits) + further;
        if self.premises.settings.reuse != Reuse::Keep && total > most {
            self.note(
                "visits",
                format!("{total} visits, but the search makes at most {most}"),
            );
        }
        if let Some(decision) = &position.decision {
            self.decision(state, position, decision);
        }
        if self.premises.settings.root == Root::Gumbel {
            return self.best_of_halving(position, &indices, &visits);
        }
        let temperature = self.premises.settings.temperature_after(position.ply);
        let drawn = search::decision::chosen(&visits, temperature, self.premises.key, position.ply as u32);
        let expected = drawn.and_then(|edge| self.legal.get(edge)).copied();
        if expected != Some(position.action) {
            let (action, expected) = (
                position.action,
                expected.map_or("none".into(), |action| action.to_string()),
            );
            let problem =
                format!("action {action} was played, but the seed draws {expected} from these visits");
            self.note("actions", problem);
        }
    }

    /// Checks that a Gumbel root chooses the played action. `indices` and `visits` are those of the legal actions.
    fn best_of_halving(&mut self, position: &RecordedPosition<'_>, indices: &[u32], visits: &[u32]) {
        let Ok(place) = self.legal.binary_search(&position.action) else {
            return;
        };
        let can_be_chosen = match &position.decision {
            Some(decision) if decision.is_searched() => {
                let edge_of = |index: &u32| indices.iter().position(|of_edge| of_edge == index);
                let (mut priors, mut values) = (vec![0.0; visits.len()], vec![0.0; visits.len()]);
                let visited = decision.visited_priors.iter().zip(decision.values.iter());
                for (index, (prior, value)) in position.visit_actions.iter().zip(visited) {
                    if let Some(edge) = edge_of(index) {
                        (priors[edge], values[edge]) = (prior.into(), value.into());
                    }
                }
                for (index, prior) in decision.unvisited.iter().zip(decision.unvisited_priors.iter()) {
                    if let Some(edge) = edge_of(index) {
                        priors[edge] = prior.into();
                    }
                }
                let results = Results {
                    priors: &priors,
                    visits,
                    values: &values,
                    evaluation: decision.evaluation.into(),
                };
                let draws = (self.premises.key, position.ply as u32);
                can_choose(place, &results, &self.premises.settings, draws, VALUE_ERROR)
            }
            _ => visits.iter().max() == visits.get(place),
        };
        if !can_be_chosen {
            let action = position.action;
            let problem = format!(
                "action {action} was played, but the seed chooses another one from these visits and values"
            );
            self.note("actions", problem);
        }
    }

    /// Checks that the named actions are exactly the legal ones, and that the played one is named as such.
    fn decision(&mut self, state: &G, position: &RecordedPosition<'_>, decision: &Decision<'_>) {
        let encoding = self.premises.encoding;
        let index = |action| state.policy_index(encoding, Symmetry::IDENTITY, action);
        let named: Vec<u32> = [position.visit_actions, decision.unvisited].concat();
        let mut legal: Vec<u32> = self.legal.iter().map(|&action| index(action)).collect();
        let mut sorted = named.clone();
        legal.sort_unstable();
        sorted.sort_unstable();
        if sorted != legal {
            self.note(
                "decisions.unvisited_actions",
                "with the visited actions these are not the legal actions",
            );
        }
        let played = decision.played.and_then(|place| named.get(place as usize));
        if played != Some(&index(position.action)) {
            self.note(
                "decisions.played",
                format!("another action than {} is named", position.action),
            );
        }
    }

    fn end(&mut self, state: &G, record: &v1::Game) {
        let cut = record.actions.len() >= self.premises.settings.max_actions as usize;
        state.legal_actions(&mut self.legal);
        let end = match state.outcome() {
            Some(outcome) => GameEnd::Rules(outcome),
            // The result is not that of the rules.
            None if record.provenance == IMPORTED && record.ending == ADJUDICATED => return,
            None if cut => GameEnd::MaxActions,
            None if self.legal.is_empty() => GameEnd::NoAction,
            None => {
                self.note("actions", "the game is not over at the end of the record");
                return;
            }
        };
        let (outcome, ending) = end.outcome(state);
        let result = result_of(outcome);
        if record.result != i32::from(result) {
            let found = GameResult::try_from(record.result).map_or("unknown", |found| found.as_str_name());
            self.note(
                "result",
                format!(
                    "{found} is recorded, {} follows from the moves",
                    result.as_str_name()
                ),
            );
        }
        let score = outcome.value().get();
        if record.score.to_bits() != score.to_bits() && record.score != score {
            self.note(
                "score",
                format!("{} is recorded, {score} follows from the moves", record.score),
            );
        }
        let (owners, points) = end.territory(state);
        if record.territory != owners || record.territory_score != points {
            self.note("territory", "other owners or another score follow from the moves");
        }
        if record.ending != ending {
            self.note(
                "ending",
                format!(
                    "`{}` is recorded, `{ending}` follows from the moves",
                    record.ending
                ),
            );
        }
    }
}
