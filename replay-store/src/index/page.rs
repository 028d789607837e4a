//! Pages of games in an order, merged over all volumes.

use std::{collections::VecDeque, ops::Range, sync::Arc};

use super::{
    Index,
    entry::{Order, Place},
    orders::Selection,
    volume::VolumeIndex,
};
use crate::record::filter::Filter;

/// Number of places that are taken from a run at a time.
const BATCH: usize = 32;

/// Length of a [`Cursor`] in bytes.
const CURSOR_BYTES: usize = 18;

/// Version of the cursor's bytes.
const CURSOR_VERSION: u8 = 1;

/// The place after which the next page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Number of the sort order in the wire format. A cursor is valid for this order only.
    pub sort: u8,
    /// Last place of the previous page.
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

    /// Unpacks a cursor. Returns `None` if the bytes are not a cursor of this version.
    pub fn unpack(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; CURSOR_BYTES] = bytes.try_into().ok()?;
        let [CURSOR_VERSION, sort, ..] = *bytes else {
            return None;
        };
        let (rest, sequence) = bytes.split_last_chunk::<8>()?;
        let (_, value) = rest.split_last_chunk::<8>()?;
        let place = Place {
            value: u64::from_be_bytes(*value),
            sequence: u64::from_be_bytes(*sequence),
        };
        Some(Self { sort, place })
    }
}

/// Iterator over the places of an order in all volumes.
pub struct Places {
    order: Order,
    descending: bool,
    runs: Vec<Run>,
}

/// A sorted run of a volume's games.
struct Run {
    volume: Arc<VolumeIndex>,
    selection: Arc<Selection>,
    games: Arc<[u32]>,
    /// Range of `games` that has not been searched yet.
    rest: Range<usize>,
    /// Places that were found and not yet returned.
    places: VecDeque<Place>,
}

impl Index {
    /// Returns the places of an order after `after`, or from the beginning if that is `None`. Games whose models, actor, ending, time or
    /// length do not fit the filter are left out.
    pub fn places(&self, order: Order, after: Option<Place>, descending: bool, filter: &Filter) -> Places {
        let mut runs = Vec::new();
        for volume in self.volumes() {
            let mut orders = volume.orders();
            let Some(selection) = orders.select(filter).map(Arc::new) else {
                continue;
            };
            for games in orders.runs(order) {
                runs.push(Run {
                    rest: orders.rest(&games, order, after, descending),
                    volume: Arc::clone(&volume),
                    selection: Arc::clone(&selection),
                    games,
                    places: VecDeque::new(),
                });
            }
        }
        Places {
            order,
            descending,
            runs,
        }
    }
}

impl Iterator for Places {
    type Item = Place;

    fn next(&mut self) -> Option<Place> {
        let (order, descending) = (self.order, self.descending);
        for run in &mut self.runs {
            if run.places.is_empty() && !run.rest.is_empty() {
                let orders = run.volume.orders();
                run.places = orders.take(
                    &run.games,
                    &mut run.rest,
                    order,
                    descending,
                    &run.selection,
                    BATCH,
                );
            }
        }
        self.runs
            .retain(|run| !(run.places.is_empty() && run.rest.is_empty()));
        let heads = self.runs.iter_mut();
        let first = match descending {
            true => heads.max_by_key(|run| run.places.front().copied()),
            false => heads.min_by_key(|run| run.places.front().copied()),
        };
        first?.places.pop_front()
    }
}
