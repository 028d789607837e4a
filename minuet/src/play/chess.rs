//! Chess at the terminal.

use games::{
    Action, Game, Player,
    chess::{Chess, SanError, UciError},
};

use super::{
    board::{self, FILES, Grid, RANKS, Style},
    table::Table,
};
use crate::rules::chess::ChessFace;

/// Chess with every promotion.
pub struct ChessTable;

impl Table for ChessTable {
    type Face = ChessFace;

    const HELP: &'static str =
        "Moves: in algebraic notation (e4, Nf3, exd5, O-O, e8=Q) or by squares (e2e4, e1g1, e7e8q).";

    fn player(player: Player) -> &'static str {
        match player {
            Player::First => "White",
            Player::Second => "Black",
        }
    }

    fn draw(state: &Chess, style: Style) -> String {
        let grid = Grid {
            columns: &FILES,
            rows: &RANKS,
            width: 1,
        };
        grid.draw(style, |row, column| {
            let square = (7 - row) * 8 + column;
            let letter = state.piece_letter(square as u32);
            letter.map_or_else(String::new, |letter| board::piece(letter, style).into())
        })
    }

    fn remark(state: &Chess) -> String {
        if state.is_check() && state.outcome().is_none() {
            "Check!".into()
        } else {
            String::new()
        }
    }

    fn read_turn(state: &Chess, text: &str) -> Result<Vec<Action>, String> {
        let text = text.trim();
        let by_squares = text.replace(['-', ' ', '='], "").to_lowercase();
        match state.action_of_uci(&by_squares) {
            Ok(action) => return Ok(vec![action]),
            Err(UciError::Illegal(_)) => return Err(why_not(state, &by_squares)),
            Err(UciError::Form(_)) => {}
        }
        match state.action_of_san(text) {
            Ok(action) => Ok(vec![action]),
            Err(SanError::Illegal(text)) if state.is_check() => {
                let mover = Self::player(state.to_move());
                Err(format!("{text} is not legal: {mover} is in check"))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    fn write_turn(state: &Chess, actions: &[Action]) -> String {
        let mut state = state.clone();
        let mut texts = Vec::new();
        for &action in actions {
            texts.push(state.san(action));
            state.play_legal(action);
        }
        texts.join(" ")
    }
}

fn why_not(state: &Chess, squares: &str) -> String {
    let promoted = format!("{squares}q");
    if squares.len() == 4 && state.action_of_uci(&promoted).is_ok() {
        return format!("{squares} promotes: say to what, e.g. {promoted}");
    }
    let from = squares.get(..2).and_then(board::read_square);
    let reason = match from.and_then(|square| state.piece_letter(square)) {
        None => "nothing stands there",
        Some(letter) if letter.is_uppercase() != (state.to_move() == Player::First) => {
            "that is the other side's piece"
        }
        Some(_) if state.is_check() => "you are in check, and would stay so, or the piece cannot go there",
        Some(_) => "the piece cannot go there, or its king would be in check",
    };
    format!("{squares} is not legal: {reason}")
}

#[cfg(test)]
mod tests {
    use games::chess::Rules;

    use super::*;

    fn at(fen: &str) -> Chess {
        Chess::start(
            &Rules {
                underpromotions: true,
            },
            Some(fen),
        )
        .unwrap()
    }

    fn read(state: &Chess, text: &str) -> Result<String, String> {
        ChessTable::read_turn(state, text).map(|actions| ChessTable::write_turn(state, &actions))
    }

    #[test]
    fn moves_are_read_in_either_form() {
        let state = at("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1");
        for (text, san) in [
            ("e1g1", "O-O"),
            ("e1-g1", "O-O"),
            ("E2 A6", "Bxa6"),
            ("O-O-O", "O-O-O"),
            ("dxe6", "dxe6"),
            ("Nxf7", "Nxf7"),
        ] {
            assert_eq!(read(&state, text), Ok(san.into()), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_explained() {
        let start = at("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1");
        for (text, says) in [
            ("e3e4", "nothing stands there"),
            ("e7e5", "the other side's piece"),
            ("e2e5", "cannot go there"),
            ("Nd4", "Nd4 is not legal here"),
            ("what", "not a move in algebraic notation"),
        ] {
            let said = read(&start, text).unwrap_err();
            assert!(said.contains(says), "{text}: {said}");
        }
        let promotion = at("7k/P7/8/8/8/8/8/K7 w - - 0 1");
        assert!(read(&promotion, "a7a8").unwrap_err().contains("e.g. a7a8q"));
        assert_eq!(read(&promotion, "a7a8n"), Ok("a8=N".into()));
        let two = at("7k/8/8/8/8/8/8/K1N1N3 w - - 0 1");
        assert!(read(&two, "Nd3").unwrap_err().contains("Ncd3 or Ned3"));
    }

    #[test]
    fn the_board() {
        let state = at("7k/8/8/8/8/8/8/K1N1N3 w - - 0 1");
        let ascii = Style {
            ascii: true,
            ..Style::default()
        };
        let board = ChessTable::draw(&state, ascii);
        let lines: Vec<&str> = board.lines().collect();
        assert_eq!(lines[1], "8 |   |   |   |   |   |   |   | k |");
        assert_eq!(lines[15], "1 | K |   | N |   | N |   |   |   |");
        assert!(ChessTable::draw(&state, Style::default()).contains("│ ♔ │"));
    }
}
