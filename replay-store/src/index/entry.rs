//! Keys of a volume's database, orders of games, and the record of what the index covers.
//!
//! ```text
//! 'g' · first sequence number (u64, big-endian) → a chunk of games ([`super::chunk`])
//! 'l'                                           → lost games
//! 'd'                                           → deleted games
//! 'c'                                           → the part of the log that the index covers ([`Mark`])
//! ```

use serde::{Deserialize, Serialize};

use crate::{
    log::{
        ledger::Ledger,
        volume::{Position, Progress},
    },
    record::Summary,
};

/// Version of the keys and values. An index with another version is rebuilt.
pub const FORMAT: u32 = 3;

/// Key of the [`Mark`].
pub const MARK: &[u8] = b"c";

/// Key of the list of lost games.
pub const LOST: &[u8] = b"l";

/// Key of the list of deleted games.
pub const DELETED: &[u8] = b"d";

/// First byte of the keys of chunks.
pub const CHUNKS: &[u8] = b"g";

/// Returns the key of the chunk that begins with this sequence number.
pub fn chunk_key(begin: u64) -> Vec<u8> {
    [CHUNKS, &begin.to_be_bytes()].concat()
}

/// An order of games.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By the time at which the game ended, in milliseconds since the Unix epoch.
    Time,
    /// By the number of positions.
    Length,
    /// By the mean over the positions of the policy surprise (nats); 0 if the game was not measured.
    Surprise,
}

/// Number of orders.
pub const ORDERS: usize = 3;

/// A place in an order: the sort key, then the sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Sort key.
    pub value: u64,
    /// Sequence number.
    pub sequence: u64,
}

impl Order {
    /// Returns a game's sort key in this order.
    pub fn value(self, game: &Summary) -> u64 {
        match self {
            Self::Time => game.game.finished_at_ms,
            Self::Length => game.positions.into(),
            Self::Surprise => surprise(game).to_bits().into(),
        }
    }
}

/// Returns the mean of the policy surprise over the positions, in nats; 0 if it was not measured.
pub fn surprise(game: &Summary) -> f32 {
    let surprises = &game.game.policy_surprises;
    let sum: f64 = surprises.iter().map(|&surprise| f64::from(surprise)).sum();
    // Adding 0 turns a negative zero into a positive zero, which has the lowest bits.
    (sum / surprises.len().max(1) as f64) as f32 + 0.0
}

/// The part of the log that an index covers. Written together with the last chunk of that part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Version of the index: [`FORMAT`].
    pub format: u32,
    /// First sequence number of the volume.
    pub first: u64,
    /// The chunks cover every sequence number below this one.
    pub next: u64,
    /// Position in the volume's file up to which the index is complete.
    pub offset: u64,
    /// Bytes of the file right before that position.
    pub check: Vec<u8>,
    /// The newest sealed ledger, packed.
    pub ledger: Vec<u8>,
    /// Number of lost games.
    pub lost: usize,
    /// Number of deleted games.
    pub deleted: usize,
    /// Number of games in the chunks.
    pub games: usize,
}

impl Mark {
    /// Returns the mark of an index that covers everything up to `progress`.
    pub fn new(first: u64, progress: &Progress, games: usize) -> Self {
        Self {
            format: FORMAT,
            first,
            next: progress.next,
            offset: progress.position.offset,
            check: progress.position.check.clone(),
            ledger: progress
                .ledger
                .map(|ledger| ledger.pack(0).to_vec())
                .unwrap_or_default(),
            lost: progress.lost,
            deleted: progress.deleted,
            games,
        }
    }

    /// Returns the position in the volume's file.
    pub fn position(&self) -> Position {
        Position {
            offset: self.offset,
            check: self.check.clone(),
        }
    }

    /// Returns the newest sealed ledger.
    pub fn ledger(&self) -> Option<Ledger> {
        Ledger::unpack(&self.ledger).map(|(ledger, _)| ledger)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn surprises_sort_as_numbers_do(a in 0.0f32..1e9, b in 0.0f32..1e9) {
            prop_assert_eq!(a.to_bits().cmp(&b.to_bits()), a.total_cmp(&b));
        }
    }
}
