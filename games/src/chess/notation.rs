//! Chess for people and in JSON: the drawing of the board, moves in algebraic notation or by squares, UCI in JSON.

use documented::DocumentedFields as _;
use serde_json::{Map, Value};

use super::{Rules, SanError, UciError, state::Chess};
use crate::{
    Action, Game, Notation, Player, SingleEncoding, Symmetry,
    notation::JsonFields,
    perft::KnownPerft,
    probes::ProbeLine,
    scene::{Board, CHESS_BOARD, Cell, Clicks, Piece, Scene},
};

impl Notation for Chess {
    const PLAYER_NAMES: [&'static str; 2] = ["White", "Black"];

    const HELP: &'static str =
        "Moves: in algebraic notation (e4, Nf3, exd5, O-O, e8=Q) or by squares (e2e4, e1g1, e7e8q).";

    /// Counts of the chess programming wiki: the start position, Kiwipete and a board of promotions.
    const KNOWN_PERFT: &'static [KnownPerft] = &[
        KnownPerft {
            position: None,
            counts: &[20, 400, 8902, 197_281, 4_865_609],
        },
        KnownPerft {
            position: Some("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"),
            counts: &[48, 2039, 97_862, 4_085_603],
        },
        KnownPerft {
            position: Some("n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1"),
            counts: &[24, 496, 9483, 182_838, 3_605_103],
        },
    ];

    const RUN_SETTINGS: &'static str = include_str!("run.toml");

    const HAS_PGN: bool = true;

    const PROBES: &'static [ProbeLine] = &[
        ProbeLine::new("Start", &[]),
        ProbeLine::new("King's pawn", &["e4"]),
        ProbeLine::new("Sicilian Defence", &["e4", "c5"]),
        ProbeLine::new("Italian Game", &["e4", "e5", "Nf3", "Nc6", "Bc4"]),
        ProbeLine::new("Queen's Gambit", &["d4", "d5", "c4"]),
        ProbeLine::new("A queen to take", &["e4", "e5", "Qh5", "g6", "Nc3"]),
        ProbeLine::new("Mate in one for White", &["e4", "e5", "Qh5", "Nc6", "Bc4", "Nf6"]),
        ProbeLine::new("Mate in one for Black", &["f3", "e5", "g4"]),
    ];

    fn rule_comment(key: &str) -> Option<&'static str> {
        Rules::get_field_docs(key).ok()
    }

    fn scene(&self, last_turn: &[Action]) -> Scene {
        let touched: Vec<u32> = last_turn
            .iter()
            .flat_map(|&action| {
                let uci = self.uci(action);
                [uci.get(..2), uci.get(2..4)].map(|square| square.and_then(|name| CHESS_BOARD.read(name)))
            })
            .flatten()
            .collect();
        self.scene_of(vec![Board::of_squares(CHESS_BOARD, |square| Cell {
            pieces: self
                .piece_letter(square)
                .and_then(Piece::chessman)
                .into_iter()
                .collect(),
            is_last: touched.contains(&square),
            ..Cell::default()
        })])
    }

    fn clicks(&self, action: Action) -> Clicks {
        let uci = self.uci(action);
        let squares = [uci.get(..2), uci.get(2..4)];
        let letter = uci.chars().nth(4).map(|letter| match self.to_move() {
            Player::First => letter.to_ascii_uppercase(),
            Player::Second => letter,
        });
        Clicks {
            piece: letter.and_then(Piece::chessman),
            ..Clicks::on(
                squares
                    .into_iter()
                    .flatten()
                    .filter_map(|name| CHESS_BOARD.read(name))
                    .map(|square| CHESS_BOARD.cell(square)),
            )
        }
    }

    fn remark(&self) -> String {
        if self.is_check() && self.outcome().is_none() {
            "Check!".into()
        } else {
            String::new()
        }
    }

    fn read_turn(&self, text: &str) -> Result<Vec<Action>, String> {
        let text = text.trim();
        let by_squares = text.replace(['-', ' ', '='], "").to_lowercase();
        match self.action_of_uci(&by_squares) {
            Ok(action) => return Ok(vec![action]),
            Err(UciError::Illegal(_)) => return Err(explain_illegal(self, &by_squares)),
            Err(UciError::Form(_)) => {}
        }
        match self.action_of_san(text) {
            Ok(action) => Ok(vec![action]),
            Err(SanError::Illegal(text)) if self.is_check() => {
                let mover = Self::PLAYER_NAMES[self.to_move().index()];
                Err(format!("{text} is not legal: {mover} is in check"))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    fn write_action(&self, action: Action) -> String {
        self.san(action)
    }

    /// Returns the rules under which all promotions are offered.
    fn json_rules() -> Rules {
        Rules {
            underpromotions: true,
        }
    }

    /// Returns the action of a string that holds a move as UCI writes it.
    fn action_from_json(&self, value: &Value) -> Result<Action, String> {
        let uci = value
            .as_str()
            .ok_or_else(|| format!("{value} is not a move in UCI notation, e.g. \"e2e4\""))?;
        self.action_of_uci(uci).map_err(|error| error.to_string())
    }

    fn action_to_json(&self, action: Action) -> Value {
        Value::from(self.uci(action))
    }

    /// Returns the field `policy`: the policy entry of every move in [`Chess::moves`].
    fn json_fields(&self, _: SingleEncoding) -> JsonFields {
        let mut actions = Vec::new();
        self.moves(&mut actions);
        let policy: Map<String, Value> = actions
            .into_iter()
            .map(|action| {
                let entry = self.policy_index(Default::default(), Symmetry::IDENTITY, action);
                (self.uci(action), Value::from(entry))
            })
            .collect();
        vec![("policy", Value::Object(policy))]
    }
}

/// Returns a sentence that says why a move by squares is not legal.
fn explain_illegal(state: &Chess, squares: &str) -> String {
    let promoted = format!("{squares}q");
    if squares.len() == 4 && state.action_of_uci(&promoted).is_ok() {
        return format!("{squares} promotes: add the piece, e.g. {promoted}");
    }
    let from = squares.get(..2).and_then(|name| CHESS_BOARD.read(name));
    let reason = match from.and_then(|square| state.piece_letter(square)) {
        None => "the square is empty",
        Some(letter) if letter.is_uppercase() != (state.to_move() == Player::First) => {
            "that is the other side's piece"
        }
        Some(_) if state.is_check() => "the piece cannot go there, or your king would still be in check",
        Some(_) => "the piece cannot go there, or your king would be in check",
    };
    format!("{squares} is not legal: {reason}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::Style;

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
        state.read_turn(text).map(|actions| state.write_turn(&actions))
    }

    #[test]
    fn moves_are_read_by_squares_and_in_algebraic_notation() {
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
    fn an_illegal_move_is_explained() {
        let start = at("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1");
        for (text, says) in [
            ("e3e4", "the square is empty"),
            ("e7e5", "the other side's piece"),
            ("e2e5", "cannot go there"),
            ("Nd4", "Nd4 is not legal here"),
            ("what", "not a move in algebraic notation"),
        ] {
            let error = read(&start, text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
        let promotion = at("7k/P7/8/8/8/8/8/K7 w - - 0 1");
        assert!(read(&promotion, "a7a8").unwrap_err().contains("e.g. a7a8q"));
        assert_eq!(read(&promotion, "a7a8n"), Ok("a8=N".into()));
        let two = at("7k/8/8/8/8/8/8/K1N1N3 w - - 0 1");
        assert!(read(&two, "Nd3").unwrap_err().contains("Ncd3 or Ned3"));
    }

    #[test]
    fn the_board_is_drawn_with_letters_or_symbols() {
        let state = at("7k/8/8/8/8/8/8/K1N1N3 w - - 0 1");
        let ascii = Style {
            ascii: true,
            ..Style::default()
        };
        let board = state.draw(ascii);
        let lines: Vec<&str> = board.lines().collect();
        assert_eq!(lines[1], "8 |   |   |   |   |   |   |   | k |");
        assert_eq!(lines[15], "1 | K |   | N |   | N |   |   |   |");
        assert!(state.draw(Style::default()).contains("│ ♔ │"));
    }
}
