//! A game from outside: Connect Four, brought as foreign rules, is the game of the registry.

use std::sync::{Arc, Mutex, Once};

use games::{
    Action, Game, Notation as _, RowForm, Symmetry,
    connect_four::ConnectFour,
    outside::{self, AddError, Description, Fault, Outside, Position, Rules, description::Maps},
    registry,
};

use crate::shared::{drawer, legal};

/// The first action with which the rules fail.
const FAULTY: Action = 6;

/// Connect Four as rules from outside. They count how often they are asked.
#[derive(Debug)]
struct Foreign;

static ASKED: Mutex<usize> = Mutex::new(0);
static REPORTED: Mutex<Vec<Fault>> = Mutex::new(Vec::new());

fn position(state: ConnectFour) -> Position {
    let mut row = Vec::new();
    state.write_row(Default::default(), Symmetry::IDENTITY, &mut row);
    Position {
        to_move: state.to_move(),
        outcome: state.outcome(),
        legal: legal(&state),
        row,
        state: Arc::new(state),
    }
}

impl Rules for Foreign {
    fn start(&self) -> Result<Position, Fault> {
        Ok(position(ConnectFour::EMPTY))
    }

    fn play(&self, before: &Position, action: Action) -> Result<Position, Fault> {
        *ASKED.lock().unwrap() += 1;
        let mut state = *before.state.downcast_ref::<ConnectFour>().unwrap();
        if state.discs() == 0 && action == FAULTY {
            return Err(Fault::new("ZeroDivisionError in play"));
        }
        state.play(action).unwrap();
        if state.discs() == 1 && action == FAULTY - 1 {
            let legal = vec![3, 3];
            return Ok(Position {
                legal,
                ..position(state)
            });
        }
        Ok(position(state))
    }

    fn action_text(&self, _: &Position, action: Action) -> String {
        format!("column {action}")
    }

    fn report(&self, fault: &Fault) {
        REPORTED.lock().unwrap().push(fault.clone());
    }
}

fn description() -> Description {
    let layout = ConnectFour::layout(Default::default());
    let RowForm::Planes(stack) = layout.form else {
        unreachable!("rows of Connect Four are planes");
    };
    let mirror = |width: u32| move |at: u32| at / width * width + width - 1 - at % width;
    Description {
        symmetries: vec![Maps {
            squares: (0..42).map(mirror(7)).collect(),
            actions: (0..7).map(mirror(7)).collect(),
        }],
        ..Description::of_planes("my-four", stack, 7)
    }
}

fn begin() -> Outside {
    static ADD: Once = Once::new();
    ADD.call_once(|| outside::add(description(), Box::new(Foreign)).unwrap());
    Outside::start(&Default::default(), None).unwrap()
}

#[test]
fn a_game_from_outside_plays_like_that_of_the_registry() {
    let begin = begin();
    for seed in 0..50 {
        let mut random = drawer(seed);
        let (mut foreign, mut own) = (begin.clone(), ConnectFour::EMPTY);
        own.play(3).unwrap();
        foreign.play(3).unwrap();
        while own.outcome().is_none() {
            assert_eq!(legal(&foreign), legal(&own));
            for symmetry in [Symmetry(0), Symmetry(1)] {
                let (mut rows, action) = ([Vec::new(), Vec::new()], legal(&own)[0]);
                foreign.write_row(Default::default(), symmetry, &mut rows[0]);
                own.write_row(Default::default(), symmetry, &mut rows[1]);
                // A symmetry of a row keeps the order of its entries.
                rows.iter_mut().for_each(|row| row[..42].sort_unstable());
                assert_eq!(rows[0], rows[1]);
                assert_eq!(
                    foreign.policy_index(Default::default(), symmetry, action),
                    own.policy_index(Default::default(), symmetry, action)
                );
            }
            let actions = legal(&own);
            let action = actions[random(actions.len())];
            own.play(action).unwrap();
            foreign.play(action).unwrap();
            assert_eq!(
                (foreign.to_move(), foreign.outcome()),
                (own.to_move(), own.outcome())
            );
        }
        assert!(foreign.play(0).is_err());
        let again = Outside::start(&Default::default(), Some(&Game::position(&foreign))).unwrap();
        assert_eq!(again.outcome(), own.outcome());
    }
}

#[test]
fn a_position_is_asked_for_once() {
    let begin = begin();
    let walk = || {
        let mut state = begin.clone();
        for action in [0, 1, 0, 1, 0, 2] {
            state.play_legal(action);
        }
        Game::position(&state)
    };
    assert_eq!(walk(), "[0,1,0,1,0,2]");
    let node = begin.clone();
    for _ in 0..1000 {
        walk();
    }
    drop(node);
    // Other tests ask meanwhile; a thousand walks alone would ask six thousand times.
    assert!(*ASKED.lock().unwrap() < 6000);
}

#[test]
fn a_fault_ends_the_game_and_is_reported_with_its_actions() {
    let begin = begin();
    for (action, reason) in [
        (FAULTY, "ZeroDivisionError"),
        (FAULTY - 1, "not ascending: 3 comes before 3"),
    ] {
        let mut state = begin.clone();
        state.play(action).unwrap();
        assert!(state.fault().unwrap().contains(reason), "{:?}", state.fault());
        assert_eq!((state.outcome(), legal(&state)), (None, vec![]));
        assert!(state.play(0).is_err());
        let reported = REPORTED.lock().unwrap();
        let fault = reported
            .iter()
            .find(|fault| fault.reason.contains(reason))
            .unwrap();
        assert_eq!(fault.actions, [action]);
    }
}

#[test]
fn the_registry_finds_the_game_and_refuses_a_second_one() {
    let begin = begin();
    let game = registry::find("my-four").unwrap();
    assert_eq!((game.name, game.players), ("my-four", 2));
    let mut state = game.variant(&game.rules(), None).unwrap().start(None).unwrap();
    let turn = state.read_turn("column 2").unwrap();
    state.play(turn[0]).unwrap();
    assert_eq!((state.position(), state.game().name), ("[2]".into(), "my-four"));
    assert_eq!(begin.draw(Default::default()), "3 3 3 3 3 3 3\n".repeat(6));
    let second = outside::add(description(), Box::new(Foreign));
    assert_eq!(second, Err(AddError::Second("my-four")));
}

#[test]
fn descriptions_that_contradict_themselves_are_refused() {
    let said = |change: fn(&mut Description)| {
        let mut other = description();
        change(&mut other);
        other.check().unwrap_err().to_string()
    };
    assert!(said(|game| game.name = "chess".into()).contains("cannot be the name"));
    assert!(said(|game| game.name = "My game".into()).contains("cannot be the name"));
    assert!(said(|game| game.players = 3).contains("3 players"));
    assert!(said(|game| game.version = 2).contains("version 2"));
    assert!(said(|game| game.symmetries[0].actions[0] = 0).contains("symmetry 1: `actions`"));
    assert!(said(|game| game.symmetries[0].squares.truncate(41)).contains("symmetry 1: `squares`"));
    let json = serde_json::to_string(&description()).unwrap();
    assert_eq!(serde_json::from_str::<Description>(&json).unwrap(), description());
}

#[test]
fn a_description_is_compared_with_the_rules_of_the_process() {
    begin();
    let said = |change: fn(&mut Description)| {
        let mut other = description();
        change(&mut other);
        outside::describe(other).map_err(|error| error.to_string())
    };
    assert_eq!(said(|game| game.source = "another text".into()), Ok(()));
    let differs = said(|game| game.layout.actions = 8).unwrap_err();
    assert!(
        differs.contains("the number of actions is 7, and was 8"),
        "{differs}"
    );
    let differs = said(|game| game.symmetries.clear()).unwrap_err();
    assert!(
        differs.contains("the number of symmetries is 1, and was 0"),
        "{differs}"
    );
    let differs = said(|game| game.symmetries[0].actions.swap(0, 1)).unwrap_err();
    assert!(differs.contains("the symmetries are others"), "{differs}");
    let second = said(|game| game.name = "another-game".into()).unwrap_err();
    assert!(
        second.contains("has a game from outside already: my-four"),
        "{second}"
    );
    assert!(outside::has_rules() && outside::description() == Some(&description()));
}
