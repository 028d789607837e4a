//! Tests of problems: marks, limits, cycles, drawn problems with their solutions, hindsight, lower bounds, task files.

use games::{
    Drawn, Game, Outcome,
    generator::{Clan, EpisodeEnd, GeneratorGame, Move, Problem, Rules, task::Task},
};
use proptest::prelude::*;

use super::play::{any_clan, drawer, grid, legal, solves, transformations};

fn action(imp: usize, action: Move) -> u32 {
    GeneratorGame::action(imp, action)
}

/// The clan of the original project's test draws a red line to the lower right on gray, 5×4.
#[test]
fn the_clan_of_the_original_test_is_rendered() {
    let packed = [
        1,
        (8 + 5) | (1 << 8),
        (8 + 4) | (2 << 8),
        (17 + 5) | (3 << 8),
        4 | 13 << 8,
        2 | 6 << 8 | 4 << 16,
        9 | 4 << 8 | 5 << 16,
        9 | 5 << 8 | 5 << 16,
        (17 + 2) | (7 << 8) | (4 << 16),
        28 | 8 << 8 | 4 << 16,
        10 | 9 << 8 | 4 << 16,
    ];
    let clan = Clan::unpack(&packed).unwrap();
    assert_eq!(clan.render().to_string(), "aaaaa\naraaa\naaraa\naaaaa\n\n\n\n");
    let text = clan.to_text();
    assert!(
        text.contains("4   Line (shapes[0]) 5:start=(1, 1) 8:color=red 9:direction=down-right"),
        "{text}"
    );
}

#[test]
fn right_marks_solve_and_wrong_marks_are_an_oops() {
    let rules = Rules::default();
    let start = Clan::start().render();
    let other = grid(&[&[1, 2], &[3, 4]]);
    let after = |problem: &Problem, marks: &[Move]| {
        let mut state = GeneratorGame::posed(&rules, problem.clone());
        for &mark in marks {
            state.play(action(0, mark)).unwrap();
        }
        (state.end(), state.step_marked())
    };
    let (step, complete) = (Move::MARK_STEP, Move::MARK_COMPLETE);
    assert_eq!(
        after(&Problem::Draw(start), &[complete]),
        (Some(EpisodeEnd::Solved), false)
    );
    assert_eq!(after(&Problem::Draw(start), &[step]).0, Some(EpisodeEnd::Oops));
    assert_eq!(
        after(&Problem::Draw(other), &[complete]).0,
        Some(EpisodeEnd::Oops)
    );
    // Without a problem, marks propose a grid or a pair.
    assert_eq!(
        after(&Problem::Free, &[complete]),
        (Some(EpisodeEnd::Proposed), false)
    );
    assert_eq!(after(&Problem::Free, &[step]), (None, true));
    assert_eq!(
        after(&Problem::Free, &[step, complete]),
        (Some(EpisodeEnd::Proposed), true)
    );
    assert_eq!(after(&Problem::Free, &[step, step]).0, Some(EpisodeEnd::Oops));
    let same = Problem::Pair(start, start);
    assert_eq!(after(&same, &[step]), (None, true));
    assert_eq!(after(&same, &[step, complete]).0, Some(EpisodeEnd::Solved));
    assert_eq!(after(&same, &[complete]).0, Some(EpisodeEnd::Oops));
    assert_eq!(after(&same, &[step, step]).0, Some(EpisodeEnd::Oops));
    assert_eq!(
        after(&Problem::Pair(start, other), &[step, complete]).0,
        Some(EpisodeEnd::Oops)
    );
}

#[test]
fn grids_of_different_sizes_are_different() {
    let black = grid(&[&[0u8; 8][..]; 7]);
    let state = GeneratorGame::posed(&Rules::default(), Problem::Draw(black));
    assert_ne!(state.render(), black);
    let mut narrow = state.clone();
    narrow.play(action(2, Move(20))).unwrap();
    assert_eq!(narrow.render(), black);
    narrow.play(action(0, Move::MARK_COMPLETE)).unwrap();
    assert_eq!(narrow.outcome(), Some(Outcome::Scored(1.0)));
}

#[test]
fn the_move_limit_ends_play_unsolved() {
    let rules = Rules {
        move_limit: 3,
        ..Rules::default()
    };
    let mut state = GeneratorGame::posed(&rules, Problem::Draw(grid(&[&[5]])));
    for _ in 0..3 {
        assert_eq!(state.outcome(), None);
        state.play(action(1, Move(20))).unwrap();
    }
    assert_eq!(
        (state.end(), state.ending()),
        (Some(EpisodeEnd::MoveLimit), Some("move-limit"))
    );
    assert!(legal(&state).is_empty());
    // The last move within the limit may solve the problem.
    let drawn = Clan::start().after(0, Move(2)).unwrap().render();
    let mut state = GeneratorGame::posed(&rules, Problem::Draw(drawn));
    for (imp, made) in [(0, Move(4)), (4, Move(18)), (0, Move::MARK_COMPLETE)] {
        state.play(action(imp, made)).unwrap();
    }
    assert_eq!(state.end(), Some(EpisodeEnd::Solved));
}

#[test]
fn moves_back_to_an_earlier_clan_are_refused_or_an_oops() {
    let mut strict = GeneratorGame::posed(&Rules::default(), Problem::Free);
    let mut oops = GeneratorGame::posed(&Rules::oops(), Problem::Free);
    let mut allowed = GeneratorGame::posed(&Rules::compatibility(), Problem::Free);
    let (dec, inc) = (action(1, Move(20)), action(1, Move(19)));
    for state in [&mut strict, &mut oops, &mut allowed] {
        state.play(dec).unwrap();
    }
    assert!(!legal(&strict).contains(&inc) && strict.clone().play(inc).is_err());
    assert!(legal(&oops).contains(&inc));
    oops.play(inc).unwrap();
    assert_eq!(oops.end(), Some(EpisodeEnd::Oops));
    allowed.play(inc).unwrap();
    assert_eq!((allowed.end(), allowed.clan()), (None, &Clan::start()));
}

/// One clan before and after the step is marked is two positions.
#[test]
fn an_earlier_clan_may_be_reached_again_after_the_step() {
    let clan = Clan::start().after(1, Move(20)).unwrap();
    let problem = Problem::Pair(clan.render(), Clan::start().render());
    let mut state = GeneratorGame::posed(&Rules::default(), problem);
    state.play(action(1, Move(20))).unwrap();
    state.play(action(0, Move::MARK_STEP)).unwrap();
    state.play(action(1, Move(19))).unwrap();
    state.play(action(0, Move::MARK_COMPLETE)).unwrap();
    assert_eq!(state.end(), Some(EpisodeEnd::Solved));
}

/// No single transformation of a known solution can be left out, and solutions are shorter than the walks that made them.
#[test]
fn known_solutions_have_no_move_that_does_not_matter() {
    let mut draw = drawer(21);
    for pairs in [0, 100] {
        let rules = Rules {
            pairs,
            ..Rules::default()
        };
        let (mut moves, mut walked) = (0, 0);
        for level in [4, 8, 12] {
            for _ in 0..20 {
                let drawn = GeneratorGame::draw_start(&rules, level, &mut draw).unwrap();
                walked += level as usize + 1;
                if pairs > 0 {
                    walked += level.div_ceil(2) as usize + 1;
                }
                moves += drawn.solution.len();
                for left_out in 0..drawn.solution.len() {
                    let mut solution = drawn.solution.clone();
                    solution.remove(left_out);
                    let other = Drawn {
                        start: drawn.start.clone(),
                        solution,
                    };
                    assert!(!solves(&other), "move {left_out} of {:?}", drawn.solution);
                }
            }
        }
        assert!(10 * moves < 9 * walked, "{moves} moves of {walked} remain");
    }
}

#[test]
fn a_failed_pair_becomes_a_pair_in_hindsight() {
    let first = Clan::start().after(1, Move(20)).unwrap().render();
    let second = grid(&[&[7]]);
    let problem = Problem::Pair(first, second);
    let (narrow, low, step, complete) = (
        action(1, Move(20)),
        action(2, Move(20)),
        action(0, Move::MARK_STEP),
        action(0, Move::MARK_COMPLETE),
    );
    let start = GeneratorGame::posed(&Rules::default(), problem);
    let drawn = |width: usize, height: usize| grid(&vec![&[0u8; 8][..width]; height]);
    // The step was marked where it is right, or it was not marked, or at the wrong place.
    for (actions, grids) in [
        (vec![narrow, step, low, low, complete], Some([(7, 8), (7, 6)])),
        (vec![narrow, low, narrow, complete], Some([(7, 7), (6, 7)])),
        (vec![narrow, low, narrow, step], Some([(7, 7), (6, 7)])),
        (vec![narrow, step, complete], None),
        (vec![step], None),
    ] {
        let mut state = start.clone();
        for &action in &actions {
            state.play(action).unwrap();
        }
        assert_eq!(state.end(), Some(EpisodeEnd::Oops));
        let other = start.in_hindsight(&actions);
        let found = other.as_ref().map(|other| other.start.problem().clone());
        let expected = grids.map(|grids| {
            let [first, second] = grids.map(|(width, height)| drawn(width, height));
            Problem::Pair(first, second)
        });
        assert_eq!(found, expected, "{actions:?}");
        assert!(other.is_none_or(|other| solves(&other)));
    }
}

/// Each kind of problem has its share and rules of its own.
#[test]
fn rules_with_pairs_and_tasks_have_three_kinds_of_problems() {
    let rules = Rules {
        pairs: 30,
        tasks: 20,
        ..Rules::default()
    };
    let kinds = GeneratorGame::problem_kinds(&rules);
    let shares: Vec<(&str, u32)> = kinds.iter().map(|kind| (kind.name, kind.share)).collect();
    assert_eq!(shares, [("draw", 50), ("pair", 30), ("task", 20)]);
    let mut draw = drawer(2);
    for (number, kind) in kinds.iter().enumerate() {
        for _ in 0..20 {
            let drawn = GeneratorGame::draw_start(&kind.rules, 3, &mut draw).unwrap();
            assert_eq!(drawn.start.problem().second_target().is_some(), number > 0);
            assert_eq!(drawn.start.examples().is_empty(), number < 2);
        }
    }
    let shares = (0..400).map(|_| GeneratorGame::draw_start(&rules, 2, &mut draw).unwrap());
    let tasks = shares.filter(|drawn| !drawn.start.examples().is_empty()).count();
    assert!((50..115).contains(&tasks), "{tasks} of 400 problems are tasks");
}

/// A longer solution could not be replayed from its record.
#[test]
fn solutions_drawn_or_from_hindsight_keep_to_the_move_limit() {
    let mut draw = drawer(3);
    let mut posed = 0;
    for (pairs, tasks, shortest) in [(0, 0, 2), (100, 0, 4), (0, 100, 4)] {
        for move_limit in 1..=20 {
            let rules = Rules {
                pairs,
                tasks,
                move_limit,
                ..Rules::default()
            };
            for _ in 0..10 {
                let Some(drawn) = GeneratorGame::draw_start(&rules, 16, &mut draw) else {
                    assert!(move_limit < shortest, "no problem within {move_limit} moves");
                    continue;
                };
                assert!(solves(&drawn), "{:?}", drawn.start);
                let mut state = drawn.start.clone();
                let (mut played, mut render) = (Vec::new(), state.render());
                while state.outcome().is_none() {
                    let actions = legal(&state);
                    let action = actions[draw(actions.len())];
                    state.play(action).unwrap();
                    played.push(action);
                    if state.end().is_none() {
                        render = state.render();
                    }
                }
                assert!(drawn.start.in_hindsight(&[]).is_none());
                let Some(other) = drawn.start.in_hindsight(&played) else {
                    continue;
                };
                posed += 1;
                assert!(solves(&other), "{:?}", other.start);
                assert!(other.start.examples().is_empty());
                if state.end() == Some(EpisodeEnd::Oops) && pairs + tasks == 0 {
                    assert_eq!(other.start.problem().target(), Some(&render));
                }
            }
        }
    }
    assert!(posed > 60, "{posed}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A lower bound that every move lowers by at most one never exceeds the number of moves to a solution.
    #[test]
    fn a_move_lowers_the_bound_by_at_most_one(clan in any_clan(), target in any_clan(), second in any_clan(), is_pair: bool, marked: bool) {
        let problem = match is_pair {
            true => Problem::Pair(target.render(), second.render()),
            false => Problem::Draw(target.render()),
        };
        let bound = |clan: &Clan, marked: bool| {
            let state = GeneratorGame::from_clan(&Rules::default(), problem.clone(), *clan);
            let text = state.position();
            let text = if marked { text.replacen('{', "{\"marked\":true,", 1) } else { text };
            GeneratorGame::start(&Rules::default(), Some(&text)).unwrap().least_actions_left()
        };
        let marked = marked && is_pair;
        let here = bound(&clan, marked);
        prop_assert!(here >= 1);
        for (imp, action, after) in transformations(&clan) {
            prop_assert!(bound(&after, marked) + 1 >= here, "{imp} {}", action.name());
        }
        if clan.render() == target.render() && is_pair && !marked {
            prop_assert!(bound(&clan, true) + 1 >= here);
        }
    }
}

#[test]
fn task_files_are_read_and_left_out_grids_are_named() {
    let small = r#"{"train":[{"input":[[0,0],[1,0]],"output":[[0,1],[0,0]]},
        {"input":[[0,0,0,0,0,0,0,0,0]],"output":[[1]]}],
        "test":[{"input":[[2]],"output":[[3]]},{"input":[[2]]}]}"#;
    let task = Task::read(small).unwrap();
    assert_eq!(
        (task.train.len(), task.test.len(), task.left_out.len()),
        (1, 1, 2)
    );
    for (fault, words) in task.left_out.iter().zip([
        "train[1].input: a grid of 1 rows and 9 columns",
        "test[1].output: the file does not have it",
    ]) {
        assert!(fault.starts_with(words), "{fault}");
    }
    assert_eq!(
        task.train[0].problem(),
        Problem::Pair(grid(&[&[0, 0], &[1, 0]]), grid(&[&[0, 1], &[0, 0]]))
    );
    assert_eq!(
        task.test[0].problem(),
        Problem::Pair(grid(&[&[2]]), grid(&[&[3]]))
    );
    for wrong in [
        "",
        "{}",
        r#"{"train":[],"test":[]}"#,
        r#"{"train":[],"test":[{"input":[[1]]}]}"#,
        r#"{"train":[{"input":[[10]],"output":[[1]]}],"test":[]}"#,
        r#"{"train":[{"input":[[1],[1,2]],"output":[[1]]}],"test":[]}"#,
        r#"{"train":[{"input":[],"output":[[1]]}],"test":[]}"#,
    ] {
        assert!(Task::read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn starts_are_json_and_errors_name_the_field() {
    let start = |text: &str| GeneratorGame::start(&Rules::default(), Some(text));
    let state = start(r#"{"target":[[1,1],[1,0]]}"#).unwrap();
    assert_eq!(state.problem(), &Problem::Draw(grid(&[&[1, 1], &[1, 0]])));
    for (text, words) in [
        ("7", "a start is JSON"),
        (r#"{"clan":[1,272,528,785,3]}"#, "imp 4"),
        (r#"{"clan":[1,272,528,785,3334]}"#, "imp 4 has no shapes[0]"),
        (r#"{"clan":[1,272]}"#, "a clan of 2 imps"),
        (r#"{"target":[[1,1],[1]]}"#, "row 1 has 1 cells instead of 2"),
        (r#"{"target":[[11]]}"#, "cell (0, 0) is 11"),
        (r#"{"second_target":[[1]]}"#, "without a `target`"),
        (r#"{"target":[[1]],"marked":true}"#, "without a `second_target`"),
        (r#"{"goal":1}"#, "unknown field"),
    ] {
        let error = start(text).unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}
