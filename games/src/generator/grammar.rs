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

/// Number from `LOW` to `HIGH` that a leaf of a clan holds. The one-hot value of number n is `ZERO + n`.
///
/// ```
/// use games::generator::grammar::Size;
///
/// let largest = Size::new(8);
/// assert_eq!(largest.map(Size::get), Some(8));
/// assert_eq!(Size::new(9), None);
/// assert_eq!(largest.and_then(|size| size.step(true)), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bounded<const LOW: u8, const HIGH: u8, const ZERO: u8>(u8);

/// Width, height or length, in cells.
pub type Size = Bounded<1, 8, INT>;
/// Column or row of a cell.
pub type Coordinate = Bounded<0, 7, INT>;
/// One of the ten colours.
pub type Color = Bounded<0, 9, COLOR>;
/// Direction: to the right, turned clockwise by this many times 45°.
pub type Direction = Bounded<0, 7, DIRECTION>;
/// Number of quarter turns clockwise.
pub type Turns = Bounded<1, 3, { TURNS - 1 }>;

impl<const LOW: u8, const HIGH: u8, const ZERO: u8> Bounded<LOW, HIGH, ZERO> {
    /// Lowest number.
    pub const LEAST: Self = Self::nearest(LOW);
    /// One-hot values of all numbers.
    pub const VALUES: RangeInclusive<u8> = ZERO + LOW..=ZERO + HIGH;

    /// Returns the number. `None` if it is out of range.
    pub const fn new(number: u8) -> Option<Self> {
        if LOW <= number && number <= HIGH {
            Some(Self(number))
        } else {
            None
        }
    }

    /// Returns the number in the range that is nearest to this one.
    pub const fn nearest(number: u8) -> Self {
        const {
            assert!(
                LOW <= HIGH && HIGH <= u8::MAX - ZERO,
                "one-hot values are below 256"
            )
        };
        if number < LOW {
            Self(LOW)
        } else if number > HIGH {
            Self(HIGH)
        } else {
            Self(number)
        }
    }

    /// Returns the number with this one-hot value. `None` if no number has it.
    pub const fn of(value: u8) -> Option<Self> {
        match value.checked_sub(ZERO) {
            Some(number) => Self::new(number),
            None => None,
        }
    }

    /// Returns the number of a leaf from its one-hot value, which the grammar keeps in the range of its role. Of another
    /// value, the nearest number.
    pub(super) const fn read(value: u8) -> Self {
        Self::nearest(value.saturating_sub(ZERO))
    }

    /// Returns the number as an integer.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Returns the one-hot value.
    pub const fn value(self) -> u8 {
        ZERO + self.0
    }

    /// Returns the next higher number, or the next lower one. `None` beyond the end of the range.
    pub const fn step(self, is_up: bool) -> Option<Self> {
        match is_up {
            true if self.0 < HIGH => Some(Self(self.0 + 1)),
            false if self.0 > LOW => Some(Self(self.0 - 1)),
            _ => None,
        }
    }

    /// Returns the number that is higher by `steps`. The lowest number follows the highest.
    pub const fn turn(self, steps: u8) -> Self {
        let count = HIGH - LOW + 1;
        Self(LOW + (self.0 - LOW + steps % count) % count)
    }
}

#[cfg(test)]
mod bounded_tests {
    use super::*;

    fn check<const LOW: u8, const HIGH: u8, const ZERO: u8>(_: Bounded<LOW, HIGH, ZERO>) {
        for number in 0..=u8::MAX {
            let found = Bounded::<LOW, HIGH, ZERO>::new(number);
            assert_eq!(found.is_some(), (LOW..=HIGH).contains(&number));
            let nearest = Bounded::<LOW, HIGH, ZERO>::nearest(number);
            assert_eq!(nearest.get(), number.clamp(LOW, HIGH));
            assert_eq!(Bounded::of(nearest.value()), Some(nearest));
            for is_up in [false, true] {
                let step = nearest.step(is_up);
                assert_eq!(step.is_none(), nearest.get() == if is_up { HIGH } else { LOW });
                assert!(
                    step.is_none_or(
                        |step| step.get().abs_diff(nearest.get()) == 1 && (step > nearest) == is_up
                    )
                );
            }
            let turned = nearest.turn(number);
            let count = u16::from(HIGH - LOW) + 1;
            assert!((LOW..=HIGH).contains(&turned.get()));
            assert_eq!(
                (u16::from(nearest.get()) + u16::from(number)) % count,
                u16::from(turned.get()) % count
            );
            let is_value = Bounded::<LOW, HIGH, ZERO>::VALUES.contains(&number);
            assert_eq!(Bounded::<LOW, HIGH, ZERO>::of(number).is_some(), is_value);
        }
    }

    #[test]
    fn no_number_is_outside_of_its_range() {
        check(Size::LEAST);
        check(Coordinate::LEAST);
        check(Color::LEAST);
        check(Direction::LEAST);
        check(Turns::LEAST);
        assert_eq!(Turns::LEAST.value(), TURNS);
    }
}
