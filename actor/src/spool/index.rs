//! Which games lie where, for which store they are, and which of them are acknowledged. Kept in memory, rebuilt from the
//! files at start.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
};

use crate::GameId;

/// Whose a game is: the number of its store, or of none while that is not known.
pub(super) type Lane = Option<usize>;

/// A game's place in the spool; older games come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub(super) file: u64,
    pub(super) game: usize,
}

/// What settling a game has led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    /// No such game waits.
    Unknown,
    /// Other games of its file still wait.
    FileWaits,
    /// It was the last of its file.
    FileDone { number: u64, is_damaged: bool },
}

#[derive(Debug)]
pub(super) struct Index {
    next_number: u64,
    files: BTreeMap<u64, File>,
    places: HashMap<GameId, Position>,
    /// What waits, by lane and age.
    lanes: BTreeMap<(Lane, Position), GameId>,
    bytes: u64,
}

#[derive(Debug)]
struct File {
    space: u64,
    games: Vec<Entry>,
    waiting: usize,
    is_damaged: bool,
}

#[derive(Debug)]
struct Entry {
    id: GameId,
    range: Range<usize>,
    lane: Lane,
    is_settled: bool,
}

impl Index {
    pub(super) fn new(next_number: u64) -> Self {
        Self {
            next_number,
            files: BTreeMap::new(),
            places: HashMap::new(),
            lanes: BTreeMap::new(),
            bytes: 0,
        }
    }

    /// The number of a new file.
    pub(super) fn take_number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number - 1
    }

    /// Adds a file; a game that another file holds already counts as settled in this one. `lane` says whose each game is.
    /// How many games are new.
    pub(super) fn add(
        &mut self,
        number: u64,
        space: u64,
        games: Vec<(GameId, Range<usize>)>,
        is_damaged: bool,
        lane: impl Fn(GameId) -> Lane,
    ) -> usize {
        let mut waiting = 0;
        let mut entries = Vec::with_capacity(games.len());
        for (at, (id, range)) in games.into_iter().enumerate() {
            let is_settled = self.places.contains_key(&id);
            let lane = lane(id);
            if !is_settled {
                let place = Position {
                    file: number,
                    game: at,
                };
                self.places.insert(id, place);
                self.lanes.insert((lane, place), id);
                waiting += 1;
            }
            entries.push(Entry {
                id,
                range,
                lane,
                is_settled,
            });
        }
        self.bytes += space;
        self.files.insert(
            number,
            File {
                space,
                games: entries,
                waiting,
                is_damaged,
            },
        );
        waiting
    }

    pub(super) fn games(&self) -> u64 {
        self.places.len() as u64
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The oldest game of a lane after `position` that waits.
    pub(super) fn next_after(&self, lane: Lane, position: Option<Position>) -> Option<(Position, GameId)> {
        let first = position.map_or(Position { file: 0, game: 0 }, |last| Position {
            file: last.file,
            game: last.game + 1,
        });
        let mut waiting = self.lanes.range((lane, first)..);
        let (&(found, position), &id) = waiting.next()?;
        (found == lane).then_some((position, id))
    }

    /// Says whose a game is that waits.
    pub(super) fn decide(&mut self, id: GameId, lane: Lane) {
        let Some(&position) = self.places.get(&id) else {
            return;
        };
        let games = self.files.get_mut(&position.file).map(|file| &mut file.games);
        if let Some(entry) = games.and_then(|games| games.get_mut(position.game)) {
            self.lanes.remove(&(entry.lane, position));
            entry.lane = lane;
            self.lanes.insert((lane, position), id);
        }
    }

    pub(super) fn range(&self, position: Position) -> Option<Range<usize>> {
        let entry = self.files.get(&position.file)?.games.get(position.game)?;
        (!entry.is_settled).then(|| entry.range.clone())
    }

    pub(super) fn place(&self, id: GameId) -> Option<(Position, Range<usize>)> {
        let position = *self.places.get(&id)?;
        Some((position, self.range(position)?))
    }

    pub(super) fn settle(&mut self, id: GameId) -> Settled {
        match self.places.get(&id) {
            Some(&position) => self.settle_at(position, false),
            None => Settled::Unknown,
        }
    }

    /// As [`Index::settle`]; the file is not to be removed.
    pub(super) fn settle_damaged(&mut self, position: Position) -> Settled {
        self.settle_at(position, true)
    }

    fn settle_at(&mut self, position: Position, is_damaged: bool) -> Settled {
        let Some(file) = self.files.get_mut(&position.file) else {
            return Settled::Unknown;
        };
        let Some(entry) = file
            .games
            .get_mut(position.game)
            .filter(|entry| !entry.is_settled)
        else {
            return Settled::Unknown;
        };
        entry.is_settled = true;
        self.places.remove(&entry.id);
        self.lanes.remove(&(entry.lane, position));
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
        order_in(index, Some(0))
    }

    fn order_in(index: &Index, lane: Lane) -> Vec<GameId> {
        let mut position = None;
        std::iter::from_fn(|| {
            let (next, id) = index.next_after(lane, position)?;
            position = Some(next);
            Some(id)
        })
        .collect()
    }

    #[test]
    fn games_come_in_the_order_they_were_added_and_files_go_with_their_last() {
        let mut index = Index::new(4);
        let (first, second) = (index.take_number(), index.take_number());
        index.add(second, 30, vec![(id(3), 0..5)], false, |_| Some(0));
        index.add(
            first,
            20,
            vec![(id(1), 0..5), (id(2), 5..9), (id(3), 9..12)],
            false,
            |_| Some(0),
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
                Position {
                    file: second,
                    game: 0
                },
                0..5
            ))
        );
        assert_eq!(
            index.settle_damaged(Position {
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

    #[test]
    fn each_lane_has_its_own_order_and_games_find_theirs_late() {
        let mut index = Index::new(1);
        let (first, second) = (index.take_number(), index.take_number());
        let games = |from: u8| (from..from + 4).map(|number| (id(number), 0..1)).collect();
        index.add(first, 10, games(0), false, |_| None);
        index.add(second, 10, games(4), false, |id| Some(usize::from(id.0[0] % 2)));
        assert_eq!(order_in(&index, None), [id(0), id(1), id(2), id(3)]);
        assert_eq!(order_in(&index, Some(0)), [id(4), id(6)]);
        assert_eq!(order_in(&index, Some(1)), [id(5), id(7)]);
        for number in [3, 0, 1] {
            index.decide(id(number), Some(1));
        }
        index.decide(id(9), Some(1));
        assert_eq!(order_in(&index, None), [id(2)]);
        assert_eq!(order_in(&index, Some(1)), [id(0), id(1), id(3), id(5), id(7)]);
        assert_eq!(index.settle(id(3)), Settled::FileWaits);
        index.decide(id(3), Some(0));
        assert_eq!(order_in(&index, Some(0)), [id(4), id(6)]);
        assert_eq!(order_in(&index, Some(2)), []);
    }
}
