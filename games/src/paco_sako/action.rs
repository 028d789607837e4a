//! Actions and their numbers: `0..64` lift, `64..128` place, `128..132` promote (Rook, Knight, Bishop, Queen).
//!
//! Data files and the JSON face count from 1 (`Act::number` plus one).

use cozy_chess::Square;

use super::piece::Kind;
use crate::Action;

/// One step of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Lift(Square),
    Place(Square),
    Promote(Kind),
}

pub(super) const ACTIONS: u32 = 132;
const FIRST_PLACE: u32 = 64;
const FIRST_PROMOTION: u32 = 128;

impl Act {
    /// The action with this number, if it is below [`ACTIONS`].
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

    /// The same action with its square, if it has one, replaced.
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
