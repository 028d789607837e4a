//! Othello at the terminal.

use games::{
    Action, Game, Player,
    othello::{Othello, PASS},
};

use super::{
    board::{FILES, Grid, Style, read_square, square_name},
    table::Table,
};
use crate::rules::numbered::NumberedFace;

/// Othello; a1 is drawn top left.
pub struct OthelloTable;

/// Rows as they are drawn.
const ROWS: [&str; 8] = ["1", "2", "3", "4", "5", "6", "7", "8"];

impl Table for OthelloTable {
    type Face = NumberedFace<Othello>;

    const HELP: &'static str = "Moves: the square of the new disc (d3), or pass where no disc can be placed. Dots show where discs can be placed.";

    fn player(player: Player) -> &'static str {
        match player {
            Player::First => "Black",
            Player::Second => "White",
        }
    }

    fn draw(state: &Othello, style: Style) -> String {
        let [first, second, free] = if style.ascii {
            ["X", "O", "."]
        } else {
            ["●", "○", "·"]
        };
        let (own, other) = state.bitboards();
        let (black, white) = match state.to_move() {
            Player::First => (own, other),
            Player::Second => (other, own),
        };
        let mut legal = Vec::new();
        state.legal_actions(&mut legal);
        let grid = Grid {
            columns: &FILES,
            rows: &ROWS,
            width: 1,
        };
        // Nobody sits on a side of this board.
        let style = Style {
            flipped: false,
            ..style
        };
        grid.draw(style, |row, column| {
            let square = 8 * row + column;
            let text = if black >> square & 1 == 1 {
                first
            } else if white >> square & 1 == 1 {
                second
            } else if legal.contains(&(square as Action)) {
                free
            } else {
                ""
            };
            text.into()
        })
    }

    fn remark(state: &Othello) -> String {
        let (own, other) = state.bitboards();
        let (own, other) = (own.count_ones(), other.count_ones());
        let (black, white) = match state.to_move() {
            Player::First => (own, other),
            Player::Second => (other, own),
        };
        let mut legal = Vec::new();
        state.legal_actions(&mut legal);
        let must_pass = if legal == [PASS] {
            " No disc can be placed: pass."
        } else {
            ""
        };
        format!("Black has {black} discs, White {white}.{must_pass}")
    }

    fn read_turn(state: &Othello, text: &str) -> Result<Vec<Action>, String> {
        let text = text.trim().to_lowercase();
        let action = match text.as_str() {
            "pass" | "--" | "ps" => PASS,
            _ => read_square(&text).ok_or_else(|| format!("{text:?} is no square, e.g. d3"))?,
        };
        let mut after = *state;
        match after.play(action) {
            Ok(()) => Ok(vec![action]),
            Err(error) => Err(format!("{text} is not legal: {}", error.reason)),
        }
    }

    fn write_turn(_: &Othello, actions: &[Action]) -> String {
        let texts: Vec<String> = actions
            .iter()
            .map(|&action| {
                if action == PASS {
                    "pass".into()
                } else {
                    square_name(action)
                }
            })
            .collect();
        texts.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_board_and_moves() {
        let state = Othello::initial();
        let ascii = Style {
            ascii: true,
            ..Style::default()
        };
        let board = OthelloTable::draw(&state, ascii);
        let lines: Vec<&str> = board.lines().collect();
        assert_eq!(lines[7], "4 |   |   | . | O | X |   |   |   |");
        assert_eq!(OthelloTable::remark(&state), "Black has 2 discs, White 2.");
        let played = OthelloTable::read_turn(&state, "D3").unwrap();
        assert_eq!(OthelloTable::write_turn(&state, &played), "d3");
        assert!(
            OthelloTable::read_turn(&state, "a1")
                .unwrap_err()
                .contains("turned over")
        );
        assert!(
            OthelloTable::read_turn(&state, "pass")
                .unwrap_err()
                .contains("passing is not")
        );
        assert!(
            OthelloTable::read_turn(&state, "z9")
                .unwrap_err()
                .contains("no square")
        );
    }
}
