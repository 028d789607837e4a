//! Pages of games in an order, merged over all volumes.

use std::collections::VecDeque;

use super::{
    Index, IndexError,
    entry::{Order, Place},
    volume::VolumeIndex,
};

/// Places that are read from a volume at a time.
const CHUNK: usize = 128;

/// Length of a [`Cursor`] in bytes.
const CURSOR_BYTES: usize = 18;

/// Version of the cursor's bytes.
const CURSOR_VERSION: u8 = 1;

/// The place after which the next page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The sort order, as the wire numbers it: a cursor is valid for the order that it was made in.
    pub sort: u8,
    /// Last place of the page before.
    pub place: Place,
}

impl Cursor {
    /// Packs the cursor.
    pub fn pack(self) -> Vec<u8> {
        let mut bytes = vec![CURSOR_VERSION, self.sort];
        bytes.extend_from_slice(&self.place.value.to_be_bytes());
        bytes.extend_from_slice(&self.place.sequence.to_be_bytes());
        bytes
    }

    /// Unpacks a cursor; `None` if the bytes are none of this version.
    pub fn unpack(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; CURSOR_BYTES] = bytes.try_into().ok()?;
        let [CURSOR_VERSION, sort, ..] = *bytes else {
            return None;
        };
        Some(Self {
            sort,
            place: Order::place(bytes)?,
        })
    }
}

/// The places of an order over all volumes, one after the other.
pub struct Places<'a> {
    index: &'a Index,
    order: Order,
    descending: bool,
    volumes: Vec<Source>,
}

/// One volume's places that are read and not yet given out.
struct Source {
    volume: std::sync::Arc<VolumeIndex>,
    places: VecDeque<Place>,
    last: Option<Place>,
    has_ended: bool,
}

impl Index {
    /// Returns the places of an order from after `after` on, or from its beginning.
    pub fn places(&self, order: Order, after: Option<Place>, descending: bool) -> Places<'_> {
        let sources = self.volumes().into_iter().map(|volume| Source {
            volume,
            places: VecDeque::new(),
            last: after,
            has_ended: false,
        });
        Places {
            index: self,
            order,
            descending,
            volumes: sources.collect(),
        }
    }
}

impl Iterator for Places<'_> {
    type Item = Result<Place, IndexError>;

    /// The next place. An error discards the index of the volume that failed, which is rebuilt.
    fn next(&mut self) -> Option<Self::Item> {
        for source in &mut self.volumes {
            if source.places.is_empty() && !source.has_ended {
                match source
                    .volume
                    .places(self.order, source.last, self.descending, CHUNK)
                {
                    Ok(places) => {
                        source.has_ended = places.len() < CHUNK;
                        source.last = places.last().copied().or(source.last);
                        source.places = places.into();
                    }
                    Err(error) => {
                        self.index.discard_damaged(&source.volume);
                        return Some(Err(error));
                    }
                }
            }
        }
        let heads = self.volumes.iter_mut().filter(|source| !source.places.is_empty());
        let first = match self.descending {
            true => heads.max_by_key(|source| source.places.front().copied()),
            false => heads.min_by_key(|source| source.places.front().copied()),
        };
        first?.places.pop_front().map(Ok)
    }
}
