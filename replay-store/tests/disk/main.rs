//! The store on a disk that loses power, reports errors or is full.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../common/mod.rs"]
mod common;
mod simulated;

mod archiving;
mod descriptors;
mod errors;
mod full;
mod full_start;
mod power;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::Path,
    sync::Arc,
};

use proto::v1::Game;
use replay_store::{
    error::OpenError,
    log::room::{Probe, Space},
    settings::Settings,
    store::append::Verdict,
    store::{IndexUse, Opening, SampleError, Store},
};
use simulated::Simulated;
use tokio::runtime::Runtime;

/// A probe that always reports free space.
struct NoLimit;

impl Probe for NoLimit {
    fn space(&mut self) -> io::Result<Space> {
        Ok(Space {
            used: 0,
            free: 1 << 40,
        })
    }
}

fn settings() -> Settings {
    let mut settings = common::settings(Path::new("run"), 300);
    settings.cache_bytes = 0;
    settings
}

fn opening(disk: &Simulated) -> Opening {
    Opening {
        files: Arc::new(disk.clone()),
        probe: Box::new(NoLimit),
        index: IndexUse::Absent,
        ..Opening::of(Path::new("run"))
    }
}

fn open(disk: &Simulated) -> Result<Store, OpenError> {
    Store::open_with(settings(), opening(disk))
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// Returns game `number`, which is short, so that a test needs little time for many commits.
fn game(number: u64) -> Game {
    common::synthetic::game(number, 4 + (number % 13) as usize)
}

/// Games that were sent to a store, and the acknowledgements.
#[derive(Debug, Default)]
struct Story {
    next: u64,
    sent: BTreeSet<u64>,
    acknowledged: BTreeSet<u64>,
    refused: BTreeSet<u64>,
    sampled: u64,
    failed: bool,
}

impl Story {
    /// Appends groups of games and samples in between, until `groups` are done or the store fails.
    fn live(&mut self, store: &Store, runtime: &Runtime, groups: u64) {
        for group in 0..groups {
            let numbers: Vec<u64> = (0..3).map(|at| self.next + at).collect();
            self.next += 3;
            self.sent.extend(&numbers);
            let games: Vec<Game> = numbers.iter().map(|&number| game(number)).collect();
            let verdicts = runtime.block_on(futures::future::join_all(
                games.iter().map(|game| store.put(game)),
            ));
            for (&number, verdict) in numbers.iter().zip(verdicts) {
                match verdict {
                    Ok(Verdict::Stored) => {
                        self.acknowledged.insert(number);
                    }
                    Ok(Verdict::Refused { retry: true, .. }) => {
                        self.refused.insert(number);
                    }
                    Ok(other) => panic!("{other:?}"),
                    Err(_) => self.failed = true,
                }
            }
            if self.failed {
                return;
            }
            match store.batch(7, group, 40) {
                Ok(_) => self.sampled += 40,
                Err(SampleError::Failed(_)) => {
                    self.failed = true;
                    return;
                }
                Err(SampleError::Empty | SampleError::Full | SampleError::Held | SampleError::Unreadable) => {
                }
            }
        }
    }

    /// Checks that all acknowledged games are stored and that every stored game was sent.
    fn holds(&self, store: &Store, context: &str) {
        assert_eq!(store.losses(), [], "{context}: lost");
        let stats = store.stats();
        assert_eq!(stats.damaged_games, 0, "{context}");
        let by_id: BTreeMap<Vec<u8>, u64> = self
            .sent
            .iter()
            .map(|&number| (game(number).id.to_vec(), number))
            .collect();
        let mut from = 0;
        let mut found = BTreeSet::new();
        while let Some(exported) = store.export((from, u64::MAX), 64, &Default::default()) {
            from = exported.next;
            for stored in exported.games {
                let stored = stored.game.unwrap();
                let number = by_id[stored.id.as_ref()];
                assert_eq!(stored, game(number), "{context}");
                assert!(found.insert(number), "{context}: game {number} is there twice");
            }
        }
        // The oldest games have left the window.
        let oldest = found.first().copied().unwrap_or(u64::MAX);
        for number in self.acknowledged.iter().filter(|&&number| number >= oldest) {
            assert!(
                found.contains(number),
                "{context}: game {number} was acknowledged and is gone"
            );
        }
        assert!(found.len() as u64 <= stats.games_inserted, "{context}");
        assert!(
            stats.games_inserted >= self.acknowledged.len() as u64,
            "{context}"
        );
        assert!(stats.games_inserted <= self.sent.len() as u64, "{context}");
        assert!(!self.acknowledged.is_empty() || found.len() <= 3, "{context}");
        assert!(
            stats.positions_sampled >= self.sampled,
            "{context}: {} samples are counted, {} were taken",
            stats.positions_sampled,
            self.sampled
        );
        // Each time that the store was killed, the count may be too high by 1/128.
        assert!(
            stats.positions_sampled <= self.sampled + self.sampled / 8 + 100,
            "{context}"
        );
    }
}
