//! Problems that are held out of self-play: by construction no problem of training is one of them.

use std::collections::HashSet;

use games::{
    Game,
    generator::{GeneratorGame, Problem, Rules, symmetry::Change},
};

use crate::play::{drawer, legal};

const RULES: [u8; 2] = [0, 100];

fn rules(pairs: u8) -> Rules {
    Rules {
        pairs,
        ..Rules::default()
    }
}

#[test]
fn self_play_draws_no_held_out_problem_and_the_others_are_held_out() {
    let mut draw = drawer(4);
    for pairs in RULES {
        let mut held_out = HashSet::new();
        for level in 2..=16 {
            for _ in 0..20 {
                let training = GeneratorGame::draw_start(&rules(pairs), level, &mut draw).unwrap();
                assert!(!training.start.problem().is_held_out());
                let drawn = GeneratorGame::draw_held_out(&rules(pairs), level, &mut draw).unwrap();
                let problem = drawn.start.problem();
                assert!(problem.is_held_out());
                assert_eq!(problem.second_target().is_some(), pairs == 100);
                let mut state = drawn.start.clone();
                for &action in &drawn.solution {
                    state.play(action).unwrap();
                }
                assert_eq!(state.ending(), Some("solved"));
                held_out.insert(problem.clone());
            }
        }
        assert!(held_out.len() > 150, "{} different problems", held_out.len());
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
        let change = Change::of_colors(&mut draw);
        let pair = Problem::Pair(first, second);
        let changed = Problem::Pair(change.grid(&first), change.grid(&second));
        assert_eq!(pair.is_held_out(), changed.is_held_out());
        let (one, other) = (Problem::Draw(first), Problem::Draw(change.grid(&first)));
        assert_eq!(
            (one.is_held_out(), other.is_held_out()),
            (number % 32 == 0, number % 32 == 0)
        );
        held_out += usize::from(pair.is_held_out());
    }
    assert!((60..150).contains(&held_out), "{held_out} of 1600");
    assert!(!Problem::Free.is_held_out());
}
