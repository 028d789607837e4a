//! Performs actions on a [`Position`]. Legality is decided in [`super::legal`].

use cozy_chess::{Rank, Square};

use super::{
    action::Act,
    board::Board,
    piece::{Kind, home_row, pawn_row},
    position::{Hand, Position, RequiredAction, Victory},
};
use crate::Player;

/// Consequences of an action for the repetition table, which a [`Position`] does not hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Effect {
    /// True after a new union or a promotion: no earlier position can occur again.
    pub(super) is_progress: bool,
    /// True if the position must be recorded, which may end the game as a draw.
    pub(super) is_recorded: bool,
}

const RECORD: Effect = Effect {
    is_progress: false,
    is_recorded: true,
};

impl Position {
    /// Performs an action. An action that does not fit the state (nothing to lift, nothing to place) changes nothing.
    pub(super) fn apply(&mut self, act: Act) -> Effect {
        match (act, self.hand, self.promotion) {
            (Act::Lift(square), None, None) => self.lift(square),
            (Act::Place(target), Some(hand), None) if hand.own == Kind::King => self.place_king(hand, target),
            (Act::Place(target), Some(hand), None) if hand.partner.is_some() => self.place_pair(hand, target),
            (Act::Place(target), Some(hand), None) => self.place_single(hand, target),
            (Act::Promote(kind), _, Some(square)) => self.promote(square, kind),
            _ => Effect::default(),
        }
    }

    fn lift(&mut self, square: Square) -> Effect {
        let Some(own) = self.board.take(self.to_move, square) else {
            return Effect::default();
        };
        let partner = self.board.take(self.to_move.other(), square);
        // A rook of either colour on a rook's start square counts, as in the original engine.
        if own == Kind::Rook || partner == Some(Kind::Rook) {
            self.castling.clear_rook(square);
        }
        self.hand = Some(Hand { square, own, partner });
        self.no_progress = self.no_progress.saturating_add(1);
        self.required = RequiredAction::Place;
        Effect::default()
    }

    fn place_king(&mut self, hand: Hand, target: Square) -> Effect {
        let castling = self.castling;
        let destination = castling
            .castle(&mut self.board, self.to_move, target)
            .unwrap_or(target);
        self.board.put(self.to_move, destination, Kind::King);
        // Only a position that was loaded with a united king has a partner here.
        if let Some(partner) = hand.partner {
            self.board.put(self.to_move.other(), destination, partner);
        }
        self.castling.clear_king(self.to_move);
        self.hand = None;
        self.en_passant = None;
        self.end_turn();
        RECORD
    }

    fn place_pair(&mut self, hand: Hand, target: Square) -> Effect {
        let mover = self.to_move;
        self.board.put(mover, target, hand.own);
        if let Some(partner) = hand.partner {
            self.board.put(mover.other(), target, partner);
        }
        self.hand = None;
        self.en_passant = passed_over(mover, hand, target);
        if is_promotion(mover, hand.own, target) {
            self.promotion = Some(target);
            self.required = RequiredAction::PromoteThenFinish;
            return Effect::default();
        }
        self.end_turn();
        if hand.partner == Some(Kind::Pawn) && target.rank() == home_row(mover) {
            // The opponent's pawn was carried to its last row: it is promoted before the position is recorded.
            self.promotion = Some(target);
            self.required = RequiredAction::PromoteThenLift;
            return Effect::default();
        }
        RECORD
    }

    fn place_single(&mut self, hand: Hand, target: Square) -> Effect {
        let mover = self.to_move;
        let released = land(&mut self.board, &mut self.en_passant, mover, hand, target);
        if is_promotion(mover, hand.own, target) {
            self.promotion = Some(target);
        }
        if let Some(own) = released {
            self.hand = Some(Hand {
                square: target,
                own,
                partner: None,
            });
            self.required = match self.promotion {
                Some(_) => RequiredAction::PromoteThenPlace,
                None => RequiredAction::Place,
            };
            return Effect::default();
        }
        self.hand = None;
        self.en_passant = passed_over(mover, hand, target);
        let united_with = self.board.kind_at(mover.other(), target);
        let is_progress = united_with.is_some();
        if is_progress {
            self.no_progress = 0;
        }
        if united_with == Some(Kind::King) {
            self.victory = Victory::of(mover);
        }
        if self.promotion.is_some() {
            self.required = RequiredAction::PromoteThenFinish;
            return Effect {
                is_progress,
                is_recorded: false,
            };
        }
        self.end_turn();
        Effect {
            is_progress,
            is_recorded: true,
        }
    }

    fn promote(&mut self, square: Square, kind: Kind) -> Effect {
        self.board.put(self.to_move, square, kind);
        self.promotion = None;
        self.no_progress = 0;
        let is_recorded = match self.required {
            RequiredAction::PromoteThenPlace => {
                self.required = RequiredAction::Place;
                false
            }
            RequiredAction::PromoteThenFinish => {
                self.en_passant = None;
                self.end_turn();
                true
            }
            _ => {
                self.required = RequiredAction::Lift;
                true
            }
        };
        Effect {
            is_progress: true,
            is_recorded,
        }
    }

    fn end_turn(&mut self) {
        self.required = RequiredAction::Lift;
        self.to_move = self.to_move.other();
    }
}

/// Puts a single piece (not the king) on a square. Returns the piece of the same colour that it releases, if the square
/// held a union. A pawn that enters the en-passant square diagonally first pulls back the pawn, or pair, that
/// stepped over it.
pub(super) fn land(
    board: &mut Board,
    en_passant: &mut Option<Square>,
    player: Player,
    hand: Hand,
    target: Square,
) -> Option<Kind> {
    if let Some(passed) = pulled_back(*en_passant, player, hand, target) {
        board.swap(target, passed);
        *en_passant = None;
    }
    let released = board.take(player, target);
    board.put(player, target, hand.own);
    released
}

/// Returns the square whose contents an en-passant move of `hand` to `target` pulls back to `target`. `None` if the move
/// is not one.
pub(super) fn pulled_back(
    en_passant: Option<Square>,
    player: Player,
    hand: Hand,
    target: Square,
) -> Option<Square> {
    let is_en_passant =
        hand.own == Kind::Pawn && en_passant == Some(target) && target.file() != hand.square.file();
    let back = match player {
        Player::First => -1,
        Player::Second => 1,
    };
    if is_en_passant {
        target.try_offset(0, back)
    } else {
        None
    }
}

/// True if a piece of `player` put on `target` is a pawn that must be promoted.
pub(super) fn is_promotion(player: Player, kind: Kind, target: Square) -> bool {
    kind == Kind::Pawn && target.rank() == home_row(player.other())
}

/// Returns the en-passant square that a pawn leaves behind when it steps two rows from its start row.
fn passed_over(player: Player, hand: Hand, target: Square) -> Option<Square> {
    let (to, over) = match player {
        Player::First => (Rank::Fourth, Rank::Third),
        Player::Second => (Rank::Fifth, Rank::Sixth),
    };
    let is_double = hand.own == Kind::Pawn && hand.square.rank() == pawn_row(player) && target.rank() == to;
    is_double.then(|| Square::new(target.file(), over))
}
