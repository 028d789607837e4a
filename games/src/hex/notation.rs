//! Hex for people: the drawing of the board, and moves as cells or `swap`.

use documented::DocumentedFields as _;

use super::{Hex, Rules};
use crate::{
    Action, Notation,
    perft::KnownPerft,
    probes::ProbeLine,
    scene::{Board, Cell, Clicks, Scene, Squares, Surface},
};

/// Text of the swap.
const SWAP: &str = "swap";

impl Hex {
    fn squares(&self) -> Squares {
        Squares::new(self.stones.side(), self.stones.side())
    }
}

impl Notation for Hex {
    const PLAYER_NAMES: [&'static str; 2] = ["Red", "Blue"];

    const HELP: &'static str =
        "Moves: the cell of the new stone (f6), or swap. Red connects top and bottom, Blue left and right.";

    /// 121 cells; then 120 cells or the swap; then 119 cells, or 120 after the swap.
    const KNOWN_PERFT: &'static [KnownPerft] = &[KnownPerft {
        position: None,
        counts: &[121, 14_641, 1_742_400],
    }];

    const OPENING_PLIES: u32 = 2;

    const RUN_SETTINGS: &'static str = include_str!("run.toml");

    const PROBES: &'static [ProbeLine] = &[
        ProbeLine::new("Start", &[]),
        ProbeLine::new("Stone in the centre", &["f6"]),
        ProbeLine::new("Stone in an acute corner", &["a1"]),
        ProbeLine::new("Centre taken over", &["f6", "swap"]),
        ProbeLine::new("Bridge to defend", &["a10", "f6", "f5", "e6", "g4", "g5"]),
        ProbeLine::new("Stone next to the centre", &["b4", "f6", "g5"]),
        ProbeLine::new("Block far from a stone", &["b4", "f6", "d4"]),
        ProbeLine::new("Edge to reach", &["e3", "f6", "d5"]),
    ];

    fn rule_comment(key: &str) -> Option<&'static str> {
        Rules::get_field_docs(key).ok()
    }

    /// Draws the first rank on top, as Hex is usually drawn, so that cells of the drawing have the numbers of the actions.
    fn scene(&self, last_turn: &[Action]) -> Scene {
        let squares = self.squares();
        let is_last = |cell| last_turn.contains(&cell) || last_turn.contains(&squares.count());
        let cell = |cell| {
            let owner = self.stones.owner(cell);
            Cell {
                is_last: owner.is_some() && is_last(cell),
                ..Cell::of_disc(owner)
            }
        };
        self.scene_of(vec![Board {
            surface: Surface::Hexagons,
            rows: squares.ranks().into_iter().rev().collect(),
            cells: (0..squares.count()).map(cell).collect(),
            colors: ["red", "blue"],
            is_turned_for_second: false,
            ..Board::of_squares(squares, |_| Cell::default())
        }])
    }

    /// Returns one click on the cell of the new stone. The swap has none: a page offers it by its name.
    fn clicks(&self, action: Action) -> Clicks {
        if action < self.stones.area() {
            Clicks::on([action as usize])
        } else {
            Clicks::default()
        }
    }

    fn read_turn(&self, text: &str) -> Result<Vec<Action>, String> {
        let text = text.trim().to_lowercase();
        let action = match text.as_str() {
            SWAP => Some(self.stones.area()),
            cell => self.squares().read(cell),
        };
        let action = action.ok_or_else(|| format!("{text:?} is neither a cell, e.g. d4, nor {SWAP}"))?;
        self.turn_of(&text, action)
    }

    fn write_action(&self, action: Action) -> String {
        if action < self.stones.area() {
            self.squares().name(action)
        } else {
            SWAP.into()
        }
    }

    fn remark(&self) -> String {
        if self.can_swap {
            "Blue may swap.".into()
        } else {
            String::new()
        }
    }
}
