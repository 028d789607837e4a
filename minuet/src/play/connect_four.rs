//! Connect Four at the terminal.

use games::{
    Action, Game, Player,
    connect_four::{COLUMNS, ConnectFour, ROWS},
};

use super::{
    board::{Grid, Style},
    table::Table,
};
use crate::rules::numbered::NumberedFace;

/// Connect Four; people count columns from 1.
pub struct ConnectFourTable;

const NUMBERS: [&str; COLUMNS as usize] = ["1", "2", "3", "4", "5", "6", "7"];

impl Table for ConnectFourTable {
    type Face = NumberedFace<ConnectFour>;

    const HELP: &'static str = "Moves: the number of a column, 1 to 7.";

    fn player(player: Player) -> &'static str {
        match player {
            Player::First => "X",
            Player::Second => "O",
        }
    }

    fn draw(state: &ConnectFour, style: Style) -> String {
        let [first, second] = match (style.ascii, style.colour) {
            (true, _) => ["X", "O"],
            (false, false) => ["●", "○"],
            (false, true) => ["\u{1b}[31m●\u{1b}[0m", "\u{1b}[33m○\u{1b}[0m"],
        };
        let (own, other) = state.bitboards();
        let (first_discs, second_discs) = match state.to_move() {
            Player::First => (own, other),
            Player::Second => (other, own),
        };
        let grid = Grid {
            columns: &NUMBERS,
            rows: &[""; ROWS as usize],
            width: 1,
        };
        let style = Style {
            flipped: false,
            ..style
        };
        grid.draw(style, |row, column| {
            let cell = 8 * (ROWS as usize - 1 - row) + column;
            let text = if first_discs >> cell & 1 == 1 {
                first
            } else if second_discs >> cell & 1 == 1 {
                second
            } else {
                ""
            };
            text.into()
        })
    }

    fn read_turn(state: &ConnectFour, text: &str) -> Result<Vec<Action>, String> {
        let action = text
            .trim()
            .parse::<Action>()
            .ok()
            .filter(|column| (1..=COLUMNS).contains(column))
            .ok_or_else(|| format!("{:?} is no column, 1 to {COLUMNS}", text.trim()))?
            - 1;
        let mut after = *state;
        match after.play(action) {
            Ok(()) => Ok(vec![action]),
            Err(error) => Err(format!("{} is not legal: {}", action + 1, error.reason)),
        }
    }

    fn write_turn(_: &ConnectFour, actions: &[Action]) -> String {
        let texts: Vec<String> = actions.iter().map(|action| (action + 1).to_string()).collect();
        texts.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_board_and_moves() {
        let mut state = ConnectFour::EMPTY;
        for text in ["4", "4", "1"] {
            let played = ConnectFourTable::read_turn(&state, text).unwrap();
            assert_eq!(ConnectFourTable::write_turn(&state, &played), text);
            state.play(played[0]).unwrap();
        }
        let ascii = Style {
            ascii: true,
            ..Style::default()
        };
        let board = ConnectFourTable::draw(&state, ascii);
        let lines: Vec<&str> = board.lines().collect();
        assert_eq!(lines[9], " |   |   |   | O |   |   |   |");
        assert_eq!(lines[11], " | X |   |   | X |   |   |   |");
        assert_eq!(lines[13], "   1   2   3   4   5   6   7");
        for text in ["0", "8", "", "x"] {
            assert!(ConnectFourTable::read_turn(&state, text).is_err(), "{text}");
        }
        for column in [3, 3, 3, 3] {
            state.play(column).unwrap();
        }
        assert!(
            ConnectFourTable::read_turn(&state, "4")
                .unwrap_err()
                .contains("full")
        );
    }
}
