//! [`Bounded`]: the number of a leaf, which cannot be outside of the range of its role.

use std::ops::RangeInclusive;

use super::grammar::{COLOR, DIRECTION, INT, TURNS};

/// Number from `LOW` to `HIGH` that a leaf of a clan holds. The one-hot value of number n is `ZERO + n`.
///
/// ```
/// use games::generator::bounded::Size;
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
mod tests {
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
