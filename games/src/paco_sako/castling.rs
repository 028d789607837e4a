//! Castling rights, and the squares a lifted king may be put on because of them.
//!
//! The original engine's quirks are kept: a rook that leaves its corner by being released in a chain
//! keeps the right, and nothing checks that a rook (or the king) really stands where the right says.

use cozy_chess::{BitBoard, File, Square, get_between_rays};

use super::{
    board::Board,
    position::{Position, home_row},
    threats,
};
use crate::Player;

/// The wing a king castles to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wing {
    Queen,
    King,
}

/// Every right there can be, in the order of rows and FEN: White queen side, White king side, then Black's.
pub(super) const RIGHTS: [(Player, Wing); 4] = [
    (Player::First, Wing::Queen),
    (Player::First, Wing::King),
    (Player::Second, Wing::Queen),
    (Player::Second, Wing::King),
];

/// The four rights, each with its rook's file, and the files the kings castle from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Castling {
    rights: [bool; 4],
    rooks: [File; 4],
    kings: [File; 2],
}

/// Where the two pieces of one castling come from and go to.
struct Path {
    king: (Square, Square),
    rook: (Square, Square),
}

impl Castling {
    pub(super) const NONE: Self = Self {
        rights: [false; 4],
        rooks: [File::A, File::H, File::A, File::H],
        kings: [File::E; 2],
    };

    /// No rights yet, for kings on these files (White's, Black's).
    pub(super) fn of_kings(kings: [File; 2]) -> Self {
        Self { kings, ..Self::NONE }
    }

    /// Adds the right to castle with the rook on `rook`; `false` if that wing has one already.
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

    /// The rook's file of a right that is there.
    pub(super) fn rook_file(&self, player: Player, wing: Wing) -> Option<File> {
        let number = number(player, wing);
        self.rights[number].then_some(self.rooks[number])
    }

    /// One bit for each right.
    pub(super) fn bits(&self) -> u64 {
        self.rights
            .iter()
            .enumerate()
            .fold(0, |bits, (number, &right)| bits | u64::from(right) << number)
    }

    /// A king was put down: both its rights are gone.
    pub(super) fn clear_king(&mut self, player: Player) {
        self.rights[number(player, Wing::Queen)] = false;
        self.rights[number(player, Wing::King)] = false;
    }

    /// A rook of either colour was lifted from here: every right whose rook starts here is gone.
    pub(super) fn clear_rook(&mut self, square: Square) {
        for (number, (player, _)) in RIGHTS.into_iter().enumerate() {
            if square == Square::new(self.rooks[number], home_row(player)) {
                self.rights[number] = false;
            }
        }
    }

    /// If `target` is where a king with a right is put to castle: performs the rook's part and says where the king goes.
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

    /// The square a king is put on to castle: its destination in the usual array, else the rook's own square.
    fn target(&self, player: Player, wing: Wing) -> Square {
        let path = self.path(player, wing);
        let usual_rook = match wing {
            Wing::Queen => File::A,
            Wing::King => File::H,
        };
        let is_usual = path.king.0.file() == File::E && path.rook.0.file() == usual_rook;
        if is_usual { path.king.1 } else { path.rook.0 }
    }

    fn path(&self, player: Player, wing: Wing) -> Path {
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

/// The castling targets of the mover's lifted king.
pub(super) fn targets(position: &Position) -> BitBoard {
    let player = position.to_move;
    [Wing::Queen, Wing::King]
        .into_iter()
        .filter(|&wing| position.castling.has(player, wing) && is_free(position, player, wing))
        .map(|wing| position.castling.target(player, wing).bitboard())
        .fold(BitBoard::EMPTY, |all, target| all | target)
}

/// All squares either piece passes or lands on are empty, and the king's are not threatened.
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

/// A move's squares, both ends included.
fn span((from, to): (Square, Square)) -> BitBoard {
    get_between_rays(from, to) | from.bitboard() | to.bitboard()
}

const fn number(player: Player, wing: Wing) -> usize {
    player.index() * 2 + wing as usize
}
