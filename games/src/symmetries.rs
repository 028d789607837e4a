//! Symmetries as maps of rows and policies, for training, which has rows but no states.
//!
//! [`Game::write_row`](crate::Game::write_row) writes the image of a state. [`RowSymmetries`] maps the row of the state
//! itself. Both rows expand to the same tensor.

use std::{fmt, sync::Arc};

/// Number of one of a game's symmetries. 0 is the identity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Symmetry(pub u8);

impl Symmetry {
    /// Symmetry that changes nothing.
    pub const IDENTITY: Self = Self(0);
}

/// Symmetries of the rows of one layout, and of the policies that belong to them.
pub trait RowMaps: fmt::Debug + Send + Sync {
    /// Returns the number of symmetries that apply to this row, the identity included. They are numbered from 0, the
    /// identity.
    fn count(&self, row: &[u32]) -> u8;

    /// Maps a valid row in place. Unknown symmetries change nothing.
    fn turn_row(&self, symmetry: Symmetry, row: &mut [u32]);

    /// Returns the image of a policy entry. A number that is not an entry is returned unchanged.
    fn turn_action(&self, symmetry: Symmetry, entry: u32) -> u32;

    /// Returns the image of a square of the planes. A number that is not a square is returned unchanged. By default all are, for rows
    /// that are not planes.
    fn turn_square(&self, symmetry: Symmetry, square: u32) -> u32 {
        let _ = symmetry;
        square
    }
}

/// The symmetries of the rows of one layout, and of the policies that belong to them.
///
/// ```
/// use games::{Game, Symmetry, othello::Othello};
///
/// let symmetries = Othello::row_symmetries(Default::default());
/// // A quarter turn takes a1 (entry 0) to h1 (entry 7).
/// assert_eq!(symmetries.turn_action(Symmetry(1), 0), 7);
/// ```
#[derive(Clone, Debug, Default)]
pub struct RowSymmetries(Option<Arc<dyn RowMaps>>);

impl RowSymmetries {
    /// Returns no symmetry but the identity.
    pub const fn none() -> Self {
        Self(None)
    }

    /// Returns the symmetries of a representation.
    pub fn new(maps: impl RowMaps + 'static) -> Self {
        Self(Some(Arc::new(maps)))
    }

    /// Returns the number of symmetries that apply to this row, the identity included. They are numbered from 0, the
    /// identity.
    pub fn count(&self, row: &[u32]) -> u8 {
        self.0.as_ref().map_or(1, |maps| maps.count(row))
    }

    /// Maps a valid row in place. Unknown symmetries change nothing.
    pub fn turn_row(&self, symmetry: Symmetry, row: &mut [u32]) {
        if let Some(maps) = self.maps(symmetry) {
            maps.turn_row(symmetry, row);
        }
    }

    /// Returns the image of a policy entry: its place in the policy of the mapped row. A number that is not an entry is
    /// returned unchanged.
    pub fn turn_action(&self, symmetry: Symmetry, entry: u32) -> u32 {
        self.maps(symmetry)
            .map_or(entry, |maps| maps.turn_action(symmetry, entry))
    }

    /// Returns the image of a square of the planes that a row expands to: its place in those of the mapped row. A number that is not a
    /// square is returned unchanged.
    pub fn turn_square(&self, symmetry: Symmetry, square: u32) -> u32 {
        self.maps(symmetry)
            .map_or(square, |maps| maps.turn_square(symmetry, square))
    }

    fn maps(&self, symmetry: Symmetry) -> Option<&dyn RowMaps> {
        self.0.as_deref().filter(|_| symmetry != Symmetry::IDENTITY)
    }
}
