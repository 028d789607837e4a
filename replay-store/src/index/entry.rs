//! Keys and values of a volume's index.
//!
//! ```text
//! 'g' · sequence                       → place and numbers of the game ([`Entry`])
//! 't' · milliseconds · sequence        → nothing      by time
//! 'l' · positions · sequence           → nothing      by length
//! 's' · bits of the surprise · sequence → nothing     by surprise
//! 'm' · name · milliseconds · sequence → nothing      by model, then time; likewise 'a' by actor, 'e' by ending
//! 'c'                                  → what the index is complete up to ([`Mark`])
//! ```
//! Numbers are u64, big-endian, so that keys sort as numbers do; a name is the first 8 bytes of the text's SHA-256. Orders
//! may hold keys of games that are gone: readers compare each key with the game's record.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{
    log::{
        frame::Id,
        ledger::Ledger,
        volume::{Extent, Position, Progress},
    },
    record::Summary,
};

/// Version of the keys and values. An index of another version is rebuilt.
pub const FORMAT: u32 = 1;

/// Key of the [`Mark`].
pub const MARK: &[u8] = b"c";

/// An order of games.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By the time at which the game ended, in milliseconds since the Unix epoch.
    Time,
    /// By the number of positions.
    Length,
    /// By the mean over the positions of the policy surprise (nats); 0 if the game was not measured.
    Surprise,
    /// By time, the games in which this model answered.
    Model(Name),
    /// By time, the games of this actor.
    Actor(Name),
    /// By time, the games with this ending.
    Ending(Name),
}

/// A text in a key: the first 8 bytes of its SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name([u8; 8]);

impl Name {
    /// Returns the name of a text.
    pub fn new(text: &str) -> Self {
        let digest: [u8; 32] = Sha256::digest(text).into();
        let mut name = [0; 8];
        name.copy_from_slice(&digest[..8]);
        Self(name)
    }
}

/// A place in an order: the sort key, then the sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Sort key.
    pub value: u64,
    /// Sequence number.
    pub sequence: u64,
}

impl Order {
    /// Returns the bytes that all keys of this order begin with.
    pub fn prefix(self) -> Vec<u8> {
        let mut prefix = vec![self.kind().0];
        if let Self::Model(Name(name)) | Self::Actor(Name(name)) | Self::Ending(Name(name)) = self {
            prefix.extend_from_slice(&name);
        }
        prefix
    }

    /// Returns the tag that the keys of all orders of this kind begin with, and its number.
    pub fn kind(self) -> (u8, u32) {
        match self {
            Self::Time => (b't', 0),
            Self::Length => (b'l', 1),
            Self::Surprise => (b's', 2),
            Self::Model(_) => (b'm', 3),
            Self::Actor(_) => (b'a', 4),
            Self::Ending(_) => (b'e', 5),
        }
    }

    /// Returns the key of a place in this order.
    pub fn key(self, place: Place) -> Vec<u8> {
        let mut key = self.prefix();
        key.extend_from_slice(&place.value.to_be_bytes());
        key.extend_from_slice(&place.sequence.to_be_bytes());
        key
    }

    /// Reads the place from a key.
    pub fn place(key: &[u8]) -> Option<Place> {
        let (rest, sequence) = key.split_last_chunk::<8>()?;
        let (_, value) = rest.split_last_chunk::<8>()?;
        Some(Place {
            value: u64::from_be_bytes(*value),
            sequence: u64::from_be_bytes(*sequence),
        })
    }

    /// Returns a game's sort key in this order.
    pub fn value(self, game: &Summary) -> u64 {
        match self {
            Self::Length => game.positions.into(),
            Self::Surprise => surprise(game).to_bits().into(),
            Self::Time | Self::Model(_) | Self::Actor(_) | Self::Ending(_) => game.game.finished_at_ms,
        }
    }
}

/// Mean over the positions of the policy surprise, in nats; 0 if it was not measured.
pub fn surprise(game: &Summary) -> f32 {
    let surprises = &game.game.policy_surprises;
    let sum: f64 = surprises.iter().map(|&surprise| f64::from(surprise)).sum();
    // Adding 0 makes a negative zero positive, whose bits sort first.
    (sum / surprises.len().max(1) as f64) as f32 + 0.0
}

/// Returns the distinct keys under which a game stands in the orders.
pub fn order_keys(sequence: u64, game: &Summary) -> BTreeSet<Vec<u8>> {
    let mut orders = vec![
        Order::Time,
        Order::Length,
        Order::Surprise,
        Order::Actor(Name::new(&game.game.actor)),
        Order::Ending(Name::new(&game.game.ending)),
    ];
    let models = game.game.model_versions.iter();
    orders.extend(models.map(|model| Order::Model(Name::new(model))));
    orders
        .into_iter()
        .map(|order| {
            order.key(Place {
                value: order.value(game),
                sequence,
            })
        })
        .collect()
}

/// Returns the key of a game's [`Entry`].
pub fn game_key(sequence: u64) -> [u8; 9] {
    let mut key = [b'g'; 9];
    key[1..].copy_from_slice(&sequence.to_be_bytes());
    key
}

/// Reads the sequence number from the key of an [`Entry`].
pub fn sequence(key: &[u8]) -> Option<u64> {
    let (b'g', rest) = key.split_first()? else {
        return None;
    };
    Some(u64::from_be_bytes(rest.try_into().ok()?))
}

/// The index's record of one sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A whole game.
    Game {
        /// Game id.
        id: Id,
        /// Place in the volume.
        extent: Extent,
        /// Positions with visit counts.
        trainable: u32,
        /// Bytes of the record.
        bytes: u32,
        /// True if the game was deleted.
        is_deleted: bool,
    },
    /// A lost game, with its id if that is known.
    Lost(Option<Id>),
}

impl Entry {
    /// Packs the entry.
    pub fn pack(&self) -> Vec<u8> {
        match self {
            Self::Game {
                id,
                extent,
                trainable,
                bytes,
                is_deleted,
            } => {
                let mut packed = vec![u8::from(*is_deleted)];
                packed.extend_from_slice(id);
                packed.extend_from_slice(&extent.offset.to_be_bytes());
                packed.extend_from_slice(&extent.length.to_be_bytes());
                packed.extend_from_slice(&extent.parts.to_be_bytes());
                packed.extend_from_slice(&trainable.to_be_bytes());
                packed.extend_from_slice(&bytes.to_be_bytes());
                packed
            }
            Self::Lost(id) => {
                let mut packed = vec![2];
                packed.extend(id.iter().flatten());
                packed
            }
        }
    }

    /// Unpacks an entry; `None` if the bytes are none.
    pub fn unpack(packed: &[u8]) -> Option<Self> {
        let (&kind, rest) = packed.split_first()?;
        match (kind, rest) {
            (2, []) => return Some(Self::Lost(None)),
            (2, id) => return Some(Self::Lost(Some(id.try_into().ok()?))),
            (0 | 1, _) => {}
            _ => return None,
        }
        let (id, rest) = rest.split_first_chunk::<16>()?;
        let (offset, rest) = rest.split_first_chunk::<8>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let (parts, rest) = rest.split_first_chunk::<2>()?;
        let (trainable, rest) = rest.split_first_chunk::<4>()?;
        Some(Self::Game {
            id: *id,
            extent: Extent {
                offset: u64::from_be_bytes(*offset),
                length: u32::from_be_bytes(*length),
                parts: u16::from_be_bytes(*parts),
            },
            trainable: u32::from_be_bytes(*trainable),
            bytes: u32::from_be_bytes(rest.try_into().ok()?),
            is_deleted: kind == 1,
        })
    }
}

/// The part of the log that an index covers. Written together with the last entries of that part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// [`FORMAT`].
    pub format: u32,
    /// The volume's first sequence number.
    pub first: u64,
    /// Every sequence number below this one has an [`Entry`].
    pub next: u64,
    /// Position in the volume's file.
    pub offset: u64,
    /// The file's bytes right before that position.
    pub check: Vec<u8>,
    /// The newest sealed ledger, packed.
    pub ledger: Vec<u8>,
    /// Number of lost games.
    pub lost: usize,
    /// Number of deleted games.
    pub deleted: usize,
    /// Number of keys in each order.
    pub keys: KeyCounts,
}

/// Number of keys that the orders hold at least: a lower count proves that keys are missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyCounts {
    /// In each order but that of the models: one key for each game.
    pub games: u64,
    /// In the order of the models: one key for each model of each game.
    pub models: u64,
}

impl Mark {
    /// Marks what a volume holds now.
    pub fn new(first: u64, progress: &Progress, keys: KeyCounts) -> Self {
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
            keys,
        }
    }

    /// The position in the volume's file.
    pub fn position(&self) -> Position {
        Position {
            offset: self.offset,
            check: self.check.clone(),
        }
    }

    /// The newest sealed ledger.
    pub fn ledger(&self) -> Option<Ledger> {
        Ledger::unpack(&self.ledger).map(|(ledger, _)| ledger)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn entries_survive_packing(id: Id, offset: u64, length: u32, parts: u16, trainable: u32, bytes: u32, is_deleted: bool) {
            let game = Entry::Game { id, extent: Extent { offset, length, parts }, trainable, bytes, is_deleted };
            for entry in [game, Entry::Lost(None), Entry::Lost(Some(id))] {
                prop_assert_eq!(Entry::unpack(&entry.pack()), Some(entry));
            }
        }

        #[test]
        fn keys_sort_as_their_places_do(a: (u64, u64), b: (u64, u64)) {
            let place = |(value, sequence)| Place { value, sequence };
            let (left, right) = (Order::Length.key(place(a)), Order::Length.key(place(b)));
            prop_assert_eq!(left.cmp(&right), a.cmp(&b));
            prop_assert_eq!(Order::place(&left), Some(place(a)));
        }

        #[test]
        fn surprises_sort_as_numbers_do(a in 0.0f32..1e9, b in 0.0f32..1e9) {
            prop_assert_eq!(a.to_bits().cmp(&b.to_bits()), a.total_cmp(&b));
        }
    }
}
