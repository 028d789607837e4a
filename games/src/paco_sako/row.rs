//! The index representation: what a network sees of a state, in one of eight forms.
//!
//! A row is 32 piece entries (settled white pieces by square, settled black ones, then the lifted piece and its
//! partner), one en-passant entry that repeats the first where there is none, then castling rights,
//! and what the options add, and the no-progress counter.

use cozy_chess::Square;

use super::{
    PacoSako,
    action::{ACTIONS, Act},
    castling::Wing,
    piece::Kind,
    position::{Position, RequiredAction},
};
use crate::{
    Action, ConstantPlane, Game, OtherSide, PlaneStack, Player, RowForm, RowLayout, RowSymmetries,
    StartError, Symmetry,
};

/// Piece entries of a row.
const PIECES: usize = 32;
/// Planes of settled pieces, and again of lifted ones.
const SETTLED_PLANES: u32 = 12;
const EN_PASSANT_PLANE: u32 = 24;
/// The divisor, and the largest value, of the no-progress counter.
const COUNTER_MAX: u32 = 100;

/// One of the eight representations, a checked set of three options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding(u8);

impl Encoding {
    /// The form of the original's networks: relative perspective, no further planes.
    pub const PERSPECTIVE: Self = Self(1);

    /// The representation with these option bits: 1 relative perspective, 2 must lift, 4 must promote.
    ///
    /// # Errors
    /// [`StartError`] for any other bit.
    pub fn new(options: u32) -> Result<Self, StartError> {
        match u8::try_from(options) {
            Ok(bits @ 0..=7) => Ok(Self(bits)),
            _ => Err(StartError {
                game: PacoSako::NAME,
                reason: format!(
                    "representation options {options} (0 to 7: 1 relative perspective, 2 must lift, 4 must promote)"
                ),
            }),
        }
    }

    /// The option bits.
    pub const fn options(self) -> u32 {
        self.0 as u32
    }

    /// Whether the player to act is at the bottom (and actions are mirrored along with the board).
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

/// What rows of this representation mean.
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
        game: PacoSako::NAME.into(),
        options: encoding.options(),
        form: RowForm::Planes(PlaneStack {
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

/// The mirror image for rows; only castling tells left from right.
pub(super) fn symmetries(encoding: Encoding) -> RowSymmetries {
    let first = EN_PASSANT_PLANE + 1;
    let rights = [first, first + 1, first + 2, first + 3];
    let flip = |_, square: u32| square ^ 7;
    let action =
        |_, action| Act::from_number(action).map_or(action, |act| act.map_square(Square::flip_file).number());
    RowSymmetries::new(&layout(encoding), PacoSako::SYMMETRIES, &rights, flip, action)
}

/// Ranks are counted from whoever acts where the perspective is relative.
pub(super) fn other_side(encoding: Encoding) -> OtherSide {
    if !encoding.is_relative() {
        return OtherSide::default();
    }
    OtherSide::new(ACTIONS, |action| {
        Act::from_number(action).map_or(action, |act| act.map_square(Square::flip_rank).number())
    })
}

/// Appends a position's row. Fewer than 32 pieces repeat the first entry; a board with none, or with
/// more than 32, has no row, and nothing is appended (only compatibility rules let such a board in).
pub(super) fn write(position: &Position, encoding: Encoding, symmetry: Symmetry, row: &mut Vec<u32>) {
    let eye = Eye::new(position, encoding, symmetry);
    let start = row.len();
    let board = if eye.is_mirrored {
        position.board.mirrored()
    } else {
        position.board
    };
    for player in [Player::First, Player::Second] {
        for square in board.occupied(player) {
            if let Some(kind) = board.kind_at(player, square) {
                row.push(eye.settled(player, kind, square));
            }
        }
    }
    if let Some(hand) = position.hand {
        row.push(eye.lifted(position.to_move, hand.own, hand.square));
        row.extend(
            hand.partner
                .map(|kind| eye.lifted(position.to_move.other(), kind, hand.square)),
        );
    }
    let count = row.len() - start;
    let Some(&first) = row.get(start).filter(|_| count <= PIECES) else {
        row.truncate(start);
        return;
    };
    row.extend(std::iter::repeat_n(first, PIECES - count));
    row.push(position.en_passant.map_or(first, |square| {
        EN_PASSANT_PLANE * 64 + eye.tile(eye.mirror(square))
    }));

    for player in [eye.viewer, eye.viewer.other()] {
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

/// The policy entry of an action. An id that is none is given back as it is.
pub(super) fn policy_index(
    position: &Position,
    encoding: Encoding,
    symmetry: Symmetry,
    action: Action,
) -> u32 {
    let eye = Eye::new(position, encoding, symmetry);
    Act::from_number(action).map_or(action, |act| {
        act.map_square(|square| eye.seen(eye.mirror(square))).number()
    })
}

/// Who looks at the board, and how.
struct Eye {
    viewer: Player,
    /// Symmetry 1: files are mirrored.
    is_mirrored: bool,
}

impl Eye {
    fn new(position: &Position, encoding: Encoding, symmetry: Symmetry) -> Self {
        let viewer = if encoding.is_relative() {
            position.to_move
        } else {
            Player::First
        };
        Self {
            viewer,
            is_mirrored: symmetry != Symmetry::IDENTITY,
        }
    }

    fn mirror(&self, square: Square) -> Square {
        if self.is_mirrored {
            square.flip_file()
        } else {
            square
        }
    }

    /// The square as the viewer numbers it.
    fn seen(&self, square: Square) -> Square {
        match self.viewer {
            Player::First => square,
            Player::Second => square.flip_rank(),
        }
    }

    fn tile(&self, square: Square) -> u32 {
        self.seen(square) as u32
    }

    /// The entry of a piece on a square of the (mirrored) board.
    fn settled(&self, player: Player, kind: Kind, square: Square) -> u32 {
        let side = if player == self.viewer {
            0
        } else {
            Kind::ALL.len() as u32
        };
        64 * (kind as u32 + side) + self.tile(square)
    }

    /// The entry of a piece in the hand.
    fn lifted(&self, player: Player, kind: Kind, square: Square) -> u32 {
        64 * SETTLED_PLANES + self.settled(player, kind, self.mirror(square))
    }
}
