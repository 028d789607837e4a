//! Chess: rules by the crate cozy-chess, with the history that FIDE's draws need; rows and policy of dlchess (version 2).
//!
//! | module | content |
//! |---|---|
//! | `state` | the state of a game, with its history |
//! | `moves` | action ids, and dlchess' 73×8×8 policy entries |
//! | `legal` | legal actions, and the moves that they mean |
//! | `history` | positions that could still be repeated |
//! | `ending` | mate, stalemate and the draws |
//! | `row` | the index row and its layout: dlchess' 22 planes |
//! | `text`, `san` | FEN, UCI and algebraic notation, checked when read |
//! | `notation` | drawing, notation and JSON |
//!
//! Actions are absolute: `64·from + to`, with further ids for under-promotions (promotions to knight, bishop or rook).
//! Castling moves the king by two files. Policy entries are relative: the board is turned by 180° for Black. The left-right
//! mirror image of a position is equivalent if no castling right is left.

mod ending;
mod history;
mod legal;
mod moves;
mod notation;
mod row;
mod san;
mod state;
mod text;

use cozy_chess::{Board, Color};
use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use self::{history::History, moves::Step};
use crate::{
    game::{Action, Game, IllegalAction, KnownOutcome, Outcome, SingleEncoding, StartError},
    layout::RowLayout,
    symmetries::{RowSymmetries, Symmetry},
    value::Player,
};

pub use san::SanError;
pub use state::Chess;
pub use text::UciError;

/// Rules of a game. The default is for self-play.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct Rules {
    /// True if promotions to knight, bishop and rook are among the legal actions. The default is false, so that a search
    /// spends nothing on them. They can be played even then, because an opponent may play them.
    pub underpromotions: bool,
}

const fn player(color: Color) -> Player {
    match color {
        Color::White => Player::First,
        Color::Black => Player::Second,
    }
}

impl Game for Chess {
    type Rules = Rules;
    type Encoding = SingleEncoding;

    const NAME: &'static str = "chess";
    const PLAYERS: u8 = 2;

    fn start(rules: &Rules, position: Option<&str>) -> Result<Self, StartError> {
        let (board, clock) = match position {
            None => (Board::startpos(), 0),
            Some(fen) => text::read_fen(fen).map_err(StartError::of::<Self>)?,
        };
        Ok(Self {
            history: History::beginning_at(&board),
            board,
            clock,
            underpromotions: rules.underpromotions,
        })
    }

    fn layout(_: SingleEncoding) -> RowLayout {
        row::layout()
    }

    fn actions(&self) -> u32 {
        moves::ACTIONS
    }

    fn symmetries(&self) -> u8 {
        row::SYMMETRIES
    }

    fn to_move(&self) -> Player {
        player(self.board.side_to_move())
    }

    fn outcome(&self) -> Option<Outcome> {
        ending::outcome(self)
    }

    fn legal_actions(&self, actions: &mut Vec<Action>) {
        if ending::is_drawn(self) {
            actions.clear();
        } else {
            legal::collect(&self.board, self.underpromotions, actions);
        }
    }

    /// Plays an action. Under-promotions are accepted even if the rules do not offer them.
    fn play(&mut self, action: Action) -> Result<(), IllegalAction> {
        if self.outcome().is_some() {
            let reason = "the game is over";
            return Err(IllegalAction { action, reason });
        }
        self.play_on_board(action)
            .map_err(|reason| IllegalAction { action, reason })
    }

    fn play_legal(&mut self, action: Action) {
        // A move that is not legal changes nothing.
        let _ = self.play_on_board(action);
    }

    fn position(&self) -> String {
        text::write_fen(self)
    }

    fn allows(&self, symmetry: Symmetry) -> bool {
        match symmetry {
            Symmetry::IDENTITY => true,
            Symmetry(1) => [Color::White, Color::Black].iter().all(|&color| {
                let rights = self.board.castle_rights(color);
                rights.short.is_none() && rights.long.is_none()
            }),
            _ => false,
        }
    }

    fn write_row(&self, _: SingleEncoding, symmetry: Symmetry, row: &mut Vec<u32>) {
        row::write(self, self.view(symmetry), row);
    }

    fn policy_index(&self, _: SingleEncoding, symmetry: Symmetry, action: Action) -> u32 {
        Step::of(action).map_or(action, |step| step.entry(self.view(symmetry)))
    }

    fn known(&self) -> Option<KnownOutcome> {
        ending::mate_in_one(self)
    }

    fn can_draw(&self) -> bool {
        ending::draw_in_one(self)
    }

    fn row_symmetries(_: SingleEncoding) -> RowSymmetries {
        row::symmetries()
    }
}
