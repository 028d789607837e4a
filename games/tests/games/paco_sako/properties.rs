//! Properties of every state: text, rows, mirror images, exchanged colours, policy entries.

use games::{
    Action, Game, Symmetry,
    paco_sako::{PacoSako, Rules},
};
use proptest::prelude::*;

use super::data::start;
use crate::shared::{choices, legal, play};

const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w 0 AHah - -";
const START_WITHOUT_CASTLING: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w 0 - - -";

fn row(state: &PacoSako, options: u32, symmetry: Symmetry) -> Vec<u32> {
    let mut row = Vec::new();
    state.write_row(
        PacoSako::encoding(&Default::default(), options).unwrap(),
        symmetry,
        &mut row,
    );
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

/// Writes the row of a state in an encoding with these options.
type WriteRow = fn(&PacoSako, u32, Symmetry) -> Vec<u32>;

/// Plays a game and its image, in which `flip` changes the squares. Rows and policy entries of the game in `symmetry` must be those of the
/// image, and the value of an end must be the same for the player to act.
fn side_by_side(
    starts: [&str; 2],
    (flip, symmetry): (fn(Action) -> Action, Symmetry),
    (options, row): (&[u32], WriteRow),
    choices: &[u16],
) {
    let [mut state, mut image] = starts.map(|fen| start(Some(fen), 3));
    let compare = |state: &PacoSako, image: &PacoSako| {
        let value = |state: &PacoSako| {
            state
                .outcome()
                .map(|outcome| outcome.value().seen_by(state.to_move()))
        };
        assert_eq!(value(state), value(image));
        assert!(state.allows(symmetry));
        let mut flipped: Vec<Action> = legal(state)
            .into_iter()
            .map(|action| map_square(action, flip))
            .collect();
        flipped.sort_unstable();
        assert_eq!(flipped, legal(image));
        for &options in options {
            assert_eq!(
                row(state, options, symmetry),
                row(image, options, Symmetry::IDENTITY)
            );
            let encoding = PacoSako::encoding(&Default::default(), options).unwrap();
            for action in legal(state) {
                assert_eq!(
                    state.policy_index(encoding, symmetry, action),
                    image.policy_index(encoding, Symmetry::IDENTITY, map_square(action, flip))
                );
            }
        }
    };
    play(&mut state, choices, |state, action| {
        compare(state, &image);
        image.play(map_square(action, flip)).unwrap();
    });
    compare(&state, &image);
}

/// Returns a row whose pieces are in the order of their numbers, and which does not show where no en-passant square is.
fn sorted_row(state: &PacoSako, options: u32, symmetry: Symmetry) -> Vec<u32> {
    let mut row = row(state, options, symmetry);
    if state.en_passant().is_none() {
        row[32] = 0;
    }
    row[..32].sort_unstable();
    row
}

#[test]
fn a_state_fits_two_cache_lines() {
    assert!(size_of::<PacoSako>() <= 128);
}

proptest! {
    #[test]
    fn a_state_is_read_from_its_fen(choices in choices(200)) {
        let mut state = start(Some(START), 3);
        play(&mut state, &choices, |state, _| {
            let read = start(Some(&state.position()), 3);
            assert_eq!(read.position(), state.position());
            if state.promotion().is_none() {
                assert_eq!(legal(&read), legal(state));
                assert_eq!(row(&read, 7, Symmetry::IDENTITY), row(state, 7, Symmetry::IDENTITY));
            }
        });
    }

    #[test]
    fn a_game_agrees_with_its_mirror_image(choices in choices(300)) {
        let mirrored = "rnbkqbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBKQBNR w 0 - - -";
        let starts = [START_WITHOUT_CASTLING, mirrored];
        side_by_side(starts, (|square| square ^ 7, Symmetry(1)), (&[0, 1, 2, 3, 4, 5, 6, 7], row), &choices);
    }

    #[test]
    fn a_game_agrees_with_its_image_in_exchanged_colours(choices in choices(300)) {
        let exchanged = START.replace(" w ", " b ");
        let starts = [START, &exchanged];
        side_by_side(starts, (|square| square ^ 56, Symmetry::IDENTITY), (&[1, 3, 5, 7], sorted_row), &choices);
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
        play(&mut state, &choices, |state, _| {
            let _ = (row(state, 1, Symmetry::IDENTITY), state.position(), state.outcome());
        });
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
