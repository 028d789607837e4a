//! Reading games by id, by sequence number and by filter.

use std::collections::HashSet;

use proto::v1::{Game, GameSummary, StoredGame};

use super::Store;
use crate::{
    error::ReadError,
    index::entry,
    log::frame::Id,
    record::{self, filter::Filter},
};

/// Error: a game cannot be returned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GetError {
    /// No game with this id was ever stored, or the store no longer knows the id.
    #[error("no game with this id is known")]
    Unknown,
    /// The game was stored and then retired or deleted.
    #[error("the game with this id was retired from the window, or deleted")]
    Retired,
    /// The game is stored but cannot be read.
    #[error("game {sequence} cannot be read: {reason}")]
    Damaged {
        /// Sequence number.
        sequence: u64,
        /// Description of the damage.
        reason: String,
    },
}

impl Store {
    pub(super) fn read(&self, sequence: u64) -> Result<Game, GetError> {
        self.record(sequence)
            .and_then(|record| decoded_or_damaged(sequence, record::decode(&record)))
    }

    pub(super) fn record(&self, sequence: u64) -> Result<Vec<u8>, GetError> {
        self.shared.volumes.read(sequence).map_err(|error| {
            // The volume may have been removed after the window was read.
            if error == ReadError::Missing && !self.shared.window.read().holds(sequence) {
                GetError::Retired
            } else {
                GetError::Damaged {
                    sequence,
                    reason: error.to_string(),
                }
            }
        })
    }

    /// Returns the game with this id, equal to the message that was stored. Blocks on the disk.
    ///
    /// # Errors
    /// [`GetError`]
    pub fn get(&self, id: &Id) -> Result<Game, GetError> {
        let sequence = self
            .shared
            .known_ids
            .read()
            .sequence(id)
            .ok_or(GetError::Unknown)?;
        if !self.shared.window.read().holds(sequence) {
            return Err(GetError::Retired);
        }
        let read = self.read(sequence);
        if let Err(GetError::Damaged { reason, .. }) = &read {
            self.shared.mark_unreadable(sequence, reason);
        }
        read
    }

    /// Returns the window's games that the filter selects, as sequence numbers and numbers of positions with visit counts. The filter
    /// must not be empty. Blocks on the disk.
    pub fn find(&self, filter: &Filter) -> Vec<(u64, u32)> {
        let slots: Vec<(u64, u32)> = {
            let window = self.shared.window.read();
            let all = window
                .from(0)
                .map(|slot| (slot.sequence, slot.trainable + slot.held_out));
            match filter.ids() {
                [] => all.collect(),
                ids => {
                    let known = self.shared.known_ids.read();
                    let wanted: HashSet<u64> = ids
                        .iter()
                        .filter_map(|id| known.sequence(&id.as_ref().try_into().ok()?))
                        .collect();
                    all.filter(|(sequence, _)| wanted.contains(sequence)).collect()
                }
            }
        };
        slots
            .into_iter()
            .filter(|&(sequence, _)| {
                let summary = self
                    .record(sequence)
                    .ok()
                    .and_then(|record| record::summary(&record).ok());
                summary.is_some_and(|summary| filter.fits(&summary.id, summary.positions, &summary.game))
            })
            .collect()
    }

    /// Returns summaries of at most `limit` games of the window that the filter selects: the oldest ones after sequence number `after` in
    /// ascending order, or with `newest_first` the newest ones before it (0: from the newest) in descending order. Games that cannot be
    /// read are marked as unreadable and left out. Blocks on the disk.
    pub fn list(&self, after: u64, limit: usize, newest_first: bool, filter: &Filter) -> Vec<GameSummary> {
        // With a filter, every game may have to be read.
        let most = if filter.is_empty() { limit } else { usize::MAX };
        let sequences: Vec<u64> = {
            let window = self.shared.window.read();
            let slots = window.from(if newest_first { 0 } else { after.saturating_add(1) });
            if newest_first {
                slots
                    .rev()
                    .map(|slot| slot.sequence)
                    .filter(|&sequence| after == 0 || sequence < after)
                    .take(most)
                    .collect()
            } else {
                slots.map(|slot| slot.sequence).take(most).collect()
            }
        };
        sequences
            .into_iter()
            .filter_map(|sequence| {
                let found = self
                    .record(sequence)
                    .and_then(|record| decoded_or_damaged(sequence, record::summary(&record)));
                match found {
                    Ok(found) => filter
                        .fits(&found.id, found.positions, &found.game)
                        .then(|| summary(sequence, found)),
                    Err(GetError::Damaged { reason, .. }) => {
                        self.shared.mark_unreadable(sequence, &reason);
                        None
                    }
                    // The game has left the window in the meantime.
                    Err(GetError::Retired | GetError::Unknown) => None,
                }
            })
            .take(limit)
            .collect()
    }

    /// Returns the next part of an export: of the next `limit` games from sequence number `from` to `to`, oldest first, those that the
    /// filter selects. With `drawn_from`, only games that batches are drawn from. Returns `None` if there are no more games. Blocks on
    /// the disk.
    pub fn export(
        &self,
        (from, to): (u64, u64),
        limit: usize,
        filter: &Filter,
        drawn_from: bool,
    ) -> Option<Exported> {
        let sequences: Vec<u64> = self
            .shared
            .window
            .read()
            .from(from)
            .filter(|slot| !drawn_from || slot.trainable + slot.held_out > 0)
            .map(|slot| slot.sequence)
            .take_while(|&sequence| sequence <= to)
            .take(limit)
            .collect();
        let mut exported = Exported {
            games: Vec::with_capacity(sequences.len()),
            next: sequences.last()? + 1,
            unreadable: 0,
        };
        for sequence in sequences {
            match self.read(sequence) {
                Ok(game) if !filter.fits(&game.id, game.actions.len() as u32, &game) => {}
                Ok(game) => exported.games.push(StoredGame {
                    sequence,
                    game: Some(game),
                    unreadable: 0,
                }),
                Err(GetError::Damaged { reason, .. }) => {
                    self.shared.mark_unreadable(sequence, &reason);
                    exported.unreadable += 1;
                }
                // The game has left the window in the meantime.
                Err(GetError::Retired | GetError::Unknown) => {}
            }
        }
        Some(exported)
    }
}

/// A part of an export.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exported {
    /// The games, oldest first.
    pub games: Vec<StoredGame>,
    /// First sequence number of the next part.
    pub next: u64,
    /// Number of games that were left out because they cannot be read.
    pub unreadable: u64,
}

fn decoded_or_damaged<T>(sequence: u64, decoded: Result<T, record::DecodeError>) -> Result<T, GetError> {
    decoded.map_err(|error| GetError::Damaged {
        sequence,
        reason: error.to_string(),
    })
}

pub(super) fn summary(sequence: u64, summary: record::Summary) -> GameSummary {
    let surprise = entry::surprise(&summary);
    GameSummary {
        surprise,
        id: summary.id.to_vec().into(),
        sequence,
        game: summary.game.game,
        positions: summary.positions,
        result: summary.game.result,
        ending: summary.game.ending,
        model_versions: summary.game.model_versions,
        finished_at_ms: summary.game.finished_at_ms,
        actor: summary.game.actor,
        build: summary.game.build,
    }
}
