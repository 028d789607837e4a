//! Rules, rows, expansion and policies commute with every symmetry. A game and its image are played side by side; the image
//! is made from the text of the position.

use games::{
    Action, Game, Outcome, Symmetry,
    chess::{self, Chess},
    connect_four::ConnectFour,
    gomoku::{self, Gomoku},
    hex::{self, Hex},
    othello::{Othello, PASS},
};
use proptest::prelude::*;

use crate::shared::{choices, legal};

/// Symmetries of a game, implemented independently of the game.
struct Image<G: Game> {
    /// Representation of the rows.
    encoding: fn() -> G::Encoding,
    /// Image of a position's text.
    position: fn(&str, u8) -> String,
    /// Image of an action of a state.
    action: fn(&G, Action, u8) -> Action,
    /// Image of a square.
    square: fn(usize, u8) -> usize,
}

fn expand<G: Game>(state: &G, encoding: G::Encoding, symmetry: Symmetry) -> (Vec<u32>, Vec<f32>) {
    let layout = G::layout(encoding);
    let (mut row, mut tensor) = (Vec::new(), vec![0.0; layout.stack().unwrap().tensor_len()]);
    state.write_row(encoding, symmetry, &mut row);
    layout.stack().unwrap().expand(&row, &mut tensor).unwrap();
    (row, tensor)
}

/// Compares one state with its image `other`.
fn compare<G: Game>(state: &G, other: &G, symmetry: u8, image: &Image<G>) {
    assert!(state.allows(Symmetry(symmetry)));
    assert_eq!(other.to_move(), state.to_move());
    assert_eq!(other.outcome(), state.outcome());
    assert_eq!(other.position(), (image.position)(&state.position(), symmetry));

    let encoding = (image.encoding)();
    let actions = legal(state);
    let mut images: Vec<Action> = actions
        .iter()
        .map(|&action| (image.action)(state, action, symmetry))
        .collect();
    for (&action, &imaged) in actions.iter().zip(&images) {
        let index = state.policy_index(encoding, Symmetry(symmetry), action);
        assert!(index < state.actions());
        assert_eq!(index, other.policy_index(encoding, Symmetry::IDENTITY, imaged));
    }
    images.sort_unstable();
    assert_eq!(images, legal(other));

    let (row, tensor) = expand(state, encoding, Symmetry(symmetry));
    let (other_row, _) = expand(other, encoding, Symmetry::IDENTITY);
    assert_eq!(row, other_row);
    let (_, unturned) = expand(state, encoding, Symmetry::IDENTITY);
    let maps = G::row_symmetries(encoding);
    let squares = G::layout(encoding).stack().unwrap().squares();
    for (plane, unturned) in tensor.chunks(squares).zip(unturned.chunks(squares)) {
        for (square, value) in unturned.iter().enumerate() {
            let imaged = (image.square)(square, symmetry);
            assert_eq!(plane[imaged], *value);
            assert_eq!(maps.turn_square(Symmetry(symmetry), square as u32), imaged as u32);
        }
    }
}

fn side_by_side<G: Game>(rules: &G::Rules, start: Option<&str>, choices: &[u16], image: &Image<G>) {
    let mut state = G::start(rules, start).unwrap();
    let mut others: Vec<G> = (0..state.symmetries())
        .map(|symmetry| G::start(rules, Some(&(image.position)(&state.position(), symmetry))).unwrap())
        .collect();
    for &choice in choices {
        for (other, symmetry) in others.iter().zip(0..) {
            compare(&state, other, symmetry, image);
        }
        let actions = legal(&state);
        let Some(&action) = actions.get(usize::from(choice) % actions.len().max(1)) else {
            return;
        };
        for (other, symmetry) in others.iter_mut().zip(0..) {
            other.play((image.action)(&state, action, symmetry)).unwrap();
        }
        state.play(action).unwrap();
    }
}

/// Returns the image of a square of a board of this size under mirrored files (bit 2) and then quarter turns, by coordinates.
fn turned<const SIZE: usize>(square: usize, symmetry: u8) -> usize {
    let (mut rank, mut file) = (square / SIZE, square % SIZE);
    if symmetry >= 4 {
        file = SIZE - 1 - file;
    }
    for _ in 0..symmetry % 4 {
        (rank, file) = (file, SIZE - 1 - rank);
    }
    SIZE * rank + file
}

/// Returns the image of a position that is written as a letter for each square, a space, and the player to move.
fn turned_letters<const SIZE: usize>(text: &str, symmetry: u8) -> String {
    let (board, mover) = text.split_once(' ').unwrap();
    let mut letters = vec!['?'; SIZE * SIZE];
    for (square, letter) in board.chars().enumerate() {
        letters[turned::<SIZE>(square, symmetry)] = letter;
    }
    format!("{} {mover}", letters.iter().collect::<String>())
}

fn reversed_rows(rows: &str) -> String {
    let rows: Vec<String> = rows.split('/').map(|row| row.chars().rev().collect()).collect();
    rows.join("/")
}

const OTHELLO: Image<Othello> = Image {
    encoding: Default::default,
    position: turned_letters::<8>,
    action: |_, action, symmetry| match action {
        PASS => PASS,
        square => turned::<8>(square as usize, symmetry) as Action,
    },
    square: turned::<8>,
};

const GOMOKU: Image<Gomoku> = Image {
    encoding: || gomoku::Rules { size: 15 },
    position: turned_letters::<15>,
    action: |_, action, symmetry| turned::<15>(action as usize, symmetry) as Action,
    square: turned::<15>,
};

const HEX_RULES: hex::Rules = hex::Rules { size: 4, swap: true };

const HEX: Image<Hex> = Image {
    encoding: || HEX_RULES,
    position: |text, symmetry| turned_letters::<4>(text, 2 * symmetry),
    action: |_, action, symmetry| match action {
        16 => 16,
        cell => turned::<4>(cell as usize, 2 * symmetry) as Action,
    },
    square: |square, symmetry| turned::<4>(square, 2 * symmetry),
};

const CONNECT_FOUR: Image<ConnectFour> = Image {
    encoding: Default::default,
    position: |text, symmetry| match (symmetry, text.split_once(' ').unwrap()) {
        (0, _) => text.into(),
        (_, (rows, mover)) => format!("{} {mover}", reversed_rows(rows)),
    },
    action: |_, action, symmetry| if symmetry == 0 { action } else { 6 - action },
    square: |square, symmetry| match (symmetry, square % 7) {
        (0, _) => square,
        (_, file) => square - file + 6 - file,
    },
};

const CHESS: Image<Chess> = Image {
    encoding: Default::default,
    position: |fen, symmetry| {
        if symmetry == 0 {
            return fen.into();
        }
        let fields: Vec<&str> = fen.split(' ').collect();
        let en_passant = fields[3].chars().map(mirrored_file).collect();
        [
            reversed_rows(fields[0]),
            fields[1].into(),
            fields[2].into(),
            en_passant,
            fields[4..].join(" "),
        ]
        .join(" ")
    },
    action: |state, action, symmetry| {
        if symmetry == 0 {
            return action;
        }
        let uci: String = state.uci(action).chars().take(4).map(mirrored_file).collect();
        let promotion: String = state.uci(action).chars().skip(4).collect();
        let fen = (CHESS.position)(&state.position(), symmetry);
        let mirrored = Chess::start(
            &chess::Rules {
                underpromotions: true,
            },
            Some(&fen),
        )
        .unwrap();
        mirrored.action_of_uci(&(uci + &promotion)).unwrap()
    },
    square: |square, symmetry| if symmetry == 0 { square } else { square ^ 7 },
};

fn mirrored_file(letter: char) -> char {
    match letter {
        'a'..='h' => char::from(b'a' + b'h' - letter as u8),
        _ => letter,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn othello(choices in choices(64)) {
        side_by_side(&Default::default(), None, &choices, &OTHELLO);
    }

    #[test]
    fn connect_four(choices in choices(43)) {
        side_by_side(&Default::default(), None, &choices, &CONNECT_FOUR);
    }

    #[test]
    fn gomoku(choices in choices(60)) {
        side_by_side(&gomoku::Rules { size: 15 }, None, &choices, &GOMOKU);
    }

    #[test]
    fn hex(choices in choices(17)) {
        side_by_side(&HEX_RULES, None, &choices, &HEX);
    }

    /// Start positions with long moves of rooks and queens, promotions, en-passant captures; and the usual start without
    /// castling rights.
    #[test]
    fn chess(choices in choices(60), start in 0..4usize, underpromotions: bool) {
        let start = [
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w - - 0 1",
            "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1",
            "r6q/4k3/8/pP6/5pPp/8/3K4/Q6R b - g3 7 33",
            "7r/1pk5/8/P7/6p1/8/1K3P2/R7 w - - 91 60",
        ][start];
        side_by_side(&chess::Rules { underpromotions }, Some(start), &choices, &CHESS);
    }
}

#[test]
fn a_castling_right_forbids_the_mirror() {
    let fens = [
        "4k3/8/8/8/8/8/8/R3K3 w Q - 0 1",
        "r3k3/8/8/8/8/8/8/R3K3 w q - 0 1",
    ];
    for fen in fens {
        let mut state = Chess::start(&Default::default(), Some(fen)).unwrap();
        assert!(state.allows(Symmetry::IDENTITY) && !state.allows(Symmetry(1)));
        for uci in ["e1e2", "e8e7"] {
            let action = state.action_of_uci(uci).unwrap();
            state.play(action).unwrap();
        }
        assert!(state.allows(Symmetry(1)) && !state.allows(Symmetry(2)));
    }
    assert!(ConnectFour::EMPTY.allows(Symmetry(1)) && !ConnectFour::EMPTY.allows(Symmetry(2)));
    assert!(Othello::initial().allows(Symmetry(7)) && !Othello::initial().allows(Symmetry(8)));
}

/// A horizontal move by seven files has an unusual policy entry.
#[test]
fn the_entry_of_a_move_by_seven_files_is_mirrored() {
    let state = Chess::start(&Default::default(), Some("4k3/8/8/8/8/8/4K3/R7 w - - 0 1")).unwrap();
    let across = state.action_of_uci("a1h1").unwrap();
    assert_eq!(
        state.policy_index(Default::default(), Symmetry::IDENTITY, across),
        28 * 64
    );
    assert_eq!(
        state.policy_index(Default::default(), Symmetry(1), across),
        35 * 64 + 7
    );
    assert_eq!(state.outcome(), None::<Outcome>);
}
