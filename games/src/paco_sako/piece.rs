//! Piece types. Rows and FEN letters depend on their order (rook before knight).

/// Type of a piece. The colour is a [`crate::Player`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Number 0.
    Pawn,
    /// Number 1.
    Rook,
    /// Number 2.
    Knight,
    /// Number 3.
    Bishop,
    /// Number 4.
    Queen,
    /// Number 5.
    King,
}

impl Kind {
    /// All types, in the order of their numbers.
    pub const ALL: [Self; 6] = [
        Self::Pawn,
        Self::Rook,
        Self::Knight,
        Self::Bishop,
        Self::Queen,
        Self::King,
    ];

    /// Types that a pawn can be promoted to, in the order of the promotion actions.
    pub const PROMOTIONS: [Self; 4] = [Self::Rook, Self::Knight, Self::Bishop, Self::Queen];

    /// Returns the type with this number. `None` from 6 on.
    pub(super) fn from_number(number: usize) -> Option<Self> {
        Self::ALL.get(number).copied()
    }
}
