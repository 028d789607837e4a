//! Positions as text, similar to a FEN: the rows from the top, `x` for the first player's discs, `o` for the second's,
//! digits for runs of empty cells; then the player to move. The empty board is `7/7/7/7/7/7 x`.

use super::{COLUMNS, ConnectFour, ROWS, board};
use crate::{
    discs::{self, Discs},
    value::Player,
};

pub(super) fn write(discs: Discs) -> String {
    let [first, second] = discs.by_player();
    let mut text = String::with_capacity(52);
    for rank in (0..ROWS).rev() {
        let mut empty = 0;
        for file in 0..COLUMNS {
            let cell = 1u64 << (8 * rank + file);
            if (first | second) & cell == 0 {
                empty += 1;
                continue;
            }
            if empty > 0 {
                text += &empty.to_string();
                empty = 0;
            }
            text.push(if first & cell == 0 { 'o' } else { 'x' });
        }
        if empty > 0 {
            text += &empty.to_string();
        }
        text.push(if rank == 0 { ' ' } else { '/' });
    }
    text.push(['x', 'o'][discs.to_move.index()]);
    text
}

/// Reads a position.
///
/// # Errors
/// Sentence that says what is wrong with the text.
pub(super) fn read(text: &str) -> Result<ConnectFour, String> {
    // A file's first line may begin with a byte-order mark. Other games write the players as X and O.
    let text = text.trim_start_matches('\u{feff}').to_lowercase();
    let (rows, mover) = text
        .trim()
        .split_once(char::is_whitespace)
        .ok_or("a position is six rows from the top, a space, and the player to move, e.g. 7/7/7/7/7/7 x")?;
    let to_move = match mover.trim() {
        "x" => Player::First,
        "o" => Player::Second,
        other => return Err(format!("the player to move is x or o, not {other:?}")),
    };
    let discs = Discs::of_players(parse_rows(rows)?, to_move);
    let occupied = discs.all();
    if occupied & !(occupied << 8 | board::landings(0)) != 0 {
        return Err("a disc floats above an empty cell".into());
    }
    let players = discs.by_player();
    let is_lost = discs::check_turns(players.map(u64::count_ones), to_move, |player| {
        board::has_four(players[player.index()])
    })?;
    Ok(ConnectFour { discs, is_lost })
}

fn parse_rows(rows: &str) -> Result<[u64; 2], String> {
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
    Ok([first, second])
}
