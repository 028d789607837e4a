//! Castling rights, and the squares on which they allow a lifted king to be placed.
//!
//! Two properties of the original engine are kept. A rook that a chain releases from its corner keeps the right. And a
//! right does not require that the rook or the king is on its start square.

use cozy_chess::{BitBoard, File, Square, get_between_rays};

use super::{board::Board, piece::home_row, position::Position, threats};
use crate::Player;

/// Wing to which a king castles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wing {
    Queen,
    King,
}

/// All rights in the order of rows and FEN: White queen side, White king side, Black queen side, Black king side.
pub(super) const RIGHTS: [(Player, Wing); 4] = [
    (Player::First, Wing::Queen),
    (Player::First, Wing::King),
    (Player::Second, Wing::Queen),
    (Player::Second, Wing::King),
];

/// Four rights, each with its rook's file, and the files from which the kings castle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Castling {
    rights: [bool; 4],
    rooks: [File; 4],
    kings: [File; 2],
}

/// Moves of the two pieces of one castling.
pub(super) struct Path {
    /// Start and end of the king's move.
    pub(super) king: (Square, Square),
    /// Start and end of the rook's move.
    pub(super) rook: (Square, Square),
}

impl Castling {
    pub(super) const NONE: Self = Self {
        rights: [false; 4],
        rooks: [File::A, File::H, File::A, File::H],
        kings: [File::E; 2],
    };

    /// Returns castling without any rights, for kings on these files (White's, Black's).
    pub(super) fn of_kings(kings: [File; 2]) -> Self {
        Self { kings, ..Self::NONE }
    }

    /// Adds the right to castle with the rook on file `rook`. Returns `false` if that wing had a right already.
    pub(super) fn grant(&mut self, player: Player, rook: File) -> bool {
        let wing = if rook < self.kings[player.index()] {
            Wing::Queen
        } else {
            Wing::King
        };
        let number = number(player, wing);
        self.rooks[number] = rook;
        !std::mem::replace(&mut self.rights[number], true)
    }

    pub(super) fn has(&self, player: Player, wing: Wing) -> bool {
        self.rights[number(player, wing)]
    }

    pub(super) fn any(&self) -> bool {
        self.rights != [false; 4]
    }

    /// Returns the file of a right's rook. `None` if there is no such right.
    pub(super) fn rook_file(&self, player: Player, wing: Wing) -> Option<File> {
        let number = number(player, wing);
        self.rights[number].then_some(self.rooks[number])
    }

    /// Returns the rights as bits, in the order of [`RIGHTS`].
    pub(super) fn bits(&self) -> u64 {
        self.rights
            .iter()
            .enumerate()
            .fold(0, |bits, (number, &right)| bits | u64::from(right) << number)
    }

    /// Removes both rights of a king, which was placed.
    pub(super) fn clear_king(&mut self, player: Player) {
        self.rights[number(player, Wing::Queen)] = false;
        self.rights[number(player, Wing::King)] = false;
    }

    /// Removes the rights whose rook starts on this square, from which a rook of either colour was lifted.
    pub(super) fn clear_rook(&mut self, square: Square) {
        for (number, (player, _)) in RIGHTS.into_iter().enumerate() {
            if square == Square::new(self.rooks[number], home_row(player)) {
                self.rights[number] = false;
            }
        }
    }

    /// Castles if placing the king on `target` is castling: moves the rook, and returns the king's destination.
    /// `None` if it does not; nothing changes then.
    pub(super) fn castle(&self, board: &mut Board, player: Player, target: Square) -> Option<Square> {
        [Wing::Queen, Wing::King].into_iter().find_map(|wing| {
            if !self.has(player, wing) || self.target(player, wing) != target {
                return None;
            }
            let path = self.path(player, wing);
            board.swap(path.rook.0, path.rook.1);
            Some(path.king.1)
        })
    }

    /// Returns the square on which a king is placed to castle: its destination in the usual array, the rook's square in
    /// others.
    pub(super) fn target(&self, player: Player, wing: Wing) -> Square {
        let path = self.path(player, wing);
        let usual_rook = match wing {
            Wing::Queen => File::A,
            Wing::King => File::H,
        };
        let is_usual = path.king.0.file() == File::E && path.rook.0.file() == usual_rook;
        if is_usual { path.king.1 } else { path.rook.0 }
    }

    /// Returns the moves of the king and the rook.
    pub(super) fn path(&self, player: Player, wing: Wing) -> Path {
        let row = home_row(player);
        let (king, rook) = match wing {
            Wing::Queen => (File::C, File::D),
            Wing::King => (File::G, File::F),
        };
        Path {
            king: (
                Square::new(self.kings[player.index()], row),
                Square::new(king, row),
            ),
            rook: (
                Square::new(self.rooks[number(player, wing)], row),
                Square::new(rook, row),
            ),
        }
    }
}

const fn number(player: Player, wing: Wing) -> usize {
    player.index() * 2 + wing as usize
}

/// Returns the squares on which the player to act can place its lifted king to castle.
pub(super) fn targets(position: &Position) -> BitBoard {
    let player = position.to_move;
    [Wing::Queen, Wing::King]
        .into_iter()
        .filter(|&wing| position.castling.has(player, wing) && is_free(position, player, wing))
        .map(|wing| position.castling.target(player, wing).bitboard())
        .fold(BitBoard::EMPTY, |all, target| all | target)
}

/// True if all squares that either piece passes or enters are empty, and those of the king are not threatened.
fn is_free(position: &Position, player: Player, wing: Wing) -> bool {
    let path = position.castling.path(player, wing);
    let own = path.king.0.bitboard() | path.rook.0.bitboard();
    let passed = span(path.king) | span(path.rook);
    (passed - own).is_disjoint(position.board.all())
        && !threats::threatens_any(
            &position.board,
            player.other(),
            position.en_passant,
            span(path.king),
        )
}

/// Returns the squares of a move, both ends included.
fn span((from, to): (Square, Square)) -> BitBoard {
    get_between_rays(from, to) | from.bitboard() | to.bitboard()
}
