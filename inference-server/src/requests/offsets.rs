//! Offsets of each position's row and legal actions in a request, whose lists hold all positions back to back.

use std::ops::Range;

use super::request::EvaluationRequest;

/// Offsets of the rows and of the legal actions of all positions.
#[derive(Debug)]
pub(crate) struct PositionOffsets {
    rows: Rows,
    /// Offset of each position's legal actions, and their total number.
    pub(crate) legal: Vec<u32>,
}

#[derive(Debug)]
enum Rows {
    /// All rows have this length.
    Equal(usize),
    /// Offset of each row, and their total length.
    Varied(Vec<u32>),
}

impl PositionOffsets {
    /// Offsets of a request's positions. `row_len` is the length of all rows, `None` if each row has its own.
    pub(crate) fn of(request: &EvaluationRequest, row_len: Option<usize>) -> Self {
        Self {
            rows: match row_len {
                Some(row_len) => Rows::Equal(row_len),
                None => Rows::Varied(sums(&request.row_lengths)),
            },
            legal: sums(&request.legal_counts),
        }
    }

    /// Row of a position.
    pub(crate) fn row<'a>(&self, request: &'a EvaluationRequest, position: usize) -> &'a [u32] {
        let range = match &self.rows {
            Rows::Equal(row_len) => position * row_len..(position + 1) * row_len,
            Rows::Varied(starts) => between(starts, position),
        };
        request.indices.get(range).unwrap_or_default()
    }

    /// Legal actions of a position.
    pub(crate) fn legal<'a>(&self, request: &'a EvaluationRequest, position: usize) -> &'a [u32] {
        let range = between(&self.legal, position);
        request.legal_actions.get(range).unwrap_or_default()
    }
}

/// Exclusive prefix sums of `counts`, followed by their total.
fn sums(counts: &[u32]) -> Vec<u32> {
    let mut sums = Vec::with_capacity(counts.len() + 1);
    let mut sum = 0;
    sums.push(0);
    for &count in counts {
        sum += count;
        sums.push(sum);
    }
    sums
}

fn between(starts: &[u32], position: usize) -> Range<usize> {
    let at = |place: usize| starts.get(place).copied().unwrap_or_default() as usize;
    at(position)..at(position + 1)
}
