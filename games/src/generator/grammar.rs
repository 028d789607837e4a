//! The grammar: what one-hot value every imp has, which roles a kind has, and what may fill a role.
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
//! x grows to the right, y downward. A role's number is its row in the role matrix; children stand in the order of their roles.

use std::ops::RangeInclusive;

/// Most imps of a clan, leaves included.
pub const MAX_IMPS: usize = 96;
/// Most edges between the root and any imp.
pub const MAX_DEPTH: usize = 6;
/// Most shapes of a list.
pub const MAX_SHAPES: usize = 6;
/// One-hot values, `NOT_PRESENT` included.
pub const VALUES: usize = 38;
/// Rows of a role matrix: `THIS`, the roles, and a spare one that says that a path has ended.
pub const ROLES: usize = 20;

/// The one-hot value of what is not there.
pub const NOT_PRESENT: u8 = 0;
pub(crate) const GENERATOR: u8 = 1;
pub(crate) const COORDS: u8 = 2;
pub(crate) const DOT: u8 = 3;
pub(crate) const LINE: u8 = 4;
pub(crate) const RECT: u8 = 5;
pub(crate) const GROUP: u8 = 6;
pub(crate) const ROTATION: u8 = 7;
/// Int 0; `INT + n` is Int n, up to 8.
pub(crate) const INT: u8 = 8;
/// Colour 0 of ten.
pub(crate) const COLOR: u8 = 17;
/// Direction 0 of eight: right, then clockwise in steps of 45°.
pub(crate) const DIRECTION: u8 = 27;
/// One quarter turn clockwise, of up to three.
pub(crate) const TURNS: u8 = 35;

/// The row of an imp itself, and the role of the root.
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
/// The first place of a list of shapes, of [`MAX_SHAPES`].
pub(crate) const R_SHAPES: u8 = 13;
/// No role: the path has ended.
pub const PATH_ENDED: u8 = 19;

/// The steps of the eight directions, R DR D DL L UL U UR.
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

/// The roles that every imp of this one-hot value has, ascending, besides a list of shapes.
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

/// How many shapes a list of this kind of imp may hold; `None` where it has no list.
pub(crate) const fn list_sizes(value: u8) -> Option<RangeInclusive<usize>> {
    match value {
        GENERATOR => Some(0..=MAX_SHAPES),
        GROUP => Some(1..=MAX_SHAPES),
        _ => None,
    }
}

/// The one-hot values that may fill a role.
pub(crate) const fn values_of(role: u8) -> RangeInclusive<u8> {
    match role {
        THIS => GENERATOR..=GENERATOR,
        R_WIDTH | R_HEIGHT | R_LENGTH => INT + 1..=INT + 8,
        R_BACKGROUND | R_COLOR => COLOR..=COLOR + 9,
        R_X | R_Y => INT..=INT + 7,
        R_START | R_PIVOT => COORDS..=COORDS,
        R_DIRECTION => DIRECTION..=DIRECTION + 7,
        R_TURNS => TURNS..=TURNS + 2,
        R_SHAPE | 13..=18 => DOT..=ROTATION,
        // None.
        _ => RangeInclusive::new(1, 0),
    }
}

/// Whether the value is a shape's.
pub(crate) const fn is_shape(value: u8) -> bool {
    DOT <= value && value <= ROTATION
}

/// Whether the value is a leaf's.
pub(crate) const fn is_leaf(value: u8) -> bool {
    value >= INT
}

/// What an imp is called, for people.
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

/// What a role is called, for people.
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
