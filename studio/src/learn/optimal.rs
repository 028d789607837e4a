//! Solver tests: positions whose best moves an exact solver knows, always the same, and the share of them that a network finds.
//! `minuet bench accuracy` measures the same with more positions.

use arena::solver_test::SolverTest;
use games::erased::{AnyState, Variant};
use search::{Draws, GameKey, Purpose};

/// Number of positions.
pub const POSITIONS: usize = 100;
/// Fewest random moves before a position: from there on, the solver of Connect Four needs milliseconds.
const LEAST: usize = 16;
/// Range of the number of random moves.
const RANGE: usize = 16;
/// Most positions that are drawn.
const ATTEMPTS: u64 = 2_000;

/// Positions, and the test of each.
pub type Questions = (Vec<Box<dyn AnyState>>, Vec<SolverTest>);

/// Makes the tests of a game: [`POSITIONS`] positions, each with its test, or none if the game has no solver. Takes a second or two.
pub fn solver_tests(variant: &dyn Variant) -> Questions {
    let start = variant.start(None).ok();
    let Some(start) = start.filter(|start| start.game().has_solver) else {
        return Default::default();
    };
    let drawn = (0..ATTEMPTS).filter_map(|number| {
        let key = GameKey {
            run_seed: 0,
            game: number,
        };
        let mut draws = Draws::new(key, 0, Purpose::Opening);
        let moves = LEAST + draws.below(RANGE);
        SolverTest::draw(&*start, &mut draws, moves)
    });
    drawn.take(POSITIONS).unzip()
}

/// Share of the optimal moves that random moves find.
pub fn at_random(tests: &[SolverTest]) -> f64 {
    let shares = tests.iter().map(SolverTest::share_of_optimal);
    shares.sum::<f64>() / tests.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use games::registry;

    use super::*;

    fn tests_of(game: &str) -> Vec<SolverTest> {
        let game = registry::find(game).unwrap();
        solver_tests(&*game.variant(&game.rules(), None).unwrap()).1
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
