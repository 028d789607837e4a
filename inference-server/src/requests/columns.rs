//! Where each position's numbers lie in a request's lists, which hold those of all positions back to back.

use std::ops::Range;

use super::request::Asked;

/// Where each position's row and legal actions begin, and where the last ones end.
#[derive(Debug)]
pub(crate) struct Starts {
    rows: Rows,
    pub(crate) legal: Vec<u32>,
}

#[derive(Debug)]
enum Rows {
    /// All of one length.
    Equal(usize),
    /// Where each begins.
    Varied(Vec<u32>),
}

impl Starts {
    /// Of a request to a model whose rows have this length, or lengths of their own.
    pub(crate) fn of(asked: &Asked, row_len: Option<usize>) -> Self {
        Self {
            rows: match row_len {
                Some(row_len) => Rows::Equal(row_len),
                None => Rows::Varied(sums(&asked.row_lengths)),
            },
            legal: sums(&asked.legal_counts),
        }
    }

    /// A position's row.
    pub(crate) fn row<'a>(&self, asked: &'a Asked, position: usize) -> &'a [u32] {
        let range = match &self.rows {
            Rows::Equal(row_len) => position * row_len..(position + 1) * row_len,
            Rows::Varied(starts) => between(starts, position),
        };
        asked.indices.get(range).unwrap_or_default()
    }

    /// A position's legal actions.
    pub(crate) fn legal<'a>(&self, asked: &'a Asked, position: usize) -> &'a [u32] {
        let range = between(&self.legal, position);
        asked.legal_actions.get(range).unwrap_or_default()
    }
}

/// The sum of all counts before each, and that of all.
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
