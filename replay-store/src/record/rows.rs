//! Rows as edits of an earlier row: copy some values, skip some of the earlier row, insert some new ones.
//!
//! A row is a sorted list of piece entries and a few constants, and one action moves one or two pieces. So nearly all values of a row
//! occur in an earlier row, at slightly different places. If rows are seen from the side of the player to act, the earlier row must be
//! one of the same player; a byte says which was chosen. The code does not depend on a game: any lists of numbers are reproduced
//! exactly.

use proto::columns::Lengths;

use super::{
    planes,
    sections::{DecodeError, Reader, put_varint},
};

/// Maximum distance at which a value is searched for in the reference row.
const REACH: usize = 12;

/// The earlier row that a row is edited from is the row before it, or the latest row in which the same player acted.
const PREVIOUS: u8 = 0;
const SAME_MOVER: u8 = 1;

/// The edits of many rows, as one column for each kind of number.
#[derive(Default)]
struct Edits {
    copies: Vec<u32>,
    skips: Vec<u32>,
    inserts: Vec<u32>,
    literals: Vec<u32>,
}

/// Tracks where the last row of each player is; `None` before the first one.
struct Tracker {
    reference: u8,
    last: [Option<(usize, usize)>; 2],
}

impl Tracker {
    fn new(reference: u8) -> Self {
        Self {
            reference,
            last: [None; 2],
        }
    }

    /// Returns the span of the earlier row for a row of `mover`, and records the row's own `span`.
    fn next(&mut self, mover: u8, span: (usize, usize)) -> (usize, usize) {
        let slot = usize::from(self.reference & mover & 1);
        let other = self.last[1 - slot];
        let found = self.last[slot].or(other).unwrap_or((0, 0));
        self.last[slot] = Some(span);
        found
    }
}

/// Appends the rows (one for each of `movers`) with the reference that gives the shorter edits.
pub(crate) fn put(rows: &[u32], lengths: &Lengths<'_>, movers: &[u8], out: &mut Vec<u8>) {
    let previous = edits(rows, lengths, movers, PREVIOUS);
    let same = edits(rows, lengths, movers, SAME_MOVER);
    let weight = |edits: &Edits| 2 * edits.copies.len() + 2 * edits.literals.len();
    let (reference, chosen) = if weight(&same) < weight(&previous) {
        (SAME_MOVER, same)
    } else {
        (PREVIOUS, previous)
    };
    out.push(reference);
    put_varint(chosen.copies.len() as u64, out);
    put_varint(chosen.literals.len() as u64, out);
    planes::put(&chosen.copies, out);
    planes::put(&chosen.skips, out);
    planes::put(&chosen.inserts, out);
    planes::put(&chosen.literals, out);
}

fn edits(rows: &[u32], lengths: &Lengths<'_>, movers: &[u8], reference: u8) -> Edits {
    let mut edits = Edits::default();
    let mut tracker = Tracker::new(reference);
    let mut begin = 0;
    for (number, &mover) in movers.iter().enumerate() {
        let end = begin + lengths.get(number);
        let (from, to) = tracker.next(mover, (begin, end));
        let (Some(row), Some(earlier)) = (rows.get(begin..end), rows.get(from..to)) else {
            break;
        };
        edit(row, earlier, &mut edits);
        begin = end;
    }
    edits
}

/// Appends the edits that turn `earlier` into `row`.
fn edit(mut row: &[u32], mut earlier: &[u32], edits: &mut Edits) {
    while !row.is_empty() {
        let copy = row.iter().zip(earlier).take_while(|(a, b)| a == b).count();
        row = &row[copy..];
        earlier = &earlier[copy..];
        let near = &earlier[..earlier.len().min(REACH)];
        let (insert, skip) = row
            .iter()
            .enumerate()
            .find_map(|(at, value)| {
                near.iter()
                    .position(|candidate| candidate == value)
                    .map(|skip| (at, skip))
            })
            .unwrap_or((row.len(), 0));
        edits.copies.push(copy as u32);
        edits.skips.push(skip as u32);
        edits.inserts.push(insert as u32);
        edits.literals.extend_from_slice(&row[..insert]);
        row = &row[insert..];
        earlier = &earlier[skip..];
    }
}

/// Reads the rows. `total` is the number of values in all of them.
pub(crate) fn take(
    reader: &mut Reader<'_>,
    lengths: &Lengths<'_>,
    movers: &[u8],
    total: usize,
) -> Result<Vec<u32>, DecodeError> {
    let reference = reader.byte()?;
    if reference > SAME_MOVER {
        return Err(DecodeError::NUMBER);
    }
    let steps = reader.count(total)?;
    let literals = reader.count(total)?;
    let copies = planes::take(reader, steps)?;
    let skips = planes::take(reader, steps)?;
    let inserts = planes::take(reader, steps)?;
    let literals = planes::take(reader, literals)?;
    let mut steps = copies.into_iter().zip(skips).zip(inserts);
    let mut literals = literals.as_slice();
    let mut rows = Vec::with_capacity(total);
    let mut tracker = Tracker::new(reference);
    for (number, &mover) in movers.iter().enumerate() {
        let begin = rows.len();
        let end = begin + lengths.get(number);
        let (mut from, to) = tracker.next(mover, (begin, end));
        while rows.len() < end {
            let ((copy, skip), insert) = steps.next().ok_or(DecodeError::SHORT)?;
            let (copy, skip, insert) = (copy as usize, skip as usize, insert as usize);
            let left = end - rows.len();
            if copy > to - from || copy > left || insert > left - copy || copy + insert == 0 && skip == 0 {
                return Err(DecodeError::Damaged("a row edit in the record leaves its row"));
            }
            rows.extend_from_within(from..from + copy);
            from += copy;
            let (inserted, rest) = literals.split_at_checked(insert).ok_or(DecodeError::SHORT)?;
            rows.extend_from_slice(inserted);
            literals = rest;
            if skip > to - from {
                return Err(DecodeError::Damaged("a row edit in the record leaves its row"));
            }
            from += skip;
        }
    }
    if steps.next().is_some() || !literals.is_empty() || rows.len() != total {
        return Err(DecodeError::TRAILING);
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn comes_back(rows: &[Vec<u32>], movers: &[u8], fixed: Option<usize>) -> usize {
        let flat: Vec<u32> = rows.concat();
        let each: Vec<u32> = rows.iter().map(|row| row.len() as u32).collect();
        let lengths = || fixed.map_or(Lengths::Varying(&each), Lengths::Fixed);
        let mut bytes = Vec::new();
        put(&flat, &lengths(), movers, &mut bytes);
        let mut reader = Reader::new(&bytes);
        assert_eq!(take(&mut reader, &lengths(), movers, flat.len()).unwrap(), flat);
        reader.end().unwrap();
        bytes.len()
    }

    proptest! {
        #[test]
        fn any_rows_come_back(
            rows in prop::collection::vec((0u8..2, prop::collection::vec(prop_oneof![0u32..6, any::<u32>()], 1..30)), 0..20)
        ) {
            let (movers, rows): (Vec<u8>, Vec<Vec<u32>>) = rows.into_iter().unzip();
            comes_back(&rows, &movers, None);
        }

        #[test]
        fn damage_is_an_error_or_other_rows(bytes in prop::collection::vec(any::<u8>(), 0..60), total in 0usize..40) {
            if let Ok(rows) = take(&mut Reader::new(&bytes), &Lengths::Fixed(total), &[0], total) {
                prop_assert_eq!(rows.len(), total);
            }
        }
    }

    #[test]
    fn a_moved_piece_costs_a_few_bytes() {
        let first: Vec<u32> = (0..39).map(|entry| entry * 40).collect();
        let mut second = first.clone();
        second.remove(5);
        second.insert(20, 1001);
        let rows = [first.clone(), second.clone(), first, second];
        let one = comes_back(&rows[..1], &[0], Some(39));
        let four = comes_back(&rows, &[0, 0, 0, 0], Some(39));
        assert!(four - one < 3 * 16, "{one} bytes for one row, {four} for four");
    }

    #[test]
    fn rows_seen_from_the_mover_are_written_against_the_same_players() {
        let white: Vec<u32> = (0..39).collect();
        let black: Vec<u32> = (100..139).collect();
        let rows: Vec<Vec<u32>> = (0..20)
            .map(|ply| {
                if ply % 2 == 0 {
                    white.clone()
                } else {
                    black.clone()
                }
            })
            .collect();
        let movers: Vec<u8> = (0..20).map(|ply| ply % 2).collect();
        assert!(comes_back(&rows, &movers, Some(39)) < 220);
    }
}
