//! [`Exam`]: positions whose best moves an exact solver knows, and the share of them that a network finds.
//!
//! Positions come from random play, always the same. Only those count in which some legal move is worth less than the best one. A move
//! is optimal if it keeps the position's value (win, draw, loss), however long the win takes. `minuet bench accuracy` measures the same
//! with more positions.

use std::sync::{Arc, atomic::AtomicBool};

use games::{Action, Notation, registry::Visitor};
use search::{Draws, GameKey, Purpose};

use crate::{play::tables::Facts, run::Run};

/// Positions of an exam.
pub const POSITIONS: usize = 100;
/// Fewest random moves before a position: from there on, the solver of Connect Four needs milliseconds.
const LEAST: usize = 16;
/// Range of the number of random moves.
const RANGE: usize = 16;
/// Most positions that are drawn.
const ATTEMPTS: u64 = 2_000;

/// A position of an exam.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Actions that lead to the position.
    pub actions: Vec<Action>,
    /// Number of legal actions.
    pub legal: usize,
    /// The optimal ones.
    pub optimal: Vec<Action>,
}

/// True if a game has an exam.
pub fn has_exam(game: &str) -> bool {
    Facts::of(game).is_ok_and(|facts| facts.has_solver)
}

/// Beginning of the run's games.
fn start<G: Notation>(run: &Run) -> Option<G> {
    let rules = run.config.game.rules.clone().try_into::<G::Rules>();
    G::start(&rules.unwrap_or_default(), None).ok()
}

/// Positions of questions. One that the rules do not allow is left at its last legal action.
pub fn states<G: Notation>(run: &Run, questions: &[Question]) -> Vec<G> {
    let Some(start) = start::<G>(run) else {
        return Vec::new();
    };
    let after = |question: &Question| {
        let mut state = start.clone();
        for &action in &question.actions {
            if state.play(action).is_err() {
                break;
            }
        }
        state
    };
    questions.iter().map(after).collect()
}

/// Makes the exam of the run's game: [`POSITIONS`] positions, or none if the game has no solver. Takes a second or two.
pub struct Exam<'a>(pub &'a Run);

impl Visitor for Exam<'_> {
    type Output = Vec<Question>;

    fn visit<G: Notation>(self) -> Vec<Question> {
        if !G::HAS_SOLVER {
            return Vec::new();
        }
        let Some(start) = start::<G>(self.0) else {
            return Vec::new();
        };
        let drawn = (0..ATTEMPTS).filter_map(|number| question(&start, number));
        drawn.take(POSITIONS).collect()
    }
}

/// Draws a position and solves it. `None` if the game ended before, or all its moves are worth the same.
fn question<G: Notation>(start: &G, number: u64) -> Option<Question> {
    let key = GameKey {
        run_seed: 0,
        game: number,
    };
    let mut draws = Draws::new(key, 0, Purpose::Opening);
    let mut state = start.clone();
    let mut actions = Vec::new();
    let mut legal = Vec::new();
    for _ in 0..LEAST + draws.below(RANGE) {
        state.legal_actions(&mut legal);
        let &action = legal.get(draws.below(legal.len()))?;
        state.play_legal(action);
        actions.push(action);
        if state.outcome().is_some() {
            return None;
        }
    }
    let mut values = Vec::new();
    state.solve_actions(&Arc::new(AtomicBool::new(false)), &mut |action, value| {
        values.push((action, value));
    });
    let optimal = optimal_actions(&values);
    (optimal.len() < values.len()).then_some(Question {
        actions,
        legal: values.len(),
        optimal,
    })
}

/// Actions of the greatest value.
pub fn optimal_actions(values: &[(Action, i8)]) -> Vec<Action> {
    let best = values.iter().map(|(_, value)| *value).max();
    let optimal = values.iter().filter(|(_, value)| Some(*value) == best);
    optimal.map(|(action, _)| *action).collect()
}

/// Share of the optimal moves that random moves find.
pub fn at_random(questions: &[Question]) -> f64 {
    let shares = questions
        .iter()
        .map(|question| question.optimal.len() as f64 / question.legal.max(1) as f64);
    shares.sum::<f64>() / questions.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use games::registry;

    use super::*;

    fn exam(game: &str) -> Vec<Question> {
        let run = Run {
            folder: PathBuf::new(),
            name: game.into(),
            config: launcher::new_run(Some(game), &[]).unwrap(),
            is_elsewhere: false,
        };
        registry::visit(game, Exam(&run)).unwrap()
    }

    #[test]
    fn connect_four_has_an_exam_in_which_random_moves_fail_and_chess_has_none() {
        let questions = exam("connect-four");
        assert_eq!(questions.len(), POSITIONS);
        assert_eq!(questions, exam("connect-four"));
        // `minuet bench accuracy` says 34 % over positions of all phases.
        let random = at_random(&questions);
        assert!((0.2..0.6).contains(&random), "{random}");
        assert!(exam("chess").is_empty());
    }
}
