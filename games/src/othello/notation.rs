//! Othello for people: the drawing of the board and the notation of moves by squares.

use super::{Othello, PASS};
use crate::{
    Action, Notation,
    perft::KnownPerft,
    probes::ProbeLine,
    scene::{Board, CHESS_BOARD, Cell, Clicks, Scene, Surface},
};

impl Notation for Othello {
    const PLAYER_NAMES: [&'static str; 2] = ["Black", "White"];

    const HELP: &'static str = "Moves: the square of the new disc (d3), or pass if no disc can be placed. Dots mark the squares where one can be placed.";

    /// Published counts. For depth 10 the published number, 24,571,284, also counts a pass after each of 228 finished
    /// games.
    const KNOWN_PERFT: &'static [KnownPerft] = &[KnownPerft {
        position: None,
        counts: &[4, 12, 56, 244, 1396, 8200, 55_092, 390_216, 3_005_288],
    }];

    const OPENING_PLIES: u32 = 6;

    const RUN_SETTINGS: &'static str = include_str!("run.toml");

    const PROBES: &'static [ProbeLine] = &[
        ProbeLine::new("Start", &[]),
        ProbeLine::new("First disc", &["f5"]),
        ProbeLine::new("Parallel opening", &["f5", "f4"]),
        ProbeLine::new("Diagonal opening", &["f5", "f6"]),
        ProbeLine::new("Perpendicular opening", &["f5", "d6"]),
        ProbeLine::new("Tiger", &["f5", "d6", "c3", "d3", "c4"]),
        ProbeLine::new(
            "Rose",
            &["f5", "d6", "c5", "f4", "e3", "c6", "d3", "f6", "e6", "d7"],
        ),
        ProbeLine::new(
            "All discs to win",
            &["e6", "f4", "e3", "f6", "g5", "d6", "e7", "f5"],
        ),
    ];

    /// Returns the drawing of the board, with a1 at the top left for both players.
    fn scene(&self, last_turn: &[Action]) -> Scene {
        let discs = self.discs.by_player();
        let cell = |square: u32| Cell {
            is_last: last_turn.contains(&square),
            is_playable: self.placements >> square & 1 == 1,
            ..Cell::of_discs(discs, square)
        };
        self.scene_of(vec![Board {
            surface: Surface::Plain,
            rows: CHESS_BOARD.ranks().into_iter().rev().collect(),
            cells: (0..64).map(cell).collect(),
            colors: ["black", "white"],
            is_turned_for_second: false,
            ..Board::of_squares(CHESS_BOARD, |_| Cell::default())
        }])
    }

    /// Returns one click on the square of the disc, and none for a pass, which is offered by its name.
    fn clicks(&self, action: Action) -> Clicks {
        Clicks::on((action != PASS).then_some(action as usize))
    }

    fn remark(&self) -> String {
        let [black, white] = self.discs.by_player().map(u64::count_ones);
        let must_pass = if self.placements == 0 && !self.over {
            " No disc can be placed: pass."
        } else {
            ""
        };
        format!("Black has {black} discs, White {white}.{must_pass}")
    }

    fn read_turn(&self, text: &str) -> Result<Vec<Action>, String> {
        let text = text.trim().to_lowercase();
        let action = match text.as_str() {
            "pass" | "--" | "ps" => PASS,
            _ => CHESS_BOARD
                .read(&text)
                .ok_or_else(|| format!("{text:?} is not a square, e.g. d3"))?,
        };
        self.turn_of(&text, action)
    }

    fn write_action(&self, action: Action) -> String {
        match action {
            PASS => "pass".into(),
            square => CHESS_BOARD.name(square),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::Style;

    #[test]
    fn the_board_is_drawn_and_moves_are_read() {
        let state = Othello::initial();
        let ascii = Style {
            ascii: true,
            ..Style::default()
        };
        let board = state.draw(ascii);
        let lines: Vec<&str> = board.lines().collect();
        assert_eq!(lines[7], "4 |   |   | . | O | X |   |   |   |");
        assert_eq!(state.remark(), "Black has 2 discs, White 2.");
        let played = state.read_turn("D3").unwrap();
        assert_eq!(state.write_turn(&played), "d3");
        for (text, reason) in [
            ("a1", "turned over"),
            ("pass", "passing is not"),
            ("z9", "not a square"),
        ] {
            let error = state.read_turn(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
