//! A process that knows the description of a game from outside, and not its rules.

#![allow(clippy::unwrap_used, reason = "a test")]

use games::{
    Game as _, RowForm, Symmetry,
    connect_four::ConnectFour,
    outside::{self, Description, description::Maps},
    registry,
};

#[test]
fn layout_and_symmetries_are_known_and_no_game_begins() {
    let layout = ConnectFour::layout(Default::default());
    let RowForm::Planes(stack) = layout.form.clone() else {
        unreachable!("rows of Connect Four are planes");
    };
    assert!(registry::find("my-four").is_err() && outside::description().is_none());
    let mirror = |at: u32| at / 7 * 7 + 6 - at % 7;
    let description = Description {
        symmetries: vec![Maps {
            squares: (0..42).map(mirror).collect(),
            actions: (0..7).map(mirror).collect(),
        }],
        ..Description::of_planes("my-four", stack, 7)
    };
    outside::describe(description.clone()).unwrap();
    outside::describe(description.clone()).unwrap();
    assert!(!outside::has_rules());

    let game = registry::find("my-four").unwrap();
    let variant = game.variant(&game.rules(), None).unwrap();
    assert_eq!(variant.layout(), description.layout);
    assert_eq!(variant.row_symmetries().turn_action(Symmetry(1), 0), 6);
    let error = variant.start(None).unwrap_err().to_string();
    assert!(error.contains("use `python -m minuet`"), "{error}");
    // A recorded start is a list of actions, whatever the rules say about them.
    let mut state = variant.start(Some("[3,3,3]")).unwrap();
    assert_eq!((state.position(), state.outcome()), ("[3,3,3]".into(), None));
    assert!(state.play(3).is_err() && state.fault().is_some());
    assert!(variant.start(Some("[3,")).is_err());
}
