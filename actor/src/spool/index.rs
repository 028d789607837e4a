//! Index of the spool: position of each game and acknowledgements. It is kept in memory and rebuilt from the files at start.

use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    ops::{Bound, Range},
};

use crate::GameId;

/// Position of a game in the spool; older games come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpoolPosition {
    pub(super) file: u64,
    pub(super) game: usize,
}

/// Result of settling a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    /// No such game is waiting.
    Unknown,
    /// Other games of the file are still waiting.
    FileWaits,
    /// The game was the last one of its file.
    FileDone { number: u64, is_damaged: bool },
}

#[derive(Debug, Default)]
pub(super) struct Index {
    next_number: u64,
    files: HashMap<u64, File>,
    /// Games without acknowledgement and their ranges in their files, oldest first.
    waiting: BTreeMap<SpoolPosition, (GameId, Range<usize>)>,
    /// Positions of these games.
    places: HashMap<GameId, SpoolPosition>,
    bytes: u64,
}

#[derive(Debug)]
struct File {
    space: u64,
    /// Number of its games that wait.
    waiting: usize,
    is_damaged: bool,
}

impl Index {
    pub(super) fn new(next_number: u64) -> Self {
        Self {
            next_number,
            ..Self::default()
        }
    }

    /// Returns the number of a new file.
    pub(super) fn take_number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number - 1
    }

    /// Adds a file and returns the number of new games. A game that another file already contains is left out.
    pub(super) fn add(
        &mut self,
        file: u64,
        space: u64,
        games: Vec<(GameId, Range<usize>)>,
        is_damaged: bool,
    ) -> usize {
        let mut waiting = 0;
        for (game, (id, range)) in games.into_iter().enumerate() {
            if let Entry::Vacant(place) = self.places.entry(id) {
                let position = *place.insert(SpoolPosition { file, game });
                self.waiting.insert(position, (id, range));
                waiting += 1;
            }
        }
        self.bytes += space;
        let added = File {
            space,
            waiting,
            is_damaged,
        };
        self.files.insert(file, added);
        waiting
    }

    pub(super) fn games(&self) -> u64 {
        self.waiting.len() as u64
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the oldest waiting game after `position`.
    pub(super) fn next_after(&self, position: Option<SpoolPosition>) -> Option<(SpoolPosition, GameId)> {
        let after = position.map_or(Bound::Unbounded, Bound::Excluded);
        let (&position, &(id, _)) = self.waiting.range((after, Bound::Unbounded)).next()?;
        Some((position, id))
    }

    pub(super) fn range(&self, position: SpoolPosition) -> Option<Range<usize>> {
        self.waiting.get(&position).map(|(_, range)| range.clone())
    }

    pub(super) fn place(&self, id: GameId) -> Option<(SpoolPosition, Range<usize>)> {
        let position = *self.places.get(&id)?;
        Some((position, self.range(position)?))
    }

    pub(super) fn settle(&mut self, id: GameId) -> Settled {
        match self.places.get(&id) {
            Some(&position) => self.settle_at(position, false),
            None => Settled::Unknown,
        }
    }

    /// Settles a damaged game like [`Index::settle`], but keeps its file.
    pub(super) fn settle_damaged(&mut self, position: SpoolPosition) -> Settled {
        self.settle_at(position, true)
    }

    fn settle_at(&mut self, position: SpoolPosition, is_damaged: bool) -> Settled {
        let settled = self.waiting.remove(&position);
        let (Some((id, _)), Some(file)) = (settled, self.files.get_mut(&position.file)) else {
            return Settled::Unknown;
        };
        self.places.remove(&id);
        file.waiting -= 1;
        file.is_damaged |= is_damaged;
        if file.waiting > 0 {
            return Settled::FileWaits;
        }
        let settled = Settled::FileDone {
            number: position.file,
            is_damaged: file.is_damaged,
        };
        self.bytes -= file.space;
        self.files.remove(&position.file);
        settled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u8) -> GameId {
        GameId([number; 16])
    }

    fn order(index: &Index) -> Vec<GameId> {
        let mut position = None;
        std::iter::from_fn(|| {
            let (next, id) = index.next_after(position)?;
            position = Some(next);
            Some(id)
        })
        .collect()
    }

    #[test]
    fn games_come_in_the_order_added_and_a_file_is_done_with_its_last_game() {
        let mut index = Index::new(4);
        let (first, second) = (index.take_number(), index.take_number());
        index.add(second, 30, vec![(id(3), 0..5)], false);
        index.add(
            first,
            20,
            vec![(id(1), 0..5), (id(2), 5..9), (id(3), 9..12)],
            false,
        );
        assert_eq!(order(&index), [id(1), id(2), id(3)]);
        assert_eq!((index.games(), index.bytes()), (3, 50));
        assert_eq!(index.settle(id(1)), Settled::FileWaits);
        assert_eq!(index.settle(id(1)), Settled::Unknown);
        assert_eq!(order(&index), [id(2), id(3)]);
        assert_eq!(
            index.settle(id(2)),
            Settled::FileDone {
                number: first,
                is_damaged: false
            }
        );
        assert_eq!(
            index.place(id(3)),
            Some((
                SpoolPosition {
                    file: second,
                    game: 0
                },
                0..5
            ))
        );
        assert_eq!(
            index.settle_damaged(SpoolPosition {
                file: second,
                game: 0
            }),
            Settled::FileDone {
                number: second,
                is_damaged: true
            }
        );
        assert_eq!((index.games(), index.bytes()), (0, 0));
        assert_eq!(order(&index), []);
    }
}
