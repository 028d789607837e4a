//! Positions as text: 64 letters from a1 to h8, rank by rank (`X` Black, who begins, `O` White, `-` empty), a space, and
//! the player to move.

use super::state::{Gomoku, has_five};
use crate::{
    game::{Game, StartError},
    value::Player,
};

pub(super) fn write(state: &Gomoku) -> String {
    let [black, white] = state.stones_by_player();
    let letter = |square: u32| match (black >> square & 1, white >> square & 1) {
        (1, _) => 'X',
        (_, 1) => 'O',
        _ => '-',
    };
    let mover = ['X', 'O'][state.to_move.index()];
    (0..64).map(letter).chain([' ', mover]).collect()
}

pub(super) fn read(text: &str) -> Result<Gomoku, StartError> {
    parse(text).map_err(|reason| StartError {
        game: Gomoku::NAME,
        reason,
    })
}

fn parse(text: &str) -> Result<Gomoku, String> {
    let (board, mover) = text
        .trim()
        .split_once(' ')
        .ok_or("a position is 64 letters X, O or - from a1 to h8, a space, and the player to move")?;
    let count = board.chars().count();
    if count != 64 {
        return Err(format!("the board has {count} squares, not 64"));
    }
    let (mut black, mut white) = (0u64, 0u64);
    for (square, letter) in board.chars().enumerate() {
        match letter {
            'X' => black |= 1 << square,
            'O' => white |= 1 << square,
            '-' => {}
            _ => return Err(format!("{letter:?} on square {square} is not X, O or -")),
        }
    }
    let to_move = match mover {
        "X" => Player::First,
        "O" => Player::Second,
        other => return Err(format!("the player to move is X or O, not {other:?}")),
    };
    let due = match black.count_ones().checked_sub(white.count_ones()) {
        Some(0) => Player::First,
        Some(1) => Player::Second,
        _ => return Err("X must have as many stones as O, or one more".into()),
    };
    if due != to_move {
        return Err("the number of stones says that the other player moves".into());
    }
    let (own, other) = match to_move {
        Player::First => (black, white),
        Player::Second => (white, black),
    };
    if has_five(own) {
        return Err("the player to move has won already".into());
    }
    Ok(Gomoku {
        own,
        other,
        to_move,
        is_lost: has_five(other),
    })
}
