//! Views of ragged columns: the numbers of many positions in one list, with the length of each position's part in another.
//!
//! Games and batches contain rows, sparse policies and training targets in this form. A view checks once that the lengths add up, and
//! then iterates over the positions' parts.
//!
//! ```
//! use proto::columns::{Lengths, Ragged};
//!
//! let rows = Ragged::new("rows", &[1, 2, 3, 4, 5], Lengths::Varying(&[2, 0, 3]), 3)?;
//! let parts: Vec<&[u32]> = rows.collect();
//! assert_eq!(parts, [&[1, 2][..], &[], &[3, 4, 5]]);
//! assert!(Ragged::new("rows", &[1, 2, 3], Lengths::Fixed(2), 2).is_err());
//! # Ok::<(), proto::columns::ColumnError>(())
//! ```

use crate::v1::{Batch, Game};

/// Error: a column does not have the length that the other columns give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{column} has {found} entries, {expected} expected")]
pub struct ColumnError {
    /// Name of the column.
    pub column: &'static str,
    /// Number of entries that it has.
    pub found: u64,
    /// Number of entries that it must have.
    pub expected: u64,
}

/// Checks the length of a column.
///
/// # Errors
/// [`ColumnError`] if the column has another length.
pub fn check_length(column: &'static str, found: usize, expected: usize) -> Result<(), ColumnError> {
    check_count(column, found as u64, expected as u64)
}

pub(crate) fn check_count(column: &'static str, found: u64, expected: u64) -> Result<(), ColumnError> {
    match found == expected {
        true => Ok(()),
        false => Err(ColumnError {
            column,
            found,
            expected,
        }),
    }
}

/// Lengths of a ragged column's parts.
#[derive(Clone, Copy, Debug)]
pub enum Lengths<'a> {
    /// All parts have this length.
    Fixed(usize),
    /// Each part has its own length.
    Varying(&'a [u32]),
}

impl Lengths<'_> {
    /// Returns the length of a part; 0 if there is no such part.
    pub fn get(&self, part: usize) -> usize {
        match self {
            Self::Fixed(length) => *length,
            Self::Varying(lengths) => lengths.get(part).map_or(0, |&length| length as usize),
        }
    }

    /// Returns the sum of the lengths of `parts` parts.
    pub fn total(&self, parts: usize) -> u64 {
        match self {
            Self::Fixed(length) => (*length as u64).saturating_mul(parts as u64),
            Self::Varying(lengths) => lengths.iter().map(|&length| u64::from(length)).sum(),
        }
    }
}

/// An iterator over the parts of one column.
#[derive(Clone, Debug)]
pub struct Ragged<'a> {
    values: &'a [u32],
    lengths: Lengths<'a>,
    parts: usize,
    next: usize,
}

impl<'a> Ragged<'a> {
    /// Makes a view of `parts` parts of `values`. `column` names the column in errors.
    ///
    /// # Errors
    /// [`ColumnError`] if the lengths do not add up to the number of values. The number of varying lengths is not checked
    /// here, because their column has a name of its own.
    pub fn new(
        column: &'static str,
        values: &'a [u32],
        lengths: Lengths<'a>,
        parts: usize,
    ) -> Result<Self, ColumnError> {
        check_count(column, values.len() as u64, lengths.total(parts))?;
        Ok(Self {
            values,
            lengths,
            parts,
            next: 0,
        })
    }
}

impl<'a> Iterator for Ragged<'a> {
    type Item = &'a [u32];

    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.parts {
            return None;
        }
        let length = self.lengths.get(self.next).min(self.values.len());
        let (part, rest) = self.values.split_at(length);
        self.values = rest;
        self.next += 1;
        Some(part)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.parts - self.next;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Ragged<'_> {}

/// Offsets of the parts of one column, for access in any order. The lengths must have been checked by [`Ragged::new`].
#[derive(Clone, Debug)]
pub enum Offsets {
    /// All parts have this length.
    Fixed(usize),
    /// Offset of each part, and the end of the last one.
    Varying(Vec<u32>),
}

impl Offsets {
    /// Computes the offsets of all parts.
    pub fn new(lengths: Lengths<'_>) -> Self {
        match lengths {
            Lengths::Fixed(length) => Self::Fixed(length),
            Lengths::Varying(lengths) => {
                let mut offsets = Vec::with_capacity(lengths.len() + 1);
                let mut end = 0;
                offsets.push(0);
                offsets.extend(lengths.iter().map(|&length| {
                    end += length;
                    end
                }));
                Self::Varying(offsets)
            }
        }
    }

    /// Returns the offset of a part.
    pub fn start(&self, part: usize) -> usize {
        match self {
            Self::Fixed(length) => part * length,
            Self::Varying(offsets) => offsets.get(part).copied().unwrap_or_default() as usize,
        }
    }

    /// Returns a part of `values`; an empty slice if there is no such part.
    pub fn part<'a>(&self, values: &'a [u32], part: usize) -> &'a [u32] {
        values
            .get(self.start(part)..self.start(part + 1))
            .unwrap_or_default()
    }
}

/// An iterator over sparse policies: for each position its policy indices and their visits.
#[derive(Clone, Debug)]
pub struct SparsePolicies<'a> {
    actions: Ragged<'a>,
    visits: Ragged<'a>,
}

impl<'a> SparsePolicies<'a> {
    /// Makes a view of `positions` sparse policies from the columns of counts, actions and visits; `names` are their names in errors.
    ///
    /// # Errors
    /// [`ColumnError`] if the columns do not have the lengths that the counts and the number of positions give them.
    pub fn new(
        names: [&'static str; 3],
        [counts, actions, visits]: [&'a [u32]; 3],
        positions: usize,
    ) -> Result<Self, ColumnError> {
        check_length(names[0], counts.len(), positions)?;
        let lengths = Lengths::Varying(counts);
        Ok(Self {
            actions: Ragged::new(names[1], actions, lengths, positions)?,
            visits: Ragged::new(names[2], visits, lengths, positions)?,
        })
    }

    /// Returns the number of entries of the positions that have not been visited yet.
    pub fn entries(&self) -> usize {
        self.actions.values.len()
    }
}

impl<'a> Iterator for SparsePolicies<'a> {
    type Item = (&'a [u32], &'a [u32]);

    fn next(&mut self) -> Option<Self::Item> {
        Some((self.actions.next()?, self.visits.next()?))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.actions.size_hint()
    }
}

impl ExactSizeIterator for SparsePolicies<'_> {}

impl Game {
    /// Returns the rows of the positions. Rows have one length if `row_lengths` is empty.
    ///
    /// # Errors
    /// [`ColumnError`] if the lengths do not add up to the number of values.
    pub fn row_columns(&self) -> Result<Ragged<'_>, ColumnError> {
        let positions = self.actions.len();
        Ragged::new("rows", &self.rows, self.lengths_of_rows()?, positions)
    }

    /// Returns the lengths of the rows.
    ///
    /// # Errors
    /// [`ColumnError`] if `row_lengths` has another length than `actions`.
    pub fn lengths_of_rows(&self) -> Result<Lengths<'_>, ColumnError> {
        let positions = self.actions.len();
        if self.row_lengths.is_empty() {
            return Ok(Lengths::Fixed(self.rows.len() / positions.max(1)));
        }
        check_length("row_lengths", self.row_lengths.len(), positions)?;
        Ok(Lengths::Varying(&self.row_lengths))
    }

    /// Returns the sparse policies of the positions: policy indices and visits.
    ///
    /// # Errors
    /// [`ColumnError`] if the columns do not have the lengths that the counts give them.
    pub fn policy_columns(&self) -> Result<SparsePolicies<'_>, ColumnError> {
        SparsePolicies::new(
            ["visit_counts", "visit_actions", "visits"],
            [&self.visit_counts, &self.visit_actions, &self.visits],
            self.actions.len(),
        )
    }
}

impl Batch {
    /// Returns the rows of the positions, which have `row_len` values each, or their own lengths if that is `None`.
    ///
    /// # Errors
    /// [`ColumnError`] if the lengths do not add up to the number of values.
    pub fn row_columns(&self, row_len: Option<usize>) -> Result<Ragged<'_>, ColumnError> {
        let positions = self.positions as usize;
        let lengths = match row_len {
            Some(length) => Lengths::Fixed(length),
            None => {
                check_length("row_lengths", self.row_lengths.len(), positions)?;
                Lengths::Varying(&self.row_lengths)
            }
        };
        Ragged::new("rows", &self.rows, lengths, positions)
    }

    /// Returns the sparse policies of the positions: policy indices and visits.
    ///
    /// # Errors
    /// [`ColumnError`] if the columns do not have the lengths that the counts give them.
    pub fn policy_columns(&self) -> Result<SparsePolicies<'_>, ColumnError> {
        SparsePolicies::new(
            ["visit_counts", "visit_actions", "visits"],
            [&self.visit_counts, &self.visit_actions, &self.visits],
            self.positions as usize,
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parts_are_returned_in_order(parts in prop::collection::vec(prop::collection::vec(any::<u32>(), 0..6), 0..20)) {
            let values = parts.concat();
            let lengths: Vec<u32> = parts.iter().map(|part| part.len() as u32).collect();
            let view = Ragged::new("values", &values, Lengths::Varying(&lengths), parts.len()).unwrap();
            prop_assert_eq!(view.len(), parts.len());
            let offsets = Offsets::new(Lengths::Varying(&lengths));
            for (number, part) in parts.iter().enumerate() {
                prop_assert_eq!(offsets.part(&values, number), part);
            }
            prop_assert!(offsets.part(&values, parts.len()).is_empty());
            prop_assert_eq!(view.map(<[u32]>::to_vec).collect::<Vec<_>>(), parts);
        }

        #[test]
        fn lengths_that_do_not_add_up_are_refused(lengths in prop::collection::vec(any::<u32>(), 0..6), count in 0usize..20) {
            let values = vec![0; count];
            let expected: u64 = lengths.iter().map(|&length| u64::from(length)).sum();
            let view = Ragged::new("values", &values, Lengths::Varying(&lengths), lengths.len());
            match view {
                Ok(view) => {
                    prop_assert_eq!(expected, count as u64);
                    prop_assert_eq!(view.map(<[u32]>::len).sum::<usize>(), count);
                }
                Err(error) => prop_assert_eq!(error, ColumnError { column: "values", found: count as u64, expected }),
            }
        }
    }

    #[test]
    fn parts_of_one_length_are_split_evenly() {
        let values = [1, 2, 3, 4, 5, 6];
        let view = Ragged::new("rows", &values, Lengths::Fixed(2), 3).unwrap();
        assert_eq!(view.collect::<Vec<_>>(), [[1, 2], [3, 4], [5, 6]]);
        assert_eq!(Offsets::new(Lengths::Fixed(2)).part(&values, 1), [3, 4]);
        assert!(Ragged::new("rows", &values, Lengths::Fixed(4), 2).is_err());
        assert!(Ragged::new("rows", &values, Lengths::Fixed(usize::MAX / 2), 1).is_err());
    }

    #[test]
    fn errors_of_a_game_name_the_column() {
        let game = |change: fn(&mut Game)| {
            let mut game = Game {
                actions: vec![7, 8],
                rows: vec![1, 2, 3],
                row_lengths: vec![1, 2],
                visit_counts: vec![2, 0],
                visit_actions: vec![5, 6],
                visits: vec![9, 1],
                ..Game::default()
            };
            change(&mut game);
            game
        };
        let whole = game(|_| {});
        assert_eq!(
            whole.row_columns().unwrap().collect::<Vec<_>>(),
            [&[1][..], &[2, 3]]
        );
        let policies: Vec<_> = whole.policy_columns().unwrap().collect();
        assert_eq!(policies, [(&[5, 6][..], &[9, 1][..]), (&[], &[])]);

        let column = |game: Game| {
            let rows = game.row_columns().map(|_| ());
            rows.and(game.policy_columns().map(|_| ())).unwrap_err().column
        };
        assert_eq!(column(game(|game| game.row_lengths.push(1))), "row_lengths");
        assert_eq!(column(game(|game| game.row_lengths[0] = 2)), "rows");
        assert_eq!(
            column(game(|game| game.visit_counts[1] = u32::MAX)),
            "visit_actions"
        );
        assert_eq!(column(game(|game| game.visits.push(1))), "visits");
        // Rows of one length must divide evenly.
        assert_eq!(column(game(|game| game.row_lengths.clear())), "rows");
    }
}
