//! Index rows: the input of a network, in one of eight forms.
//!
//! A row has 32 piece entries (white pieces on the board by square, black ones, then the piece in the hand and its
//! partner), one en-passant entry, which repeats the first entry if there is no such square, the castling rights, the
//! values of the options, and the no-progress counter.

use cozy_chess::Square;

use super::{
    action::{ACTIONS, Act},
    castling::Wing,
    game::PacoSako,
    piece::Kind,
    position::{Position, RequiredAction},
};
use crate::{
    Action, ConstantPlane, PlaneStack, Player, RowForm, RowLayout, RowSymmetries, StartError, Symmetry,
    planes,
};

/// Name of the game.
pub(super) const NAME: &str = "paco-sako";
/// Number of symmetries, the identity included.
pub(super) const SYMMETRIES: u8 = 2;

/// Number of piece entries of a row.
const PIECES: usize = 32;
/// Number of planes of pieces on the board, and of pieces in the hand.
const SETTLED_PLANES: u32 = 12;
const EN_PASSANT_PLANE: u32 = 24;
/// Divisor and largest value of the no-progress counter.
const COUNTER_MAX: u32 = 100;

/// One of the eight representations: a checked set of three options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encoding(u8);

impl Encoding {
    /// Returns the representation with these option bits: 1 relative perspective, 2 must lift, 4 must promote.
    ///
    /// # Errors
    /// [`StartError`] for any other bit.
    pub fn new(options: u32) -> Result<Self, StartError> {
        match u8::try_from(options) {
            Ok(bits @ 0..=7) => Ok(Self(bits)),
            _ => Err(StartError::of::<PacoSako>(format!(
                "representation options {options} (0 to 7: 1 relative perspective, 2 must lift, 4 must promote)"
            ))),
        }
    }

    /// Returns the option bits, 0 to 7.
    pub const fn options(self) -> u32 {
        self.0 as u32
    }

    /// True if the player to act is at the bottom. Actions are mirrored along with the board then.
    const fn is_relative(self) -> bool {
        self.0 & 1 != 0
    }

    const fn has_must_lift(self) -> bool {
        self.0 & 2 != 0
    }

    const fn has_must_promote(self) -> bool {
        self.0 & 4 != 0
    }
}

/// Returns the layout of the rows of this representation.
pub(super) fn layout(encoding: Encoding) -> RowLayout {
    let mut planes: Vec<(&str, u32)> = vec![
        ("castling bottom queen side", 1),
        ("castling bottom king side", 1),
        ("castling top queen side", 1),
        ("castling top king side", 1),
    ];
    if !encoding.is_relative() {
        planes.push(("player", 1));
    }
    if encoding.has_must_lift() {
        planes.push(("must lift", 1));
    }
    if encoding.has_must_promote() {
        planes.push(("must promote", 1));
    }
    planes.push(("no-progress counter", COUNTER_MAX));
    let constants: Vec<ConstantPlane> = (EN_PASSANT_PLANE + 1..)
        .zip(planes)
        .map(|(plane, (name, max))| ConstantPlane {
            name: name.into(),
            plane,
            divisor: max,
            max,
        })
        .collect();
    RowLayout {
        game: NAME.into(),
        options: encoding.options(),
        form: RowForm::Planes(PlaneStack {
            height: 8,
            width: 8,
            entries: PIECES as u32 + 1,
            planes: EN_PASSANT_PLANE + 1 + constants.len() as u32,
            sparse: (0..=EN_PASSANT_PLANE).collect(),
            constants,
            ones: Vec::new(),
        }),
        actions: ACTIONS,
        mirrored_actions: encoding.is_relative(),
        policy_head: crate::PolicyHead::Dense,
    }
}

/// Returns the square in a symmetry: symmetry 1 mirrors the files.
fn turn_square(symmetry: Symmetry, square: Square) -> Square {
    match symmetry {
        Symmetry::IDENTITY => square,
        _ => square.flip_file(),
    }
}

/// Returns the symmetries of rows. A position with a castling right has no mirror image.
pub(super) fn symmetries(encoding: Encoding) -> RowSymmetries {
    let first = EN_PASSANT_PLANE + 1;
    let rights = [first, first + 1, first + 2, first + 3];
    let square = |symmetry, square: u32| {
        Square::try_index(square as usize).map_or(square, |square| turn_square(symmetry, square) as u32)
    };
    let entry = |symmetry, entry| {
        Act::from_number(entry).map_or(entry, |act| {
            act.map_square(|square| turn_square(symmetry, square)).number()
        })
    };
    planes::symmetries(&layout(encoding), SYMMETRIES, &rights, square, entry)
}

/// Appends the row of a position. With fewer than 32 pieces it repeats the first entry. A board without pieces or with more
/// than 32, which only the compatibility rules load, has no row: nothing is appended.
pub(super) fn write(position: &Position, encoding: Encoding, symmetry: Symmetry, row: &mut Vec<u32>) {
    let view = View::new(position, encoding, symmetry);
    let start = row.len();
    let board = if symmetry != Symmetry::IDENTITY {
        position.board.mirrored()
    } else {
        position.board
    };
    for player in [Player::First, Player::Second] {
        for square in board.occupied(player) {
            if let Some(kind) = board.kind_at(player, square) {
                row.push(view.settled(player, kind, square));
            }
        }
    }
    if let Some(hand) = position.hand {
        row.push(view.lifted(position.to_move, hand.own, hand.square));
        row.extend(
            hand.partner
                .map(|kind| view.lifted(position.to_move.other(), kind, hand.square)),
        );
    }
    let count = row.len() - start;
    let Some(&first) = row.get(start).filter(|_| count <= PIECES) else {
        row.truncate(start);
        return;
    };
    row.extend(std::iter::repeat_n(first, PIECES - count));
    row.push(position.en_passant.map_or(first, |square| {
        EN_PASSANT_PLANE * 64 + view.tile(view.mirror(square))
    }));

    for player in [view.viewer, view.viewer.other()] {
        row.extend([Wing::Queen, Wing::King].map(|wing| u32::from(position.castling.has(player, wing))));
    }
    if !encoding.is_relative() {
        row.push(position.to_move.index() as u32);
    }
    if encoding.has_must_lift() {
        let must_lift = matches!(
            position.required,
            RequiredAction::PromoteThenLift | RequiredAction::Lift
        );
        row.push(u32::from(must_lift));
    }
    if encoding.has_must_promote() {
        row.push(u32::from(position.required.is_promotion()));
    }
    row.push(u32::from(position.no_progress).min(COUNTER_MAX));
}

/// Returns the policy entry of an action. A number that is not an action is returned unchanged.
pub(super) fn policy_index(
    position: &Position,
    encoding: Encoding,
    symmetry: Symmetry,
    action: Action,
) -> u32 {
    let view = View::new(position, encoding, symmetry);
    Act::from_number(action).map_or(action, |act| {
        act.map_square(|square| view.seen(view.mirror(square))).number()
    })
}

/// Point of view from which the board is written.
struct View {
    viewer: Player,
    symmetry: Symmetry,
}

impl View {
    fn new(position: &Position, encoding: Encoding, symmetry: Symmetry) -> Self {
        let viewer = if encoding.is_relative() {
            position.to_move
        } else {
            Player::First
        };
        Self { viewer, symmetry }
    }

    fn mirror(&self, square: Square) -> Square {
        turn_square(self.symmetry, square)
    }

    /// Returns the square as the viewer numbers it.
    fn seen(&self, square: Square) -> Square {
        match self.viewer {
            Player::First => square,
            Player::Second => square.flip_rank(),
        }
    }

    /// Returns the index of a square within a plane.
    fn tile(&self, square: Square) -> u32 {
        self.seen(square) as u32
    }

    /// Returns the entry of a piece on the board. `square` has been mirrored already.
    fn settled(&self, player: Player, kind: Kind, square: Square) -> u32 {
        let side = if player == self.viewer {
            0
        } else {
            Kind::ALL.len() as u32
        };
        64 * (kind as u32 + side) + self.tile(square)
    }

    /// Returns the entry of a piece in the hand.
    fn lifted(&self, player: Player, kind: Kind, square: Square) -> u32 {
        64 * SETTLED_PLANES + self.settled(player, kind, self.mirror(square))
    }
}
