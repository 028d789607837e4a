//! The 38 moves of an imp: names, the imps they apply to, and effects.

use super::{
    clan::Clan,
    grammar::{self, Color, Coordinate, Direction, MAX_DEPTH, R_SHAPES, Size, Turns},
};

/// Number of moves of each imp.
pub const MOVES: usize = 38;

/// Number of a move, below [`MOVES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Move(pub u8);

#[rustfmt::skip]
const NAMES: [&str; MOVES] = [
    "MARK_STEP", "MARK_COMPLETE", "APPEND_DOT", "APPEND_LINE", "APPEND_RECT",
    "INSERT_DOT_AFTER", "INSERT_LINE_AFTER", "INSERT_RECT_AFTER", "DELETE", "DUPLICATE_AFTER",
    "SWAP_WITH_NEXT", "WRAP_GROUP", "WRAP_ROTATION", "GROUP_WITH_NEXT", "UNWRAP",
    "DOT_TO_LINE", "DOT_TO_RECT", "LINE_TO_DOT", "RECT_TO_DOT", "INC", "DEC",
    "MOVE_LEFT", "MOVE_RIGHT", "MOVE_UP", "MOVE_DOWN",
    "SET_COLOR_0", "SET_COLOR_1", "SET_COLOR_2", "SET_COLOR_3", "SET_COLOR_4",
    "SET_COLOR_5", "SET_COLOR_6", "SET_COLOR_7", "SET_COLOR_8", "SET_COLOR_9",
    "DIR_CW", "DIR_CCW", "TURN_NEXT",
];

/// Returns the action of a move of an imp.
pub(super) const fn action(imp: usize, made: Move) -> u32 {
    imp as u32 * MOVES as u32 + made.0 as u32
}

/// Returns the imp and move of an action.
pub(super) const fn imp_and_move(action: u32) -> (usize, Move) {
    (action as usize / MOVES, Move((action as usize % MOVES) as u8))
}

impl Move {
    /// Marks the render as the first grid of a pair.
    pub const MARK_STEP: Self = Self(0);
    /// Marks the render as the solution.
    pub const MARK_COMPLETE: Self = Self(1);
    pub(super) const APPEND_DOT: u8 = 2;
    pub(super) const APPEND_RECT: u8 = 4;
    pub(super) const INSERT_DOT: u8 = 5;
    pub(super) const INSERT_RECT: u8 = 7;
    pub(super) const DELETE: u8 = 8;
    pub(super) const DUPLICATE: u8 = 9;
    pub(super) const SWAP: u8 = 10;
    pub(super) const WRAP_GROUP: u8 = 11;
    pub(super) const WRAP_ROTATION: u8 = 12;
    pub(super) const GROUP_WITH_NEXT: u8 = 13;
    pub(super) const UNWRAP: u8 = 14;
    pub(super) const DOT_TO_LINE: u8 = 15;
    pub(super) const DOT_TO_RECT: u8 = 16;
    pub(super) const LINE_TO_DOT: u8 = 17;
    pub(super) const RECT_TO_DOT: u8 = 18;
    pub(super) const INC: u8 = 19;
    pub(super) const DEC: u8 = 20;
    pub(super) const MOVE_LEFT: u8 = 21;
    pub(super) const MOVE_DOWN: u8 = 24;
    pub(super) const SET_COLOR: u8 = 25;
    pub(super) const SET_COLOR_9: u8 = 34;
    pub(super) const DIR_CW: u8 = 35;
    pub(super) const DIR_CCW: u8 = 36;
    pub(super) const TURN_NEXT: u8 = 37;

    /// Returns the name of the move, e.g. `APPEND_DOT`.
    pub fn name(self) -> &'static str {
        NAMES.get(usize::from(self.0)).copied().unwrap_or("?")
    }
}

/// Returns the moves `from` to `to`, as bits.
const fn bits(from: u8, to: u8) -> u64 {
    (u64::MAX >> (63 - to)) & (u64::MAX << from)
}

/// Returns the moves that apply to an imp of this one-hot value and role, as bits.
///
/// This is the mask of the original rules. A move that applies but fails for another reason is an Oops.
pub const fn mask(value: u8, role: u8) -> u64 {
    let anywhere = match value {
        grammar::GENERATOR => bits(Move::APPEND_DOT, Move::APPEND_RECT),
        grammar::COORDS => bits(Move::MOVE_LEFT, Move::MOVE_DOWN),
        grammar::DOT => bits(Move::DOT_TO_LINE, Move::DOT_TO_RECT),
        grammar::LINE => bits(Move::LINE_TO_DOT, Move::LINE_TO_DOT),
        grammar::RECT => bits(Move::RECT_TO_DOT, Move::RECT_TO_DOT),
        grammar::GROUP => bits(Move::APPEND_DOT, Move::APPEND_RECT) | bits(Move::UNWRAP, Move::UNWRAP),
        grammar::ROTATION => bits(Move::UNWRAP, Move::UNWRAP),
        8..=16 => bits(Move::INC, Move::DEC),
        17..=26 => bits(Move::SET_COLOR, Move::SET_COLOR_9),
        27..=34 => bits(Move::DIR_CW, Move::DIR_CCW),
        35..=37 => bits(Move::TURN_NEXT, Move::TURN_NEXT),
        _ => 0,
    };
    let shape = if grammar::is_shape(value) {
        bits(Move::MOVE_LEFT, Move::MOVE_DOWN) | bits(Move::WRAP_GROUP, Move::WRAP_ROTATION)
    } else {
        0
    };
    let listed = if role >= R_SHAPES {
        bits(Move::INSERT_DOT, Move::SWAP) | bits(Move::GROUP_WITH_NEXT, Move::GROUP_WITH_NEXT)
    } else {
        0
    };
    let root = if role == grammar::THIS { 0b11 } else { 0 };
    anywhere | shape | listed | root
}

impl Clan {
    /// Returns the moves that apply to `imp` by its value and role, as bits. 0 if there is no such imp.
    pub fn mask(&self, imp: usize) -> u64 {
        match (self.values().get(imp), self.roles().get(imp)) {
            (Some(&value), Some(&role)) => mask(value, role),
            _ => 0,
        }
    }

    /// Returns the clan after an action, a move of an imp; see [`Clan::after`].
    pub(super) fn after_action(&self, action: u32) -> Option<Self> {
        let (imp, made) = imp_and_move(action);
        self.after(imp, made)
    }

    /// Returns the clan after a move of `imp`. `None` if the move fails, and for the two marks, which are not
    /// transformations.
    pub fn after(&self, imp: usize, action: Move) -> Option<Self> {
        if action.0 >= 64 || self.mask(imp) & 1 << action.0 == 0 {
            return None;
        }
        let mut clan = *self;
        let fits = match action.0 {
            Move::APPEND_DOT..=Move::APPEND_RECT => clan.append(imp, action.0 - Move::APPEND_DOT),
            Move::INSERT_DOT..=Move::INSERT_RECT => clan.insert_after(imp, action.0 - Move::INSERT_DOT),
            Move::DELETE => clan.delete(imp),
            Move::DUPLICATE => clan.duplicate(imp),
            Move::SWAP => clan.swap_with_next(imp),
            Move::GROUP_WITH_NEXT => clan.group_with_next(imp),
            Move::WRAP_GROUP => clan.wrap_in_group(imp),
            Move::WRAP_ROTATION => clan.wrap_in_rotation(imp),
            Move::UNWRAP => clan.unwrap(imp),
            Move::DOT_TO_LINE => clan.dot_to_line(imp),
            Move::DOT_TO_RECT => clan.dot_to_rect(imp),
            Move::LINE_TO_DOT => clan.line_to_dot(imp),
            Move::RECT_TO_DOT => clan.rect_to_dot(imp),
            Move::MOVE_LEFT..=Move::MOVE_DOWN => clan.shift(imp, action.0 - Move::MOVE_LEFT),
            _ => match new_value(clan.values[imp], clan.roles[imp], action.0) {
                Some(value) => {
                    clan.values[imp] = value;
                    true
                }
                None => false,
            },
        };
        fits.then_some(clan)
    }

    /// True if no imp is too deep.
    pub(super) fn is_shallow(&self) -> bool {
        let depths = self.depths();
        depths[..self.len()]
            .iter()
            .all(|&depth| usize::from(depth) <= MAX_DEPTH)
    }
}

/// Returns the one-hot value of a leaf after a move that changes only that. `None` if the value would leave its range or
/// not change.
pub(super) fn new_value(value: u8, role: u8, action: u8) -> Option<u8> {
    let is_up = action == Move::INC;
    Some(match action {
        Move::INC | Move::DEC => match role {
            grammar::R_WIDTH | grammar::R_HEIGHT | grammar::R_LENGTH => Size::of(value)?.step(is_up)?.value(),
            grammar::R_X | grammar::R_Y => Coordinate::of(value)?.step(is_up)?.value(),
            _ => return None,
        },
        Move::SET_COLOR..=Move::SET_COLOR_9 => Color::new(action - Move::SET_COLOR)?.value(),
        Move::DIR_CW => Direction::of(value)?.turn(1).value(),
        Move::DIR_CCW => Direction::of(value)?.turn(7).value(),
        Move::TURN_NEXT => Turns::of(value)?.turn(1).value(),
        _ => return None,
    })
    .filter(|&new| new != value)
}
