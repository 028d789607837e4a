//! Piece types, in the fixed numeric order that rows and FEN letters rest on (Rook before Knight).

/// A piece's type; its colour is a [`crate::Player`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// 0
    Pawn,
    /// 1
    Rook,
    /// 2
    Knight,
    /// 3
    Bishop,
    /// 4
    Queen,
    /// 5
    King,
}

impl Kind {
    /// All six, by number.
    pub const ALL: [Self; 6] = [
        Self::Pawn,
        Self::Rook,
        Self::Knight,
        Self::Bishop,
        Self::Queen,
        Self::King,
    ];

    /// What a pawn may become, in the order of the promotion actions.
    pub const PROMOTIONS: [Self; 4] = [Self::Rook, Self::Knight, Self::Bishop, Self::Queen];

    /// The type with this number, if it is below 6.
    pub(super) fn from_number(number: usize) -> Option<Self> {
        Self::ALL.get(number).copied()
    }
}
