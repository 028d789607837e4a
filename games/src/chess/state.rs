//! [`Chess`]: the state of a game.

use cozy_chess::{Board, Color};

use super::{history::History, legal, moves::View};
use crate::{game::Action, symmetries::Symmetry};

/// A position of chess with its history.
#[derive(Debug, PartialEq, Eq)]
pub struct Chess {
    pub(super) board: Board,
    /// Half-moves since the last capture or pawn move. It may be above 100 in a start position, where the board's own clock
    /// stops.
    pub(super) clock: u8,
    pub(super) underpromotions: bool,
    pub(super) history: History,
}

impl Clone for Chess {
    fn clone(&self) -> Self {
        Self {
            board: self.board.clone(),
            history: self.history.clone(),
            ..*self
        }
    }

    fn clone_from(&mut self, source: &Self) {
        self.board.clone_from(&source.board);
        self.history.clone_from(&source.history);
        self.clock = source.clock;
        self.underpromotions = source.underpromotions;
    }
}

impl Chess {
    /// Returns the board without the history.
    pub const fn board(&self) -> &Board {
        &self.board
    }

    /// Returns the number of half-moves since the last capture or pawn move, 0 to 150.
    pub const fn clock(&self) -> u8 {
        self.clock
    }

    /// Returns the number of times that this position occurred before in this game, by FIDE's rules. 2 is a draw by
    /// repetition.
    pub fn earlier_occurrences(&self) -> u32 {
        self.history.occurrences(&self.board)
    }

    /// Replaces `actions` by all moves of the pieces, ascending. Unlike [`Game::legal_actions`](crate::Game::legal_actions) it includes all
    /// promotions, and the moves left in a drawn position.
    pub fn moves(&self, actions: &mut Vec<Action>) {
        legal::collect(&self.board, true, actions);
    }

    pub(super) fn play_on_board(&mut self, action: Action) -> Result<(), &'static str> {
        let Some(chosen) = legal::board_move(&self.board, action) else {
            return Err("no piece of the player to move can make this move");
        };
        let before = self.history.key(&self.board);
        let mover = self.board.side_to_move();
        let rights = [
            *self.board.castle_rights(mover),
            *self.board.castle_rights(!mover),
        ];
        if self.board.try_play(chosen).is_err() {
            return Err("the move is not legal");
        }
        self.clock = match self.board.halfmove_clock() {
            0 => 0,
            _ => self.clock.saturating_add(1),
        };
        let lost_a_right = rights
            != [
                *self.board.castle_rights(mover),
                *self.board.castle_rights(!mover),
            ];
        self.history
            .push(before, &self.board, self.clock == 0 || lost_a_right);
        Ok(())
    }

    pub(super) fn view(&self, symmetry: Symmetry) -> View {
        View {
            turned: self.board.side_to_move() == Color::Black,
            mirrored: symmetry != Symmetry::IDENTITY,
        }
    }
}
