//! Connect Four for people: the drawing of the board, and moves as column numbers from 1.

use std::sync::{Arc, atomic::AtomicBool};

use super::{COLUMNS, ConnectFour, ROWS, solver::Solver};
use crate::{
    Action, Game, Notation,
    perft::KnownPerft,
    probes::ProbeLine,
    scene::{Board, Cell, Clicks, Scene, Surface},
};

/// Memory of the solver's table while it judges the columns, in bytes.
const SOLVER_BYTES: usize = 64 << 20;

impl Notation for ConnectFour {
    const PLAYER_NAMES: [&'static str; 2] = ["X", "O"];

    const HELP: &'static str = "Moves: the number of a column, 1 to 7.";

    const KNOWN_PERFT: &'static [KnownPerft] = &[KnownPerft {
        position: None,
        counts: &[7, 49, 343, 2401, 16_807, 117_649, 823_536, 5_673_234, 39_394_572],
    }];

    const OPENING_PLIES: u32 = 4;

    const OPTIONS: u32 = 1;

    const OPTION_NAMES: &'static [&'static str] = &["cells"];

    const HAS_SOLVER: bool = true;

    const RUN_SETTINGS: &'static str = include_str!("run.toml");

    const PROBES: &'static [ProbeLine] = &[
        ProbeLine::new("Start", &[]),
        ProbeLine::new("Centre taken", &["4"]),
        ProbeLine::new("Centre column full", &["4", "4", "4", "4", "4", "4"]),
        ProbeLine::new("Two in the open", &["4", "4", "3"]),
        ProbeLine::new("Three upright to block", &["4", "3", "4", "3", "4"]),
        ProbeLine::new("Three in a row to block", &["1", "1", "2", "2", "3"]),
        ProbeLine::new("Four to complete", &["3", "3", "4", "4", "5", "5"]),
        ProbeLine::new("Four upright to complete", &["4", "3", "4", "3", "4", "3"]),
    ];

    fn scene(&self, last_turn: &[Action]) -> Scene {
        let (discs, occupied) = (self.discs.by_player(), self.discs.all());
        let cell = |row: u32, column: u32| {
            let bit = 8 * row + column;
            let is_top = row + 1 == ROWS || occupied >> (bit + 8) & 1 == 0;
            Cell {
                is_last: occupied >> bit & 1 == 1 && is_top && last_turn.contains(&column),
                ..Cell::of_discs(discs, bit)
            }
        };
        self.scene_of(vec![Board {
            title: "",
            surface: Surface::Holes,
            columns: (1..=COLUMNS).map(|column| column.to_string()).collect(),
            rows: vec![String::new(); ROWS as usize],
            cells: (0..ROWS)
                .rev()
                .flat_map(|row| (0..COLUMNS).map(move |column| cell(row, column)))
                .collect(),
            colors: ["red", "yellow"],
            pieces_per_cell: 1,
            is_turned_for_second: false,
        }])
    }

    /// Returns one click anywhere on the column. The cell where the disc lands comes first.
    fn clicks(&self, column: Action) -> Clicks {
        let free = |row: &u32| self.discs.all() >> (8 * row + column) & 1 == 0;
        let landing = (0..ROWS).find(free).unwrap_or(ROWS - 1);
        let rows = (landing..ROWS).chain(0..landing);
        let cell = |row: u32| ((ROWS - 1 - row) * COLUMNS + column) as usize;
        Clicks {
            cells: vec![rows.map(cell).collect()],
            ..Clicks::default()
        }
    }

    fn solve_actions(&self, stop: &Arc<AtomicBool>, found: &mut dyn FnMut(Action, i8)) {
        let mut solver = Solver::new(SOLVER_BYTES);
        for column in 0..COLUMNS {
            let mut next = *self;
            if next.play(column).is_err() {
                continue;
            }
            match solver.unless(stop, |solver| solver.winner(&next)) {
                Some(winner) => found(column, -winner),
                None => return,
            }
        }
    }

    fn read_turn(&self, text: &str) -> Result<Vec<Action>, String> {
        let text = text.trim();
        let column = text.parse().ok().filter(|column| (1..=COLUMNS).contains(column));
        let column = column.ok_or_else(|| format!("{text:?} is not a column, 1 to {COLUMNS}"))?;
        self.turn_of(text, column - 1)
    }

    fn write_action(&self, column: Action) -> String {
        (column + 1).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::Style;

    #[test]
    fn the_board_is_drawn_and_moves_are_read() {
        let mut state = ConnectFour::EMPTY;
        for text in ["4", "4", "1"] {
            let played = state.read_turn(text).unwrap();
            assert_eq!(state.write_turn(&played), text);
            state.play(played[0]).unwrap();
        }
        let ascii = Style {
            ascii: true,
            ..Style::default()
        };
        let board = state.draw(ascii);
        let lines: Vec<&str> = board.lines().collect();
        assert_eq!(lines[9], " |   |   |   | O |   |   |   |");
        assert_eq!(lines[11], " | X |   |   | X |   |   |   |");
        assert_eq!(lines[13], "   1   2   3   4   5   6   7");
        for text in ["0", "8", "", "x"] {
            assert!(state.read_turn(text).is_err(), "{text}");
        }
        for column in [3, 3, 3, 3] {
            state.play(column).unwrap();
        }
        assert!(state.read_turn("4").unwrap_err().contains("full"));
    }

    #[test]
    fn the_terminal_shows_the_players_colours_and_the_last_disc_is_marked() {
        let mut state = ConnectFour::EMPTY;
        state.play(0).unwrap();
        let colour = Style {
            colour: true,
            ..Style::default()
        };
        assert!(state.draw(colour).contains("\u{1b}[31m●\u{1b}[0m"));
        let board = &state.scene(&[0]).boards[0];
        let last: Vec<usize> = (0..42).filter(|&cell| board.cells[cell].is_last).collect();
        assert_eq!(last, [35]);
    }
}
