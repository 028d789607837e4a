//! Problems that are held out of self-play: by construction no problem of training is one of them.

use std::collections::HashSet;

use games::{
    Game,
    generator::{Example, GeneratorGame, Problem, Rules},
};

use super::play::{draw_colors, drawer, legal, recolored, solves};

const RULES: [u8; 2] = [0, 100];

fn rules(pairs: u8) -> Rules {
    Rules {
        pairs,
        ..Rules::default()
    }
}

/// Problems of every kind, made in both ways: they come with a solution within their level, and are on their side of the held-out
/// ones. Examples have the rule of the pair, other inputs, and are on its side.
#[test]
fn self_play_draws_no_held_out_problem_and_the_others_are_held_out() {
    let mut draw = drawer(4);
    for (pairs, tasks, drawings) in [
        (0, 0, 0),
        (100, 0, 0),
        (0, 100, 0),
        (0, 0, 100),
        (100, 0, 100),
        (0, 100, 100),
    ] {
        let rules = Rules {
            pairs,
            tasks,
            drawings,
            ..Rules::default()
        };
        let is_pair = pairs + tasks > 0;
        let mut problems = HashSet::new();
        let mut counts = [0; 4];
        for level in 1..=20_u32 {
            let most = match is_pair {
                true => level + level.div_ceil(2) + 2,
                false => level + 1,
            };
            for number in 0..10 {
                // Few problems of the lowest levels are held out.
                let is_held_out = number % 2 == 0 && level > 3;
                let drawn = match is_held_out {
                    true => GeneratorGame::draw_held_out(&rules, level, &mut draw),
                    false => GeneratorGame::draw_start(&rules, level, &mut draw),
                };
                let drawn = drawn.unwrap();
                let (problem, examples) = (drawn.start.problem(), drawn.start.examples());
                assert!(solves(&drawn), "{:?}", drawn.start);
                assert!(drawn.solution.len() <= most as usize, "{:?}", drawn.solution);
                assert!(drawn.start.least_actions_left() as usize <= drawn.solution.len());
                assert_eq!(problem.is_held_out(), is_held_out);
                assert_eq!(problem.second_target().is_some(), is_pair);
                let mut inputs = HashSet::from([*problem.target().unwrap()]);
                for &Example { input, output } in examples.as_slice() {
                    assert!(inputs.insert(input) && input != output);
                    assert_eq!(Problem::Pair(input, output).is_held_out(), is_held_out);
                }
                counts[examples.len()] += 1;
                problems.insert(problem.clone());
            }
        }
        assert!(problems.len() > 150, "{rules:?}: {} problems", problems.len());
        let is_task = counts[0] == 0 && counts[1..].iter().all(|&count| count > 10);
        assert!(if tasks > 0 { is_task } else { counts[0] == 200 }, "{counts:?}");
    }
}

/// Games that fail are relabelled, but never as a solution of a held-out problem.
#[test]
fn hindsight_gives_no_held_out_problem() {
    let mut draw = drawer(8);
    let mut refused = 0;
    for number in 0..400 {
        let rules = rules(RULES[number % 2]);
        let drawn = GeneratorGame::draw_start(&rules, 4, &mut draw).unwrap();
        let mut state = drawn.start.clone();
        let mut played = Vec::new();
        for _ in 0..6 {
            // Marks would end the game.
            let moves: Vec<u32> = legal(&state).into_iter().filter(|&action| action > 1).collect();
            let action = moves[draw(moves.len())];
            state.play(action).unwrap();
            played.push(action);
        }
        let other = drawn.start.in_hindsight(&played);
        assert!(
            other
                .as_ref()
                .is_none_or(|other| !other.start.problem().is_held_out())
        );
        let is_draw = drawn.start.problem().second_target().is_none();
        let drawn = Problem::Draw(state.render());
        refused += usize::from(is_draw && drawn.is_held_out() && other.is_none());
    }
    assert!(refused > 3, "{refused}");
}

/// Training permutes the colours 2 to 9, so that a problem is held out with all its recolourings. About one in sixteen is.
#[test]
fn recoloured_problems_share_their_lot() {
    let mut draw = drawer(6);
    let mut held_out = 0;
    for number in 0..1600 {
        let drawn = match number % 32 {
            0 => GeneratorGame::draw_held_out(&rules(0), 6, &mut draw),
            _ => GeneratorGame::draw_start(&rules(0), 6, &mut draw),
        };
        let first = *drawn.unwrap().start.problem().target().unwrap();
        let second = GeneratorGame::draw_start(&rules(0), 6, &mut draw).unwrap();
        let second = *second.start.problem().target().unwrap();
        let colors = draw_colors(&mut draw);
        let pair = Problem::Pair(first, second);
        let changed = Problem::Pair(recolored(&colors, &first), recolored(&colors, &second));
        assert_eq!(pair.is_held_out(), changed.is_held_out());
        let (one, other) = (Problem::Draw(first), Problem::Draw(recolored(&colors, &first)));
        assert_eq!(
            (one.is_held_out(), other.is_held_out()),
            (number % 32 == 0, number % 32 == 0)
        );
        held_out += usize::from(pair.is_held_out());
    }
    assert!((60..150).contains(&held_out), "{held_out} of 1600");
    assert!(!Problem::Free.is_held_out());
}
