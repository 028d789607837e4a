//! Reading games by id, by sequence number and by filter.

use std::collections::HashSet;

use bytes::Bytes;
use proto::v1::{Game, GameSort, GameSummary, StoredGame};

use super::{Store, listing::Listing};
use crate::{
    error::ReadError,
    log::frame::Id,
    record::{self, filter::Filter},
    window::catalog::{self, Place},
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
        let record = self.record(sequence)?;
        record::decode(&record).map_err(|error| GetError::Damaged {
            sequence,
            reason: error.to_string(),
        })
    }

    /// Returns the sequence numbers of the known games among these ids.
    pub(super) fn known(&self, ids: &[Bytes]) -> HashSet<u64> {
        let known = self.shared.known_ids.read();
        ids.iter()
            .filter_map(|id| known.get(<&Id>::try_from(id.as_ref()).ok()?).copied())
            .collect()
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
        let sequence = self.shared.known_ids.read().get(id).copied();
        let sequence = sequence.ok_or(GetError::Unknown)?;
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
        let wanted = match filter.ids() {
            [] => None,
            ids => Some(self.known(ids)),
        };
        let slots: Vec<(u64, u32)> = {
            let window = self.shared.window.read();
            window
                .from(0)
                .filter(|slot| {
                    wanted
                        .as_ref()
                        .is_none_or(|wanted| wanted.contains(&slot.sequence))
                })
                .map(|slot| (slot.sequence, slot.trainable + slot.held_out))
                .collect()
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
        let mut listing = Listing {
            sort: GameSort::Sequence,
            descending: newest_first,
            limit,
            after: (after > 0).then_some(Place {
                value: 0,
                sequence: after,
            }),
        };
        let mut games = Vec::new();
        loop {
            let page = self.page(&listing, filter);
            games.extend(page.games);
            listing.limit = limit - games.len();
            match page.next {
                Some(next) if listing.limit > 0 => listing.after = Some(next.place),
                _ => return games,
            }
        }
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

pub(super) fn summary(sequence: u64, summary: record::Summary) -> GameSummary {
    GameSummary {
        surprise: catalog::surprise(&summary.game),
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
