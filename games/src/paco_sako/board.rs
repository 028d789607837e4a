//! Placement of the pieces: at most one white and one black piece on each square.
//!
//! Three bit planes for each colour hold a piece's number plus one; 0 is "no piece". Two `and`s give the squares of a
//! type, and the whole board takes 48 bytes, which a digest reads as six words.

use cozy_chess::{BitBoard, Square};

use super::piece::Kind;
use crate::Player;

/// Pieces of both colours on the board, without those in the hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Board {
    planes: [[BitBoard; 3]; 2],
}

impl Board {
    pub(super) const EMPTY: Self = Self {
        planes: [[BitBoard::EMPTY; 3]; 2],
    };

    /// Returns the squares with a piece of this colour, single or in a union.
    pub(super) fn occupied(&self, player: Player) -> BitBoard {
        let [low, middle, high] = self.planes[player.index()];
        low | middle | high
    }

    /// Returns the squares with any piece.
    pub(super) fn all(&self) -> BitBoard {
        self.occupied(Player::First) | self.occupied(Player::Second)
    }

    /// Returns the squares with one piece of each colour.
    pub(super) fn unions(&self) -> BitBoard {
        self.occupied(Player::First) & self.occupied(Player::Second)
    }

    /// Returns the squares with a piece of this colour and type.
    pub(super) fn of(&self, player: Player, kind: Kind) -> BitBoard {
        let [low, middle, high] = self.planes[player.index()];
        match kind {
            Kind::Pawn => low - middle - high,
            Kind::Rook => middle - low - high,
            Kind::Knight => low & middle,
            Kind::Bishop => high - low - middle,
            Kind::Queen => low & high,
            Kind::King => middle & high,
        }
    }

    /// Returns the type of this colour's piece on a square.
    pub(super) fn kind_at(&self, player: Player, square: Square) -> Option<Kind> {
        Kind::from_number(self.code_at(player, square).wrapping_sub(1))
    }

    /// Puts a piece on a square and removes this colour's piece from there.
    pub(super) fn put(&mut self, player: Player, square: Square, kind: Kind) {
        self.set_code(player, square, kind as usize + 1);
    }

    /// Removes this colour's piece from a square and returns its type.
    pub(super) fn take(&mut self, player: Player, square: Square) -> Option<Kind> {
        let kind = self.kind_at(player, square);
        self.set_code(player, square, 0);
        kind
    }

    /// Exchanges the contents of two squares, for both colours.
    pub(super) fn swap(&mut self, one: Square, other: Square) {
        for player in [Player::First, Player::Second] {
            let (first, second) = (self.code_at(player, one), self.code_at(player, other));
            self.set_code(player, one, second);
            self.set_code(player, other, first);
        }
    }

    /// Returns the mirror image of the board, left and right exchanged.
    pub(super) fn mirrored(&self) -> Self {
        Self {
            planes: self.planes.map(|planes| planes.map(BitBoard::flip_files)),
        }
    }

    /// Returns the three planes of this colour, which determine its pieces.
    pub(super) fn words(&self, player: Player) -> [u64; 3] {
        self.planes[player.index()].map(|plane| plane.0)
    }

    fn code_at(&self, player: Player, square: Square) -> usize {
        let [low, middle, high] = self.planes[player.index()].map(|plane| plane.0 >> square as u32 & 1);
        (low | middle << 1 | high << 2) as usize
    }

    fn set_code(&mut self, player: Player, square: Square, code: usize) {
        let bit = square.bitboard();
        for (number, plane) in self.planes[player.index()].iter_mut().enumerate() {
            if code >> number & 1 == 1 {
                *plane |= bit;
            } else {
                *plane -= bit;
            }
        }
    }
}
