//! The catalog: what lists of games are sorted and filtered by, in memory. Memory: about 40 bytes for each game.
//!
//! A page is found by one pass over all games and a sort of its own ones, which takes milliseconds for a hundred thousand games.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

use proto::v1::{Game, GameSort};

/// Texts by which a game is filtered. Games with equal texts share them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Texts {
    /// Versions of the models.
    pub models: Vec<String>,
    /// Name of the actor.
    pub actor: String,
    /// Ending of the game.
    pub ending: String,
}

/// Values by which a game is sorted and filtered.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Time at which the game ended, in milliseconds since the Unix epoch.
    pub finished_at_ms: u64,
    /// Number of positions.
    pub positions: u32,
    /// Mean policy surprise of the positions, in nats; 0 if it was not measured.
    pub surprise: f32,
    /// Texts.
    pub texts: Arc<Texts>,
}

impl Listed {
    fn place(&self, sort: GameSort, sequence: u64) -> Place {
        let value = match sort {
            GameSort::Sequence => 0,
            GameSort::Time => self.finished_at_ms,
            GameSort::Length => self.positions.into(),
            // The bits of numbers that are not negative sort as the numbers do.
            GameSort::Surprise => self.surprise.to_bits().into(),
        };
        Place { value, sequence }
    }
}

/// The different texts of all games.
#[derive(Clone, Debug, Default)]
pub struct Labels(HashSet<Arc<Texts>>);

impl Labels {
    /// Returns the shared copy of these texts.
    pub fn shared(&mut self, texts: Texts) -> Arc<Texts> {
        if let Some(known) = self.0.get(&texts) {
            return Arc::clone(known);
        }
        let texts = Arc::new(texts);
        self.0.insert(Arc::clone(&texts));
        texts
    }

    /// Returns the values of a game with this number of positions. Fields of single positions other than surprises are not read.
    pub fn listed(&mut self, game: &Game, positions: u32) -> Listed {
        Listed {
            finished_at_ms: game.finished_at_ms,
            positions,
            surprise: surprise(game),
            texts: self.shared(Texts {
                models: game.model_versions.clone(),
                actor: game.actor.clone(),
                ending: game.ending.clone(),
            }),
        }
    }
}

/// Returns the mean of the policy surprise over the positions, in nats; 0 if it was not measured.
pub fn surprise(game: &Game) -> f32 {
    let surprises = &game.policy_surprises;
    let sum: f64 = surprises.iter().map(|&surprise| f64::from(surprise)).sum();
    // Adding 0 turns a negative zero into a positive zero, which has the lowest bits.
    (sum / surprises.len().max(1) as f64) as f32 + 0.0
}

/// A place in an order: the sort key, then the sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Sort key.
    pub value: u64,
    /// Sequence number.
    pub sequence: u64,
}

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

/// The games of all volumes, ascending by sequence number.
#[derive(Debug, Default)]
pub struct Catalog {
    labels: Labels,
    games: VecDeque<(u64, Listed)>,
}

impl Catalog {
    /// Returns an empty catalog that shares the texts in `labels`.
    pub fn new(labels: Labels) -> Self {
        Self {
            labels,
            games: VecDeque::new(),
        }
    }

    /// Adds a game. Sequence numbers must ascend.
    pub fn push(&mut self, sequence: u64, mut listed: Listed) {
        match self.labels.0.get(&listed.texts) {
            Some(known) => listed.texts = Arc::clone(known),
            None => {
                self.labels.0.insert(Arc::clone(&listed.texts));
            }
        }
        self.games.push_back((sequence, listed));
    }

    /// Removes the games below a sequence number.
    pub fn remove_below(&mut self, first: u64) {
        let kept = self.games.partition_point(|(sequence, _)| *sequence < first);
        self.games.drain(..kept);
        self.labels.0.retain(|texts| Arc::strong_count(texts) > 1);
    }

    /// Returns the first `count` places of an order after `after`, or from the beginning if that is `None`, of the games that `fits`
    /// selects.
    pub fn places(
        &self,
        sort: GameSort,
        after: Option<Place>,
        descending: bool,
        count: usize,
        fits: impl Fn(u64, &Listed) -> bool,
    ) -> Vec<Place> {
        let is_later = |place: &Place| match after {
            Some(after) if descending => *place < after,
            Some(after) => *place > after,
            None => true,
        };
        let games = self.games.iter();
        let mut places: Vec<Place> = games
            .filter(|(sequence, listed)| fits(*sequence, listed))
            .map(|(sequence, listed)| listed.place(sort, *sequence))
            .filter(is_later)
            .collect();
        let compare = |a: &Place, b: &Place| match descending {
            true => b.cmp(a),
            false => a.cmp(b),
        };
        if places.len() > count {
            places.select_nth_unstable_by(count, compare);
            places.truncate(count);
        }
        places.sort_unstable_by(compare);
        places
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn surprises_sort_as_numbers_do(a in 0.0f32..1e9, b in 0.0f32..1e9) {
            prop_assert_eq!(a.to_bits().cmp(&b.to_bits()), a.total_cmp(&b));
        }

        #[test]
        fn cursors_come_back(sort: u8, value: u64, sequence: u64) {
            let cursor = Cursor { sort, place: Place { value, sequence } };
            prop_assert_eq!(Cursor::unpack(&cursor.pack()), Some(cursor));
        }
    }
}
