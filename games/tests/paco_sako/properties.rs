//! Properties of every state: text, rows, mirror images, exchanged colours, policy entries.

use games::{
    Action, Game, Symmetry,
    paco_sako::{PacoSako, Rules},
};
use proptest::prelude::*;

use crate::data::{legal, start};

const MIRROR: Symmetry = Symmetry(1);
const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w 0 AHah - -";
const START_WITHOUT_CASTLING: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w 0 - - -";

/// Returns numbers that choose the actions of a game.
fn choices(most: usize) -> impl Strategy<Value = Vec<u16>> {
    prop::collection::vec(any::<u16>(), 0..most)
}

fn actions(state: &PacoSako) -> Vec<Action> {
    let mut actions = Vec::new();
    state.legal_actions(&mut actions);
    actions
}

fn row(state: &PacoSako, options: u32, symmetry: Symmetry) -> Vec<u32> {
    let mut row = Vec::new();
    state.write_row(PacoSako::encoding(options).unwrap(), symmetry, &mut row);
    row
}

/// Returns the action with `change` applied to its square.
fn map_square(action: Action, change: impl Fn(Action) -> Action) -> Action {
    match action {
        0..64 => change(action),
        64..128 => change(action - 64) + 64,
        _ => action,
    }
}

fn map_actions(state: &PacoSako, change: impl Fn(Action) -> Action) -> Vec<Action> {
    let mut actions: Vec<Action> = actions(state)
        .into_iter()
        .map(|action| map_square(action, &change))
        .collect();
    actions.sort_unstable();
    actions
}

#[test]
fn a_state_fits_two_cache_lines() {
    assert!(size_of::<PacoSako>() <= 128);
}

proptest! {
    #[test]
    fn a_state_is_read_from_its_fen(choices in choices(200)) {
        let mut state = start(Some(START), 3);
        for choice in choices {
            let actions = actions(&state);
            let Some(&action) = actions.get(usize::from(choice) % actions.len().max(1)) else { break };
            state.play(action).unwrap();
            let read = start(Some(&state.position()), 3);
            prop_assert_eq!(read.position(), state.position());
            if state.promotion().is_none() && state.outcome().is_none() {
                prop_assert_eq!(legal(&read), legal(&state));
                prop_assert_eq!(row(&read, 7, Symmetry::IDENTITY), row(&state, 7, Symmetry::IDENTITY));
            }
        }
    }

    /// Without castling rights, a game and its mirror image agree in rules, rows and policy.
    #[test]
    fn a_game_agrees_with_its_mirror_image(choices in choices(300)) {
        let mirrored = "rnbkqbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBKQBNR w 0 - - -";
        let flip = |square| square ^ 7;
        let mut state = start(Some(START_WITHOUT_CASTLING), 3);
        let mut image = start(Some(mirrored), 3);
        for choice in choices {
            prop_assert!(state.allows(MIRROR) && image.allows(MIRROR));
            prop_assert_eq!(map_actions(&state, flip), actions(&image));
            prop_assert_eq!(state.outcome(), image.outcome());
            for options in 0..8 {
                let encoding = PacoSako::encoding(options).unwrap();
                prop_assert_eq!(row(&state, options, MIRROR), row(&image, options, Symmetry::IDENTITY));
                for action in actions(&state) {
                    prop_assert_eq!(
                        state.policy_index(encoding, MIRROR, action),
                        image.policy_index(encoding, Symmetry::IDENTITY, map_square(action, flip))
                    );
                }
            }
            let actions = actions(&state);
            let Some(&action) = actions.get(usize::from(choice) % actions.len().max(1)) else { break };
            state.play(action).unwrap();
            image.play(map_square(action, flip)).unwrap();
        }
    }

    /// With the colours exchanged and the ranks reversed, the player to act has equal rows and equal actions.
    #[test]
    fn a_game_agrees_with_its_image_in_exchanged_colours(choices in choices(300)) {
        let exchanged = START.replace(" w ", " b ");
        let flip = |square| square ^ 56;
        let mut state = start(Some(START), 3);
        let mut image = start(Some(&exchanged), 3);
        for choice in choices {
            prop_assert_eq!(map_actions(&state, flip), actions(&image));
            prop_assert_eq!(state.victory_state() as u8 == 0, image.victory_state() as u8 == 0);
            for options in [1, 3, 5, 7] {
                // White's entries always come first, so the order and the repeated first entry may differ.
                let [one, other] = [&state, &image].map(|state| {
                    let mut row = row(state, options, Symmetry::IDENTITY);
                    if state.en_passant().is_none() {
                        row[32] = 0;
                    }
                    row[..32].sort_unstable();
                    row
                });
                prop_assert_eq!(one, other);
                let encoding = PacoSako::encoding(options).unwrap();
                for action in actions(&state) {
                    prop_assert_eq!(
                        state.policy_index(encoding, Symmetry::IDENTITY, action),
                        image.policy_index(encoding, Symmetry::IDENTITY, map_square(action, flip))
                    );
                }
            }
            let actions = actions(&state);
            let Some(&action) = actions.get(usize::from(choice) % actions.len().max(1)) else { break };
            state.play(action).unwrap();
            image.play(map_square(action, flip)).unwrap();
        }
    }

    /// Random boards are read, written and read again, and played at random under all rules.
    #[test]
    fn any_board_can_be_read_and_played(
        board in prop::collection::vec(prop::sample::select(LETTERS.to_vec()), 64),
        tail in prop::sample::select(vec!["w 0 AHah - -", "b 12 BGfh - -", "w 99 - d6 -", "b 7 Ah f3 -"]),
        rules in prop::sample::select(ALL_RULES.to_vec()),
        choices in choices(40),
    ) {
        let rows: Vec<String> = board.chunks(8).map(|row| row.iter().collect()).collect();
        let text = format!("{} {tail}", rows.join("/"));
        let mut state = match PacoSako::start(&rules, Some(&text)) {
            Ok(state) => state,
            Err(error) => {
                // With the king in a corner, both rook files lie on one side of it.
                let is_castling = error.to_string().contains("castling");
                prop_assert!(is_castling || rules.dead_end != games::paco_sako::DeadEnd::Neutral, "{}", error);
                return Ok(());
            }
        };
        let again = PacoSako::start(&rules, Some(&state.position())).unwrap();
        prop_assert_eq!(&again, &state);
        for choice in choices {
            let actions = actions(&state);
            let _ = (row(&state, 1, Symmetry::IDENTITY), state.position(), state.outcome());
            let Some(&action) = actions.get(usize::from(choice) % actions.len().max(1)) else { break };
            state.play(action).unwrap();
        }
    }
}

/// Letters of random boards: 1 (an empty square) ten times, pieces and unions.
const LETTERS: [char; 34] = [
    '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', 'P', 'p', 'R', 'n', 'B', 'q', 'K', 'k', 'a', 'c', 'D',
    'e', 'F', 'h', 'i', 'J', 'l', 'o', 'S', 't', 'v', 'W', 'g', 'X',
];

const ALL_RULES: [Rules; 4] = {
    use games::paco_sako::{DeadEnd, TurnCycles};
    let rules = Rules::compatibility();
    [
        rules,
        Rules {
            dead_end: DeadEnd::Loss,
            turn_cycles: TurnCycles::Forbid,
            ..rules
        },
        Rules {
            dead_end: DeadEnd::Forbid,
            turn_cycles: TurnCycles::Forbid,
            ..rules
        },
        Rules {
            dead_end: DeadEnd::Forbid,
            turn_cycles: TurnCycles::Allow,
            draw_after_n_repetitions: 0,
        },
    ]
};
