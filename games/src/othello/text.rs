//! Positions as text, in the form that Othello programs exchange: 64 letters from a1 to h8, rank by rank (`X` Black, who
//! begins, `O` White, `-` empty), a space, and the player to move.

use super::state::Othello;
use crate::{
    game::{Game, StartError},
    value::Player,
};

pub(super) fn write(state: &Othello) -> String {
    let (black, white, mover) = match state.to_move {
        Player::First => (state.own, state.other, 'X'),
        Player::Second => (state.other, state.own, 'O'),
    };
    let letter = |square: u32| match (black >> square & 1, white >> square & 1) {
        (1, _) => 'X',
        (_, 1) => 'O',
        _ => '-',
    };
    (0..64).map(letter).chain([' ', mover]).collect()
}

pub(super) fn read(text: &str) -> Result<Othello, StartError> {
    parse(text).map_err(|reason| StartError {
        game: Othello::NAME,
        reason,
    })
}

fn parse(text: &str) -> Result<Othello, String> {
    let (board, mover) = text
        .trim()
        .split_once(' ')
        .ok_or("a position is 64 letters X, O or - from a1 to h8, a space, and the player to move")?;
    let (mut black, mut white) = (0, 0);
    let mut count = 0;
    for letter in board.chars() {
        if count < 64 {
            match letter {
                'X' | 'x' | '*' => black |= 1 << count,
                'O' | 'o' => white |= 1 << count,
                '-' | '.' => {}
                _ => return Err(format!("{letter:?} on square {count} is not X, O or -")),
            }
        }
        count += 1;
    }
    if count != 64 {
        return Err(format!("the board has {count} squares, not 64"));
    }
    if black | white == 0 {
        return Err("the board is empty".into());
    }
    match mover.trim() {
        "X" | "x" | "*" => Ok(Othello::new(black, white, Player::First)),
        "O" | "o" => Ok(Othello::new(white, black, Player::Second)),
        other => Err(format!("the player to move is X or O, not {other:?}")),
    }
}
