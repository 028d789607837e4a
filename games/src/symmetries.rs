//! A game's symmetries as maps of rows and policies: what training needs, which has rows and no states.
//!
//! [`Game::write_row`](crate::Game::write_row) turns a state; this turns a row that was written without a symmetry, and
//! comes to the same planes. Whether a state may be turned is read from the row as well: where only castling tells left
//! from right, its constants say so.

use crate::{RowLayout, Symmetry, generator::Recolorings, layout::SQUARES};

/// The symmetries of the rows of one layout, and of the policies that belong to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowSymmetries {
    /// Without the identity.
    maps: Vec<RowMap>,
    /// Leading values of a row that are indices.
    entries: usize,
    /// Places of the values that must all be 0 where a row may be turned.
    rights: Vec<usize>,
    /// In place of turns: colours, where rows hold clans.
    colors: Option<Recolorings>,
}

/// The other player's policy as seen from one's own side of the board: where the rows show the board to whoever acts, one
/// move has two entries, one for each player's view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherSide {
    /// Empty where both see the board alike.
    entries: Vec<u32>,
}

impl OtherSide {
    /// Where it takes each of so many entries.
    pub(crate) fn new(actions: u32, entry: impl Fn(u32) -> u32) -> Self {
        Self {
            entries: (0..actions).map(entry).collect(),
        }
    }

    /// The entry, in one's own view, of the move that `entry` is in the other player's. Its own inverse. What is no entry is
    /// given back as it is.
    pub fn entry(&self, entry: u32) -> u32 {
        self.entries.get(entry as usize).copied().unwrap_or(entry)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct RowMap {
    squares: [u32; SQUARES],
    actions: Vec<u32>,
}

impl RowSymmetries {
    /// No symmetry but the identity.
    pub const fn none() -> Self {
        Self {
            maps: Vec::new(),
            entries: 0,
            rights: Vec::new(),
            colors: None,
        }
    }

    /// Permutations of the colours of rows that hold clans.
    pub(crate) fn of_colors(colors: Recolorings) -> Self {
        Self {
            colors: Some(colors),
            ..Self::none()
        }
    }

    /// The symmetries 1 to `count - 1` of rows of `layout`: where each takes a square and a policy entry. Rows
    /// with anything in a constant plane of `rights` have none. Rows that are no planes have none at all.
    pub(crate) fn new(
        layout: &RowLayout,
        count: u8,
        rights: &[u32],
        square: impl Fn(u8, u32) -> u32,
        action: impl Fn(u8, u32) -> u32,
    ) -> Self {
        let map = |symmetry| RowMap {
            squares: std::array::from_fn(|from| square(symmetry, from as u32)),
            actions: (0..layout.actions).map(|from| action(symmetry, from)).collect(),
        };
        let Ok(stack) = layout.stack() else {
            return Self::none();
        };
        let entries = stack.entries as usize;
        Self {
            maps: (1..count).map(map).collect(),
            entries,
            rights: (entries..)
                .zip(&stack.constants)
                .filter(|(_, constant)| rights.contains(&constant.plane))
                .map(|(place, _)| place)
                .collect(),
            colors: None,
        }
    }

    /// Number of symmetries that this row may be seen in, the identity included: those from 0 up to it.
    pub fn count(&self, row: &[u32]) -> u8 {
        if let Some(colors) = &self.colors {
            return u8::try_from(colors.count() + 1).unwrap_or(u8::MAX);
        }
        let has_rights = || {
            self.rights
                .iter()
                .any(|&place| row.get(place).is_some_and(|&value| value != 0))
        };
        if self.maps.is_empty() || has_rights() {
            return 1;
        }
        self.maps.len() as u8 + 1
    }

    /// Turns a valid row in place. Unknown symmetries change nothing.
    pub fn turn_row(&self, symmetry: Symmetry, row: &mut [u32]) {
        if let (Some(colors), Some(number)) = (&self.colors, symmetry.0.checked_sub(1)) {
            return colors.row(number.into(), row);
        }
        let Some(map) = self.map(symmetry) else { return };
        for index in row.iter_mut().take(self.entries) {
            let square = *index as usize % SQUARES;
            *index = *index - square as u32 + map.squares[square];
        }
    }

    /// Where a policy entry is found in the policy of the turned row. What is no entry is given back as it is.
    pub fn turn_action(&self, symmetry: Symmetry, action: u32) -> u32 {
        if let (Some(colors), Some(number)) = (&self.colors, symmetry.0.checked_sub(1)) {
            return colors.action(number.into(), action);
        }
        self.map(symmetry)
            .and_then(|map| map.actions.get(action as usize))
            .copied()
            .unwrap_or(action)
    }

    fn map(&self, symmetry: Symmetry) -> Option<&RowMap> {
        self.maps.get(usize::from(symmetry.0).checked_sub(1)?)
    }
}
