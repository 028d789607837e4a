//! A chunk: the games of a range of sequence numbers as columns, in one value of the database.
//!
//! ```text
//! value = crc32 of the rest (u32, little-endian) · zstd frame of the columns, a protobuf message ([`Columns`])
//! ```
//! Sequence numbers, times and offsets are stored as differences; each text is stored once for each chunk.

use std::collections::HashMap;

use prost::Message as _;

use super::orders::Listed;
use crate::log::{frame::Id, volume::Extent};

/// Number of games in a full chunk. Sled keeps up to 17 values in a page, and writes a page of more than a quarter of a segment to a
/// separate file; 17 chunks of this size (about 7 KiB each) are smaller.
pub const CHUNK_GAMES: usize = 256;

/// Level of the zstd compression.
const ZSTD_LEVEL: i32 = 3;

/// The index's record of a game.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Game id.
    pub id: Id,
    /// Place in the volume.
    pub extent: Extent,
    /// Number of positions with visit counts.
    pub trainable: u32,
    /// Length of the record in bytes.
    pub bytes: u32,
    /// Id of the game that this one replaces, if any.
    pub replaces: Option<Id>,
    /// Values by which the game is sorted and filtered.
    pub listed: Listed,
}

/// The games with sequence numbers from `begin` (inclusive) to `end` (exclusive).
#[derive(Clone, Debug, PartialEq)]
pub struct Chunk {
    /// First sequence number.
    pub begin: u64,
    /// One more than the last sequence number.
    pub end: u64,
    /// Games, ascending by sequence number.
    pub rows: Vec<Row>,
    /// Lists of texts, which the rows refer to by number.
    pub labels: Vec<Vec<String>>,
}

/// A chunk as a protobuf message.
#[derive(Clone, PartialEq, prost::Message)]
struct Columns {
    #[prost(uint64, tag = "1")]
    begin: u64,
    #[prost(uint64, tag = "2")]
    end: u64,
    #[prost(bytes = "vec", tag = "3")]
    ids: Vec<u8>,
    #[prost(sint64, repeated, tag = "4")]
    sequences: Vec<i64>,
    #[prost(sint64, repeated, tag = "5")]
    offsets: Vec<i64>,
    #[prost(uint32, repeated, tag = "6")]
    lengths: Vec<u32>,
    #[prost(uint32, repeated, tag = "7")]
    parts: Vec<u32>,
    #[prost(uint32, repeated, tag = "8")]
    trainable: Vec<u32>,
    #[prost(uint32, repeated, tag = "9")]
    bytes: Vec<u32>,
    #[prost(sint64, repeated, tag = "10")]
    times: Vec<i64>,
    #[prost(uint32, repeated, tag = "11")]
    positions: Vec<u32>,
    #[prost(float, repeated, tag = "12")]
    surprises: Vec<f32>,
    #[prost(uint32, repeated, tag = "13")]
    models: Vec<u32>,
    #[prost(uint32, repeated, tag = "14")]
    actors: Vec<u32>,
    #[prost(uint32, repeated, tag = "15")]
    endings: Vec<u32>,
    #[prost(message, repeated, tag = "16")]
    labels: Vec<Texts>,
    /// For each game the id of the game that it replaces, or nothing.
    #[prost(bytes = "vec", repeated, tag = "17")]
    replaces: Vec<Vec<u8>>,
}

/// A list of texts.
#[derive(Clone, PartialEq, prost::Message)]
struct Texts {
    #[prost(string, repeated, tag = "1")]
    texts: Vec<String>,
}

impl Chunk {
    /// Packs the games with sequence numbers from `begin` to `end` (exclusive). The labels of `rows` are indices into `labels`.
    ///
    /// # Errors
    /// The error of zstd.
    pub fn pack(begin: u64, end: u64, rows: &[Row], labels: &[Vec<String>]) -> std::io::Result<Vec<u8>> {
        let mut columns = Columns {
            begin,
            end,
            ..Columns::default()
        };
        let mut numbers = HashMap::new();
        let mut before = Before::new(begin);
        for row in rows {
            let listed = row.listed;
            columns.ids.extend_from_slice(&row.id);
            columns
                .sequences
                .push(difference(listed.sequence, before.sequence));
            columns.offsets.push(difference(row.extent.offset, before.end));
            columns.lengths.push(row.extent.length);
            columns.parts.push(row.extent.parts.into());
            columns.trainable.push(row.trainable);
            columns.bytes.push(row.bytes);
            columns
                .replaces
                .push(row.replaces.map_or_else(Vec::new, |id| id.to_vec()));
            columns.times.push(difference(listed.finished_at_ms, before.time));
            columns.positions.push(listed.positions);
            columns.surprises.push(listed.surprise);
            let mut local = |label: u32| {
                *numbers.entry(label).or_insert_with(|| {
                    let texts = labels.get(label as usize).cloned().unwrap_or_default();
                    columns.labels.push(Texts { texts });
                    columns.labels.len() as u32 - 1
                })
            };
            let [models, actor, ending] = listed.labels.map(&mut local);
            columns.models.push(models);
            columns.actors.push(actor);
            columns.endings.push(ending);
            before.follow(row);
        }
        checked(&columns.encode_to_vec())
    }

    /// Unpacks a chunk. Returns `None` if the bytes are not a chunk.
    pub fn unpack(value: &[u8]) -> Option<Self> {
        let columns = Columns::decode(unchecked(value)?.as_slice()).ok()?;
        let mut rows = Vec::with_capacity(columns.sequences.len());
        let mut before = Before::new(columns.begin);
        for (at, &gap) in columns.sequences.iter().enumerate() {
            let labels = [
                *columns.models.get(at)?,
                *columns.actors.get(at)?,
                *columns.endings.get(at)?,
            ];
            if labels.iter().any(|&label| label as usize >= columns.labels.len()) {
                return None;
            }
            let row = Row {
                id: columns.ids.get(16 * at..16 * at + 16)?.try_into().ok()?,
                extent: Extent {
                    offset: before.end.wrapping_add_signed(*columns.offsets.get(at)?),
                    length: *columns.lengths.get(at)?,
                    parts: u16::try_from(*columns.parts.get(at)?).ok()?,
                },
                trainable: *columns.trainable.get(at)?,
                bytes: *columns.bytes.get(at)?,
                replaces: columns.replaces.get(at)?.as_slice().try_into().ok(),
                listed: Listed {
                    sequence: before.sequence.wrapping_add_signed(gap),
                    finished_at_ms: before.time.wrapping_add_signed(*columns.times.get(at)?),
                    positions: *columns.positions.get(at)?,
                    surprise: *columns.surprises.get(at)?,
                    labels,
                },
            };
            let sequence = row.listed.sequence;
            let is_ascending = at == 0 || sequence > before.sequence;
            if !is_ascending || !(columns.begin..columns.end).contains(&sequence) {
                return None;
            }
            before.follow(&row);
            rows.push(row);
        }
        Some(Self {
            begin: columns.begin,
            end: columns.end,
            rows,
            labels: columns.labels.into_iter().map(|label| label.texts).collect(),
        })
    }
}

/// Values of the previous game, from which the differences are taken.
struct Before {
    sequence: u64,
    end: u64,
    time: u64,
}

impl Before {
    fn new(begin: u64) -> Self {
        Self {
            sequence: begin,
            end: 0,
            time: 0,
        }
    }

    fn follow(&mut self, row: &Row) {
        self.sequence = row.listed.sequence;
        self.end = row.extent.offset.wrapping_add(row.extent.length.into());
        self.time = row.listed.finished_at_ms;
    }
}

fn difference(value: u64, before: u64) -> i64 {
    value.wrapping_sub(before) as i64
}

/// Compresses bytes and adds a checksum.
///
/// # Errors
/// The error of zstd.
pub fn checked(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let packed = zstd::bulk::compress(bytes, ZSTD_LEVEL)?;
    let mut value = crc32fast::hash(&packed).to_le_bytes().to_vec();
    value.extend_from_slice(&packed);
    Ok(value)
}

/// Returns the bytes that were given to [`checked`]; `None` if the checksum is wrong.
pub fn unchecked(value: &[u8]) -> Option<Vec<u8>> {
    let (crc, packed) = value.split_first_chunk::<4>()?;
    if crc32fast::hash(packed) != u32::from_le_bytes(*crc) {
        return None;
    }
    zstd::stream::decode_all(packed).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn chunks_come_back_and_damage_is_found(
            begin in 0u64..1 << 40,
            games in prop::collection::vec((1u64..5, any::<(Id, u64, u32, u16)>(), any::<(u32, u32, Option<Id>)>(), any::<(u64, u32)>(), 0f32..9.0, any::<[bool; 3]>()), 0..40),
            at: prop::sample::Index,
            bit in 0u8..8,
        ) {
            let labels = vec![vec!["a".to_owned(), "b".to_owned()], vec![]];
            let mut end = begin;
            let rows: Vec<Row> = games.into_iter().map(|(gap, (id, offset, length, parts), (trainable, bytes, replaces), (finished_at_ms, positions), surprise, labels)| {
                end += gap;
                let listed = Listed { sequence: end - 1, finished_at_ms, positions, surprise, labels: labels.map(u32::from) };
                Row { id, extent: Extent { offset, length, parts }, trainable, bytes, replaces, listed }
            }).collect();
            let mut value = Chunk::pack(begin, end, &rows, &labels).unwrap();
            let found = Chunk::unpack(&value).unwrap();
            prop_assert_eq!((found.begin, found.end, found.rows.len()), (begin, end, rows.len()));
            for (found_row, row) in found.rows.iter().zip(&rows) {
                let texts = found_row.listed.labels.map(|label| found.labels[label as usize].clone());
                prop_assert_eq!(texts, row.listed.labels.map(|label| labels[label as usize].clone()));
                let listed = Listed { labels: row.listed.labels, ..found_row.listed };
                prop_assert_eq!(Row { listed, ..*found_row }, *row);
            }
            let at = at.index(value.len());
            value[at] ^= 1 << bit;
            prop_assert_eq!(Chunk::unpack(&value), None);
        }
    }
}
