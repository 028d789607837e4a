//! Grammar of clans: one-hot values of imps, roles of their children, and the values that can fill a role.
//!
//! ```text
//! Generator  = width:Int[1..8] height:Int[1..8] background:Color shapes:List<Shape>[0..6]
//! Shape      = Dot | Line | Rect | ShapeGroup | Rotation
//! Dot        = start:Coords color:Color
//! Line       = start:Coords color:Color direction:Direction length:Int[1..8]
//! Rect       = width:Int[1..8] height:Int[1..8] start:Coords color:Color
//! ShapeGroup = shapes:List<Shape>[1..6]
//! Rotation   = shape:Shape turns:Turns pivot:Coords
//! Coords     = x:Int[0..7] y:Int[0..7]
//! ```
//!
//! x grows to the right, y downward. The number of a role is its row in the role matrix. Children are in the order of their
//! roles.

use std::ops::RangeInclusive;

use super::bounded::{Color, Coordinate, Direction, Size, Turns};

/// Most imps of a clan, leaves included.
pub const MAX_IMPS: usize = 96;
/// Most edges between the root and an imp.
pub const MAX_DEPTH: usize = 6;
/// Most shapes of a list.
pub const MAX_SHAPES: usize = 6;
/// Number of one-hot values, 0 ("not present") included.
pub const VALUES: usize = 38;
/// Number of rows of a role matrix: `THIS`, the roles, and `PATH_ENDED`.
pub const ROLES: usize = 20;

pub(crate) const GENERATOR: u8 = 1;
pub(crate) const COORDS: u8 = 2;
pub(crate) const DOT: u8 = 3;
pub(crate) const LINE: u8 = 4;
pub(crate) const RECT: u8 = 5;
pub(crate) const GROUP: u8 = 6;
pub(crate) const ROTATION: u8 = 7;
/// Int 0. `INT + n` is Int n, up to 8.
pub(crate) const INT: u8 = 8;
/// Colour 0. `COLOR + n` is colour n, up to 9.
pub(crate) const COLOR: u8 = 17;
/// Direction 0, to the right. `DIRECTION + n` is turned clockwise by n times 45°, n up to 7.
pub(crate) const DIRECTION: u8 = 27;
/// One quarter turn clockwise. `TURNS + n` is n further ones, n up to 2.
pub(crate) const TURNS: u8 = 35;

/// Row of an imp itself, and role of the root.
pub const THIS: u8 = 0;
pub(crate) const R_WIDTH: u8 = 1;
pub(crate) const R_HEIGHT: u8 = 2;
pub(crate) const R_BACKGROUND: u8 = 3;
pub(crate) const R_X: u8 = 4;
pub(crate) const R_Y: u8 = 5;
pub(crate) const R_START: u8 = 6;
pub(crate) const R_COLOR: u8 = 7;
pub(crate) const R_DIRECTION: u8 = 8;
pub(crate) const R_LENGTH: u8 = 9;
pub(crate) const R_SHAPE: u8 = 10;
pub(crate) const R_TURNS: u8 = 11;
pub(crate) const R_PIVOT: u8 = 12;
/// First of the [`MAX_SHAPES`] places of a list of shapes.
pub(crate) const R_SHAPES: u8 = 13;
/// Filler after the last role of a path.
pub const PATH_ENDED: u8 = 19;

/// Steps (x, y) of the eight directions: right, then clockwise.
pub(crate) const STEPS: [(i32, i32); 8] = [
    (1, 0),
    (1, 1),
    (0, 1),
    (-1, 1),
    (-1, 0),
    (-1, -1),
    (0, -1),
    (1, -1),
];

/// Returns the roles of the children of an imp of this one-hot value, ascending, without those of a list of shapes.
pub(crate) const fn fixed_roles(value: u8) -> &'static [u8] {
    match value {
        GENERATOR => &[R_WIDTH, R_HEIGHT, R_BACKGROUND],
        COORDS => &[R_X, R_Y],
        DOT => &[R_START, R_COLOR],
        LINE => &[R_START, R_COLOR, R_DIRECTION, R_LENGTH],
        RECT => &[R_WIDTH, R_HEIGHT, R_START, R_COLOR],
        ROTATION => &[R_SHAPE, R_TURNS, R_PIVOT],
        _ => &[],
    }
}

/// Returns the numbers of shapes that the list of an imp of this one-hot value can hold. `None` if it has no list.
pub(crate) const fn list_sizes(value: u8) -> Option<RangeInclusive<usize>> {
    match value {
        GENERATOR => Some(0..=MAX_SHAPES),
        GROUP => Some(1..=MAX_SHAPES),
        _ => None,
    }
}

/// Returns the one-hot values that can fill a role.
pub(crate) const fn values_of(role: u8) -> RangeInclusive<u8> {
    match role {
        THIS => GENERATOR..=GENERATOR,
        R_WIDTH | R_HEIGHT | R_LENGTH => Size::VALUES,
        R_BACKGROUND | R_COLOR => Color::VALUES,
        R_X | R_Y => Coordinate::VALUES,
        R_START | R_PIVOT => COORDS..=COORDS,
        R_DIRECTION => Direction::VALUES,
        R_TURNS => Turns::VALUES,
        R_SHAPE | 13..=18 => DOT..=ROTATION,
        // An empty range.
        _ => RangeInclusive::new(1, 0),
    }
}

/// True if the one-hot value is that of a shape.
pub(crate) const fn is_shape(value: u8) -> bool {
    DOT <= value && value <= ROTATION
}

/// True if the one-hot value is that of a leaf.
pub(crate) const fn is_leaf(value: u8) -> bool {
    value >= INT
}

/// Returns the name of an imp's one-hot value, for people.
pub(crate) fn value_name(value: u8) -> String {
    const COLORS: [&str; 10] = [
        "black", "blue", "red", "green", "yellow", "gray", "fuchsia", "orange", "teal", "crimson",
    ];
    const DIRECTIONS: [&str; 8] = [
        "right",
        "down-right",
        "down",
        "down-left",
        "left",
        "up-left",
        "up",
        "up-right",
    ];
    let named = |names: &[&str], first: u8| {
        names
            .get(usize::from(value - first))
            .map_or_else(|| format!("value {value}"), |&name| name.to_owned())
    };
    match value {
        GENERATOR => "Generator".into(),
        COORDS => "Coords".into(),
        DOT => "Dot".into(),
        LINE => "Line".into(),
        RECT => "Rect".into(),
        GROUP => "ShapeGroup".into(),
        ROTATION => "Rotation".into(),
        INT..COLOR => (value - INT).to_string(),
        COLOR..DIRECTION => named(&COLORS, COLOR),
        DIRECTION..TURNS => named(&DIRECTIONS, DIRECTION),
        35..38 => format!("{}°", u32::from(value - TURNS + 1) * 90),
        _ => format!("value {value}"),
    }
}

/// Returns the name of a role, for people.
pub(crate) fn role_name(role: u8) -> String {
    const NAMES: [&str; 13] = [
        "this",
        "width",
        "height",
        "background",
        "x",
        "y",
        "start",
        "color",
        "direction",
        "length",
        "shape",
        "turns",
        "pivot",
    ];
    match NAMES.get(usize::from(role)) {
        Some(&name) => name.into(),
        None if role < PATH_ENDED => format!("shapes[{}]", role - R_SHAPES),
        None => format!("role {role}"),
    }
}
