//! Solutions of one-player games, compared with a breadth-first search.

use games::{
    Game, Outcome,
    generator::{GeneratorGame, Rules},
};

use super::{
    KEY,
    game::{legal, spread, uniform},
};
use crate::{FirstPlay, Reuse, Search, Settings};

/// Returns the fewest actions to a solution, if there is one of at most `most` actions.
fn shortest(start: &GeneratorGame, most: usize) -> Option<usize> {
    let mut layer = vec![start.clone()];
    let mut seen = std::collections::HashSet::new();
    for length in 1..=most {
        let mut next = Vec::new();
        for state in &layer {
            for action in legal(state) {
                let mut state = state.clone();
                state.play_legal(action);
                match state.outcome() {
                    Some(Outcome::Scored(value)) if value > 0.0 => return Some(length),
                    Some(_) => {}
                    None if seen.insert(state.clan().hash()) => next.push(state),
                    None => {}
                }
            }
        }
        layer = next;
    }
    None
}

fn problems(level: u32, count: usize) -> Vec<GeneratorGame> {
    let mut seed = 17u64;
    let mut draw = |below: usize| {
        seed = spread(seed);
        seed as usize % below.max(1)
    };
    (0..count)
        .map(|_| {
            GeneratorGame::draw_start(&Rules::default(), level, &mut draw)
                .unwrap()
                .start
        })
        .collect()
}

fn settings(visits: u32) -> Settings {
    Settings {
        visits,
        discount: 0.97,
        first_play: FirstPlay::Reduction,
        first_play_reduction: 0.1,
        stop_when_solved: true,
        noise_fraction: 0.0,
        leaves: 4,
        ..Settings::default()
    }
}

#[test]
fn a_proven_solution_is_the_shortest() {
    let (mut proven, mut early) = (0, 0);
    for (number, start) in problems(1, 12).into_iter().chain(problems(2, 12)).enumerate() {
        let settings = Settings {
            max_share: [0.0, 0.25][number % 2],
            reuse: [Reuse::Gray, Reuse::Keep][number / 2 % 2],
            ..settings(6000)
        };
        let mut search = Search::new(start.clone(), settings, KEY);
        search.decide(uniform).unwrap();
        let Some(solution) = search.solution().map(<[u32]>::to_vec) else {
            continue;
        };
        let fewest = shortest(&start, solution.len()).unwrap();
        assert!(fewest <= solution.len());
        if search.is_solution_proven() {
            proven += 1;
            early += usize::from(search.visits_done() < 6000);
            assert_eq!(fewest, solution.len(), "{}", start.position());
        }
        // Play follows the solution at any temperature.
        let value = search.decision().value.get();
        assert!((value - 0.97f32.powi(solution.len() as i32)).abs() < 1e-6);
        for (played, &action) in solution.iter().enumerate() {
            search.decide(uniform).unwrap();
            let left = search.solution().unwrap();
            assert!(left.len() <= solution.len() - played);
            if search.is_solution_proven() {
                assert_eq!(search.choose(1.0), Some(left[0]));
            }
            let chosen = search.choose(1.0).unwrap();
            search.advance(chosen).unwrap();
            if chosen != action {
                break;
            }
        }
    }
    assert!(proven >= 18, "{proven} proofs");
    assert!(early >= 18, "{early} searches ended early");
}

#[test]
fn without_stop_when_solved_no_decision_ends_early() {
    for start in problems(1, 3) {
        let settings = Settings {
            stop_when_solved: false,
            ..settings(300)
        };
        let mut search = Search::new(start, settings, KEY);
        search.decide(uniform).unwrap();
        assert_eq!((search.visits_done(), search.solution()), (300, None));
    }
}

#[test]
fn an_action_off_the_solution_drops_it() {
    let start = problems(1, 1).remove(0);
    let mut search = Search::new(start, settings(3000), KEY);
    search.decide(uniform).unwrap();
    let first = search.solution().unwrap()[0];
    let other = legal(search.state())
        .into_iter()
        .find(|&action| action > 1 && action != first)
        .unwrap();
    search.advance(other).unwrap();
    assert_eq!(search.solution(), None);
    assert!(!search.is_decided());
}
