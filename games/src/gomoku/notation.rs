//! Gomoku for people: the drawing of the board, and moves as squares.

use documented::DocumentedFields as _;

use super::{Gomoku, Rules};
use crate::{
    Action, Notation,
    perft::KnownPerft,
    probes::ProbeLine,
    scene::{Board, Cell, Clicks, Scene, Squares, Surface},
};

impl Gomoku {
    fn squares(&self) -> Squares {
        Squares::new(self.stones.side(), self.stones.side())
    }
}

impl Notation for Gomoku {
    const PLAYER_NAMES: [&'static str; 2] = ["Black", "White"];

    const HELP: &'static str = "Moves: the square of the new stone (d4). Five in a row win.";

    /// Products of 64, 63, 62 and 61: the first four actions cannot end the game.
    const KNOWN_PERFT: &'static [KnownPerft] = &[KnownPerft {
        position: None,
        counts: &[64, 4032, 249_984, 15_249_024],
    }];

    const OPENING_PLIES: u32 = 4;

    const PROBES: &'static [ProbeLine] = &[
        ProbeLine::new("Start", &[]),
        ProbeLine::new("First stone", &["d4"]),
        ProbeLine::new("Stones side by side", &["d4", "d5"]),
        ProbeLine::new("Stones at an angle", &["d4", "e5"]),
        ProbeLine::new("Open three to stop", &["d4", "a1", "e4", "a8", "f4"]),
        ProbeLine::new("Open three to extend", &["d4", "a1", "e4", "a8", "f4", "h8"]),
        ProbeLine::new("Four to stop", &["a4", "a1", "b4", "a8", "c4", "h8", "d4"]),
        ProbeLine::new(
            "Five to complete",
            &["a4", "a1", "b4", "a8", "c4", "h8", "d4", "h1"],
        ),
    ];

    fn rule_comment(key: &str) -> Option<&'static str> {
        Rules::get_field_docs(key).ok()
    }

    fn scene(&self, last_turn: &[Action]) -> Scene {
        let squares = self.squares();
        self.scene_of(vec![Board {
            surface: Surface::Lines,
            colors: ["black", "white"],
            is_turned_for_second: false,
            ..Board::of_squares(squares, |square| Cell {
                is_last: last_turn.contains(&square),
                is_star: squares.is_star(square),
                ..Cell::of_disc(self.stones.owner(square))
            })
        }])
    }

    fn clicks(&self, action: Action) -> Clicks {
        Clicks::on([self.squares().cell(action)])
    }

    fn read_turn(&self, text: &str) -> Result<Vec<Action>, String> {
        let text = text.trim().to_lowercase();
        let action = self
            .squares()
            .read(&text)
            .ok_or_else(|| format!("{text:?} is not a square, e.g. d4"))?;
        self.turn_of(&text, action)
    }

    fn write_action(&self, square: Action) -> String {
        self.squares().name(square)
    }
}
