//! The games of a volume in memory, sorted on demand.
//!
//! Games are sorted in runs of [`RUN_GAMES`], and a page merges the runs. After a new game only the last run is sorted again, so that a
//! page costs little while games are appended. Memory: 40 bytes for each game, and 4 more for each of the three orders that was
//! requested.

use std::{
    collections::{HashMap, VecDeque},
    ops::Range,
    sync::Arc,
};

use super::entry::{ORDERS, Order, Place};
use crate::record::{Summary, filter::Filter};

/// Number of games in a run, which are sorted together.
pub const RUN_GAMES: usize = 8192;

/// Values by which a game is sorted and filtered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Listed {
    /// Sequence number.
    pub sequence: u64,
    /// Time at which the game ended, in milliseconds since the Unix epoch.
    pub finished_at_ms: u64,
    /// Number of positions.
    pub positions: u32,
    /// Mean policy surprise, in nats.
    pub surprise: f32,
    /// Indices of the lists of its models, its actor and its ending, in this order.
    pub labels: [u32; 3],
}

impl Listed {
    fn place(&self, order: Order) -> Place {
        let value = match order {
            Order::Time => self.finished_at_ms,
            Order::Length => self.positions.into(),
            Order::Surprise => self.surprise.to_bits().into(),
        };
        Place {
            value,
            sequence: self.sequence,
        }
    }
}

/// Lists of texts, each with an index.
#[derive(Debug, Default)]
pub struct Labels {
    numbers: HashMap<Vec<String>, u32>,
    texts: Vec<Vec<String>>,
}

impl Labels {
    /// Returns the index of a list of texts, which is added if it is new.
    pub fn number(&mut self, texts: &[String]) -> u32 {
        if let Some(number) = self.numbers.get(texts) {
            return *number;
        }
        let number = self.texts.len() as u32;
        self.numbers.insert(texts.to_vec(), number);
        self.texts.push(texts.to_vec());
        number
    }

    /// Returns the indices of a game's models, actor and ending.
    pub fn of(&mut self, game: &Summary) -> [u32; 3] {
        let game = &game.game;
        [
            self.number(&game.model_versions),
            self.number(std::slice::from_ref(&game.actor)),
            self.number(std::slice::from_ref(&game.ending)),
        ]
    }

    /// Returns all lists in the order of their indices.
    pub fn texts(&self) -> &[Vec<String>] {
        &self.texts
    }
}

/// The games of a volume.
#[derive(Debug, Default)]
pub struct Orders {
    /// Texts of the games.
    pub labels: Labels,
    games: Vec<Listed>,
    /// Sorted runs of each order, as indices into `games`.
    sorted: [Vec<Arc<[u32]>>; ORDERS],
}

/// The part of a filter that can be decided without a game's record.
#[derive(Clone, Debug)]
pub struct Selection {
    /// For models, actor and ending: true for each index of a list that the filter selects; `None` if it selects all.
    labels: [Option<Vec<bool>>; 3],
    positions: (u64, u64),
    finished: (u64, u64),
}

impl Selection {
    fn fits(&self, game: &Listed) -> bool {
        let within = |(low, high): (u64, u64), value: u64| (low..=high).contains(&value);
        within(self.positions, game.positions.into())
            && within(self.finished, game.finished_at_ms)
            && self.labels.iter().zip(game.labels).all(|(fitting, label)| {
                fitting
                    .as_ref()
                    .is_none_or(|fitting| fitting.get(label as usize).is_some_and(|&fits| fits))
            })
    }
}

impl Orders {
    /// Adds a game. Sequence numbers must ascend.
    pub fn add(&mut self, game: Listed) {
        self.games.push(game);
    }

    /// Returns the number of games.
    pub fn count(&self) -> usize {
        self.games.len()
    }

    /// Resolves a filter against this volume's texts. Returns `None` if the filter selects no game of the volume.
    pub fn select(&self, filter: &Filter) -> Option<Selection> {
        let mut is_possible = true;
        let labels = [filter.models(), filter.actors(), filter.endings()].map(|wanted| {
            if wanted.is_empty() {
                return None;
            }
            let texts = self.labels.texts.iter();
            let fitting: Vec<bool> = texts
                .map(|texts| texts.iter().any(|text| wanted.contains(text)))
                .collect();
            is_possible &= fitting.contains(&true);
            Some(fitting)
        });
        is_possible.then_some(Selection {
            labels,
            positions: filter.positions(),
            finished: filter.finished(),
        })
    }

    /// Returns the sorted runs of an order, after sorting the runs that have grown.
    pub fn runs(&mut self, order: Order) -> Vec<Arc<[u32]>> {
        let Some(sorted) = self.sorted.get_mut(order as usize) else {
            return Vec::new();
        };
        for (number, games) in self.games.chunks(RUN_GAMES).enumerate() {
            if sorted.get(number).is_some_and(|run| run.len() == games.len()) {
                continue;
            }
            let begin = number * RUN_GAMES;
            let mut keyed: Vec<(u64, u32)> = (begin..)
                .zip(games)
                .map(|(index, game)| (game.place(order).value, index as u32))
                .collect();
            keyed.sort_unstable();
            sorted.truncate(number);
            sorted.push(keyed.into_iter().map(|(_, index)| index).collect());
        }
        sorted.clone()
    }

    /// Returns the part of a run that lies after a place.
    pub fn rest(&self, run: &[u32], order: Order, after: Option<Place>, descending: bool) -> Range<usize> {
        let Some(after) = after else {
            return 0..run.len();
        };
        let place = |index: &u32| self.games.get(*index as usize).map(|game| game.place(order));
        match descending {
            true => 0..run.partition_point(|index| place(index) < Some(after)),
            false => run.partition_point(|index| place(index) <= Some(after))..run.len(),
        }
    }

    /// Takes at most `limit` places of selected games from a run's `rest`.
    pub fn take(
        &self,
        run: &[u32],
        rest: &mut Range<usize>,
        order: Order,
        descending: bool,
        selection: &Selection,
        limit: usize,
    ) -> VecDeque<Place> {
        let mut places = VecDeque::new();
        while places.len() < limit {
            let next = match descending {
                true => rest.next_back(),
                false => rest.next(),
            };
            let Some(at) = next else { break };
            let index = run.get(at).map(|&index| index as usize);
            if let Some(game) = index.and_then(|index| self.games.get(index))
                && selection.fits(game)
            {
                places.push_back(game.place(order));
            }
        }
        places
    }
}
