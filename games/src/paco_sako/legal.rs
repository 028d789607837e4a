//! Legal actions of a position in the original engine, without the switchable rules.

use cozy_chess::BitBoard;

use super::{
    action::Act,
    castling, movement,
    piece::Kind,
    position::{Hand, Position, RequiredAction},
};

/// Set of legal actions. All actions of a state are of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Legal {
    /// Squares that can be lifted from.
    Lift(BitBoard),
    /// Squares on which the hand can be placed.
    Place(BitBoard),
    /// Promotions: bit n is `Kind::PROMOTIONS[n]`.
    Promote(u8),
}

const ALL_PROMOTIONS: u8 = 0b1111;

impl Legal {
    const NONE: Self = Self::Lift(BitBoard::EMPTY);

    pub(super) fn has(self, act: Act) -> bool {
        match (self, act) {
            (Self::Lift(squares), Act::Lift(square)) | (Self::Place(squares), Act::Place(square)) => {
                squares.has(square)
            }
            (Self::Promote(choices), Act::Promote(kind)) => {
                promotions(choices).any(|(_, choice)| choice == kind)
            }
            _ => false,
        }
    }

    /// Calls `visit` for each action, in ascending order of their numbers.
    pub(super) fn for_each(self, mut visit: impl FnMut(Act)) {
        match self {
            Self::Lift(squares) => squares.iter().for_each(|square| visit(Act::Lift(square))),
            Self::Place(squares) => squares.iter().for_each(|square| visit(Act::Place(square))),
            Self::Promote(choices) => promotions(choices).for_each(|(_, kind)| visit(Act::Promote(kind))),
        }
    }

    pub(super) fn is_empty(self) -> bool {
        match self {
            Self::Lift(squares) | Self::Place(squares) => squares.is_empty(),
            Self::Promote(choices) => choices == 0,
        }
    }

    /// Returns the actions for which `is_offered` is true.
    pub(super) fn filter(self, is_offered: impl Fn(Act) -> bool) -> Self {
        match self {
            Self::Lift(squares) => Self::Lift(
                squares
                    .iter()
                    .filter(|&square| is_offered(Act::Lift(square)))
                    .collect(),
            ),
            Self::Place(squares) => Self::Place(
                squares
                    .iter()
                    .filter(|&square| is_offered(Act::Place(square)))
                    .collect(),
            ),
            Self::Promote(choices) => Self::Promote(
                promotions(choices)
                    .filter(|&(_, kind)| is_offered(Act::Promote(kind)))
                    .fold(0, |kept, (bit, _)| kept | 1 << bit),
            ),
        }
    }
}

/// Returns the promotions in a set of bits, each with the number of its bit.
fn promotions(choices: u8) -> impl Iterator<Item = (usize, Kind)> {
    Kind::PROMOTIONS
        .into_iter()
        .enumerate()
        .filter(move |(bit, _)| choices >> bit & 1 == 1)
}

/// Returns the legal actions of the original engine. Empty if the game is decided, and in a dead end.
pub(super) fn plain(position: &Position) -> Legal {
    if !position.is_running() {
        return Legal::NONE;
    }
    match (position.required, position.hand) {
        (RequiredAction::Lift, _) => Legal::Lift(movement::liftable(
            &position.board,
            position.to_move,
            position.en_passant,
        )),
        (RequiredAction::Place, Some(hand)) => Legal::Place(places(position, hand)),
        (RequiredAction::Place, None) => Legal::NONE,
        _ => Legal::Promote(ALL_PROMOTIONS),
    }
}

/// Returns the squares on which a hand can be placed, castling included. As in the original engine, a king in a union can
/// castle too; only compatibility rules load such a king.
pub(super) fn places(position: &Position, hand: Hand) -> BitBoard {
    let steps = movement::targets(&position.board, position.to_move, hand, position.en_passant);
    if hand.own == Kind::King && position.castling.any() {
        steps | castling::targets(position)
    } else {
        steps
    }
}
