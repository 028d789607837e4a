//! [`SolverTests`]: positions whose best moves an exact solver knows, always the same, and the share of them that a network finds.
//! `minuet bench accuracy` measures the same with more positions.

use arena::solver_test::SolverTest;
use games::{Notation, registry::Visitor};
use search::{Draws, GameKey, Purpose};

use crate::{play::tables::Facts, run::Run};

/// Number of positions.
pub const POSITIONS: usize = 100;
/// Fewest random moves before a position: from there on, the solver of Connect Four needs milliseconds.
const LEAST: usize = 16;
/// Range of the number of random moves.
const RANGE: usize = 16;
/// Most positions that are drawn.
const ATTEMPTS: u64 = 2_000;

/// True if a game has an exact solver.
pub fn has_solver(game: &str) -> bool {
    Facts::of(game).is_ok_and(|facts| facts.has_solver)
}

/// Beginning of the run's games.
fn start<G: Notation>(run: &Run) -> Option<G> {
    let rules = run.config.game.rules.clone().try_into::<G::Rules>();
    G::start(&rules.unwrap_or_default(), None).ok()
}

/// Positions of tests. One that the rules do not allow is left at its last legal action.
pub fn states<G: Notation>(run: &Run, tests: &[SolverTest]) -> Vec<G> {
    let Some(start) = start::<G>(run) else {
        return Vec::new();
    };
    let after = |test: &SolverTest| {
        let mut state = start.clone();
        for &action in &test.actions {
            if state.play(action).is_err() {
                break;
            }
        }
        state
    };
    tests.iter().map(after).collect()
}

/// Makes the tests of the run's game: [`POSITIONS`] positions, or none if the game has no solver. Takes a second or two.
pub struct SolverTests<'a>(pub &'a Run);

impl Visitor for SolverTests<'_> {
    type Output = Vec<SolverTest>;

    fn visit<G: Notation>(self) -> Vec<SolverTest> {
        if !G::HAS_SOLVER {
            return Vec::new();
        }
        let Some(start) = start::<G>(self.0) else {
            return Vec::new();
        };
        let drawn = (0..ATTEMPTS).filter_map(|number| {
            let key = GameKey {
                run_seed: 0,
                game: number,
            };
            let mut draws = Draws::new(key, 0, Purpose::Opening);
            let moves = LEAST + draws.below(RANGE);
            Some(SolverTest::draw(&start, &mut draws, moves)?.1)
        });
        drawn.take(POSITIONS).collect()
    }
}

/// Share of the optimal moves that random moves find.
pub fn at_random(tests: &[SolverTest]) -> f64 {
    let shares = tests.iter().map(SolverTest::share_of_optimal);
    shares.sum::<f64>() / tests.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use games::registry;

    use super::*;

    fn tests_of(game: &str) -> Vec<SolverTest> {
        let run = Run {
            folder: PathBuf::new(),
            name: game.into(),
            config: launcher::new_run(Some(game), &[]).unwrap(),
            is_elsewhere: false,
        };
        registry::visit(game, SolverTests(&run)).unwrap()
    }

    #[test]
    fn connect_four_has_tests_in_which_random_moves_fail_and_chess_has_none() {
        let tests = tests_of("connect-four");
        assert_eq!(tests.len(), POSITIONS);
        assert_eq!(tests, tests_of("connect-four"));
        // `minuet bench accuracy` says 34 % over positions of all phases.
        let random = at_random(&tests);
        assert!((0.2..0.6).contains(&random), "{random}");
        assert!(tests_of("chess").is_empty());
    }
}
