//! Random text for every reader of the games: positions, notation, rules, ARC tasks. A reader accepts or refuses; it never panics.

use std::str::from_utf8;

use games::{
    Notation, Symmetry,
    generator::task::Task,
    registry::{self, Visitor},
};
use test_support::fuzz;

use crate::shared::legal;

struct Positions;

impl Visitor for Positions {
    type Output = ();

    fn visit<G: Notation>(self) {
        let rules = G::Rules::default();
        let encoding = (0..8)
            .find_map(|options| G::encoding(&G::Rules::default(), options).ok())
            .unwrap();
        let mut played = G::start(&rules, None).unwrap();
        let mut examples = vec![played.position()];
        for _ in 0..12 {
            let actions = legal(&played);
            let Some(&action) = actions.get(actions.len() / 2) else {
                break;
            };
            played.play(action).unwrap();
            examples.push(played.position());
        }
        let examples: Vec<&[u8]> = examples.iter().map(String::as_bytes).collect();
        fuzz(&format!("{} position", G::NAME), &examples, |bytes| {
            let Ok(text) = from_utf8(bytes) else {
                return false;
            };
            let Ok(mut state) = G::start(&rules, Some(text)) else {
                return false;
            };
            // An accepted position can be written, drawn, read by a network, and played.
            let again = G::start(&rules, Some(&state.position()));
            assert!(
                again.is_ok(),
                "{text:?} is accepted, but not its own text: {again:?}"
            );
            assert!(!state.draw(Default::default()).is_empty());
            let mut row = Vec::new();
            state.write_row(encoding, Symmetry::IDENTITY, &mut row);
            for action in legal(&state) {
                assert!(!state.write_turn(&[action]).is_empty());
            }
            if let Some(&action) = legal(&state).last() {
                state.play(action).unwrap();
            }
            true
        });
    }
}

struct Notations;

impl Visitor for Notations {
    type Output = ();

    fn visit<G: Notation>(self) {
        let state = G::start(&G::people_rules(), None).unwrap();
        let turns: Vec<String> = legal(&state)
            .iter()
            .map(|&action| state.write_turn(&[action]))
            .collect();
        let examples: Vec<&[u8]> = turns.iter().map(String::as_bytes).collect();
        fuzz(&format!("{} notation", G::NAME), &examples, |bytes| {
            let Ok(text) = from_utf8(bytes) else {
                return false;
            };
            let Ok(actions) = state.read_turn(text) else {
                return false;
            };
            let mut state = state.clone();
            for action in actions {
                state
                    .play(action)
                    .unwrap_or_else(|error| panic!("{text:?}: {error}"));
            }
            true
        });
    }
}

struct RulesOfAGame;

impl Visitor for RulesOfAGame {
    type Output = ();

    fn visit<G: Notation>(self) {
        let example = serde_json::to_vec(&G::Rules::default()).unwrap();
        fuzz(&format!("{} rules", G::NAME), &[&example], |bytes| {
            let Ok(rules) = serde_json::from_slice::<G::Rules>(bytes) else {
                return false;
            };
            G::start(&rules, None).is_ok()
        });
    }
}

#[test]
fn fuzz_positions() {
    for name in registry::NAMES {
        registry::visit(name, Positions).unwrap();
    }
}

#[test]
fn fuzz_notation() {
    for name in registry::NAMES {
        registry::visit(name, Notations).unwrap();
    }
}

#[test]
fn fuzz_rules() {
    for name in registry::NAMES {
        registry::visit(name, RulesOfAGame).unwrap();
    }
}

#[test]
fn fuzz_arc_tasks() {
    let task = br#"{"train":[{"input":[[0,1],[2,3]],"output":[[3,2],[1,0]]}],"test":[{"input":[[5]],"output":[[6]]}]}"#;
    fuzz("ARC task", &[task], |bytes| {
        from_utf8(bytes).is_ok_and(|text| Task::read(text).is_ok())
    });
}
