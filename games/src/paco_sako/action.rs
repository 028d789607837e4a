//! Actions and their numbers: `0..64` lift, `64..128` place, `128..132` promote (Rook, Knight, Bishop, Queen).
//!
//! Data files and JSON count from 1: their codes are `Act::number` plus one.

use cozy_chess::Square;

use super::piece::Kind;
use crate::Action;

/// An action: one step of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Takes the piece or union of a square into the hand.
    Lift(Square),
    /// Puts the hand on a square.
    Place(Square),
    /// Turns the pawn that must be promoted into a piece of this type.
    Promote(Kind),
}

pub(super) const ACTIONS: u32 = 132;
const FIRST_PLACE: u32 = 64;
const FIRST_PROMOTION: u32 = 128;

impl Act {
    /// Returns the action with this number. `None` for numbers from [`ACTIONS`] on.
    pub(super) fn from_number(number: Action) -> Option<Self> {
        match number {
            0..FIRST_PLACE => Square::try_index(number as usize).map(Self::Lift),
            FIRST_PLACE..FIRST_PROMOTION => {
                Square::try_index((number - FIRST_PLACE) as usize).map(Self::Place)
            }
            _ => Kind::PROMOTIONS
                .get((number - FIRST_PROMOTION) as usize)
                .copied()
                .map(Self::Promote),
        }
    }

    pub(super) fn number(self) -> Action {
        match self {
            Self::Lift(square) => square as Action,
            Self::Place(square) => FIRST_PLACE + square as Action,
            // Promotions are numbered in the order of the types, without the pawn.
            Self::Promote(kind) => FIRST_PROMOTION + (kind as Action).saturating_sub(1),
        }
    }

    /// Returns a copy of the action with `change` applied to its square. A promotion has no square and stays as it is.
    pub(super) fn map_square(self, change: impl FnOnce(Square) -> Square) -> Self {
        match self {
            Self::Lift(square) => Self::Lift(change(square)),
            Self::Place(square) => Self::Place(change(square)),
            Self::Promote(kind) => Self::Promote(kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_actions_are_one_to_one() {
        for number in 0..ACTIONS {
            assert_eq!(Act::from_number(number).map(Act::number), Some(number));
        }
        assert_eq!(Act::from_number(ACTIONS), None);
        assert_eq!(Act::from_number(u32::MAX), None);
        assert_eq!(Act::Promote(Kind::Queen).number(), 131);
    }
}
