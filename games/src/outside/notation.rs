//! A game from outside for people: a drawing of its planes, and actions by their texts.

use super::{ADDED, Outside, Position, rules};
use crate::{
    Action, Notation,
    perft::KnownPerft,
    scene::{Board, Cell, Clicks, Scene, Squares, Surface},
    terminal::Style,
};

/// Number of colours of painted cells.
const COLORS: usize = 10;

impl Outside {
    /// Returns the squares of the planes.
    fn squares() -> Squares {
        let stack = ADDED.get().and_then(|game| game.description.layout.stack().ok());
        stack.map_or(Squares::new(1, 1), |stack| {
            Squares::new(stack.height, stack.width)
        })
    }

    /// Returns for each square the first plane of entries that is set there. Rows repeat their first entry for absent ones, so that its
    /// square counts too.
    fn painted(position: &Position) -> Vec<Option<usize>> {
        let squares = Self::squares().count();
        let mut planes = vec![None; squares as usize];
        let stack = ADDED.get().and_then(|game| game.description.layout.stack().ok());
        let entries = stack.map_or(0, |stack| stack.entries as usize);
        for &index in position.row.iter().take(entries) {
            let plane = (index / squares) as usize;
            if let Some(slot) = planes.get_mut((index % squares) as usize)
                && slot.is_none_or(|other| plane < other)
            {
                *slot = Some(plane);
            }
        }
        planes
    }

    fn text(&self, action: Action) -> String {
        match (rules(), self.position()) {
            (Some(rules), Some(position)) => rules.action_text(position, action),
            _ => action.to_string(),
        }
    }
}

impl Notation for Outside {
    const PLAYER_NAMES: [&'static str; 2] = ["First", "Second"];

    const HELP: &'static str = "Moves: as the game writes them; `moves` lists the possible ones.";

    const KNOWN_PERFT: &'static [KnownPerft] = &[];

    const OPENING_PLIES: u32 = 4;

    fn player_names() -> [&'static str; 2] {
        ADDED.get().map_or(Self::PLAYER_NAMES, |game| game.players)
    }

    fn scene(&self, _: &[Action]) -> Scene {
        let squares = Self::squares();
        let painted = self.position().map(Self::painted).unwrap_or_default();
        let paint = |square: u32| {
            painted
                .get(square as usize)
                .copied()
                .flatten()
                .map(|plane| (1 + plane % (COLORS - 1)) as u8)
        };
        self.scene_of(vec![Board {
            surface: Surface::Painted,
            is_turned_for_second: false,
            ..Board::of_squares(squares, |square| Cell {
                paint: Some(paint(square).unwrap_or_default()),
                ..Cell::default()
            })
        }])
    }

    /// Returns one click on the square of an action, if the actions are the squares.
    fn clicks(&self, action: Action) -> Clicks {
        let squares = Self::squares();
        let actions = crate::Game::actions(self);
        Clicks::on((actions == squares.count()).then(|| squares.cell(action)))
    }

    /// Returns the board as digits: for each square the number of its first set plane, from 1; `.` where none is set.
    fn draw(&self, _: Style) -> String {
        let squares = Self::squares();
        let painted = self.position().map(Self::painted).unwrap_or_default();
        let digit = |square: usize| match painted.get(square).copied().flatten() {
            Some(plane) => char::from_digit(1 + plane as u32, 36).unwrap_or('#'),
            None => '.',
        };
        let mut text = String::new();
        for rank in (0..squares.height as usize).rev() {
            let width = squares.width as usize;
            let cells: Vec<String> = (0..width)
                .map(|file| digit(rank * width + file).to_string())
                .collect();
            text += &cells.join(" ");
            text.push('\n');
        }
        text
    }

    fn read_turn(&self, text: &str) -> Result<Vec<Action>, String> {
        let text = text.trim();
        let mut legal = Vec::new();
        crate::Game::legal_actions(self, &mut legal);
        let action = legal.into_iter().find(|&action| self.text(action) == text);
        let action = action.ok_or_else(|| format!("{text:?} is none of the legal actions"))?;
        self.turn_of(text, action)
    }

    fn write_action(&self, action: Action) -> String {
        self.text(action)
    }
}
