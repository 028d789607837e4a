//! Positions as text, similar to a FEN: the rows from the top, `x` for the first player's discs, `o` for the second's,
//! digits for runs of empty cells; then the player to move. The empty board is `7/7/7/7/7/7 x`.

use super::{COLUMNS, ConnectFour, ROWS, board};
use crate::{
    discs::Discs,
    game::{Game, StartError},
    value::Player,
};

pub(super) fn write(state: &ConnectFour) -> String {
    let [first, second] = state.discs_by_square().by_player();
    let mut text = String::with_capacity(52);
    for rank in (0..ROWS).rev() {
        let mut empty = 0;
        let flush = |text: &mut String, empty: &mut u32| {
            if *empty > 0 {
                text.push_str(&empty.to_string());
                *empty = 0;
            }
        };
        for file in 0..COLUMNS {
            let cell = 1u64 << (8 * rank + file);
            if (first | second) & cell == 0 {
                empty += 1;
                continue;
            }
            flush(&mut text, &mut empty);
            text.push(if first & cell == 0 { 'o' } else { 'x' });
        }
        flush(&mut text, &mut empty);
        text.push(if rank == 0 { ' ' } else { '/' });
    }
    text.push(match state.to_move {
        Player::First => 'x',
        Player::Second => 'o',
    });
    text
}

pub(super) fn read(text: &str) -> Result<ConnectFour, StartError> {
    parse(text).map_err(|reason| StartError {
        game: ConnectFour::NAME,
        reason,
    })
}

fn parse(text: &str) -> Result<ConnectFour, String> {
    let (rows, mover) = text
        .trim()
        .split_once(' ')
        .ok_or("a position is six rows from the top, a space, and the player to move, e.g. 7/7/7/7/7/7 x")?;
    let to_move = match mover.trim() {
        "x" => Player::First,
        "o" => Player::Second,
        other => return Err(format!("the player to move is x or o, not {other:?}")),
    };
    let (first, second) = parse_rows(rows)?;
    let occupied = first | second;
    if occupied & !(occupied << 8 | board::landings(0)) != 0 {
        return Err("a disc floats above an empty cell".into());
    }
    match Discs::due([first, second]) {
        None => return Err("x must have as many discs as o, or one more".into()),
        Some(due) if due != to_move => {
            return Err("the number of discs says that the other player moves".into());
        }
        Some(_) => {}
    }
    let Discs { own, other, .. } = Discs::of_players([first, second], to_move);
    if board::has_four(own) {
        return Err("the player to move has won already".into());
    }
    Ok(ConnectFour {
        own,
        other,
        to_move,
        lost: board::has_four(other),
    })
}

fn parse_rows(rows: &str) -> Result<(u64, u64), String> {
    let (mut first, mut second) = (0, 0);
    if rows.split('/').count() != ROWS as usize {
        return Err("the board has six rows".into());
    }
    for (row, rank) in rows.split('/').zip((0..ROWS).rev()) {
        let mut file = 0;
        for letter in row.chars() {
            let (discs, width) = match letter {
                'x' => (Some(&mut first), 1),
                'o' => (Some(&mut second), 1),
                '1'..='7' => (None, u32::from(letter as u8 - b'0')),
                _ => return Err(format!("{letter:?} is not x, o or a number of empty cells")),
            };
            if let Some(discs) = discs
                && file < COLUMNS
            {
                *discs |= 1 << (8 * rank + file);
            }
            file += width;
        }
        if file != COLUMNS {
            return Err(format!("row {row:?} has {file} cells, not {COLUMNS}"));
        }
    }
    Ok((first, second))
}
