//! Reading games by id, by sequence number and by filter, and pages of games in an order. The catalog names the candidates of a page;
//! the record of each game decides.

use std::collections::HashSet;

use bytes::Bytes;
use prost::Message as _;
use proto::v1::{Game, GameSort, GameSummary, StoredGame};

use super::Store;
use crate::{
    error::ReadError,
    log::frame::Id,
    record::{self, Summary, filter::Filter},
    window::catalog::{self, Cursor, Listed, Place},
};

/// Maximum number of candidates of one page. It limits the time of a request whose filter selects few games.
const MAX_CANDIDATES: usize = 20_000;

/// Number of candidates that are taken from the catalog at a time.
const BATCH: usize = 1024;

/// Length of the messages of games after which a step of an export ends, in bytes.
pub const EXPORT_BYTES: usize = 1 << 20;

/// A request for a page.
#[derive(Clone, Copy, Debug)]
pub struct Listing {
    /// Order of the games.
    pub sort: GameSort,
    /// True to begin with the newest, longest or most surprising games.
    pub descending: bool,
    /// Maximum number of games of the page.
    pub limit: usize,
    /// End of the previous page; `None` for the first page.
    pub after: Option<Place>,
}

/// A page of games.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// The games, in the requested order. There may be fewer than requested, or none, before the last page.
    pub games: Vec<GameSummary>,
    /// Beginning of the next page; `None` after the last page.
    pub next: Option<Cursor>,
    /// Number of games that were left out because they cannot be read.
    pub unreadable: u32,
}

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

    /// Returns a function that tells whether the ids of a filter allow the game with a sequence number.
    fn by_ids(&self, filter: &Filter) -> impl Fn(u64) -> bool {
        let known = self.shared.known_ids.read();
        let sequence = |id: &Bytes| known.get(<&Id>::try_from(id.as_ref()).ok()?).copied();
        let wanted: HashSet<u64> = filter.ids().iter().filter_map(sequence).collect();
        let is_any = filter.ids().is_empty();
        move |sequence| is_any || wanted.contains(&sequence)
    }

    fn record(&self, sequence: u64) -> Result<Vec<u8>, GetError> {
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
        let is_wanted = self.by_ids(filter);
        let mut found: Vec<(u64, u32)> = {
            let window = self.shared.window.read();
            let slots = window.from(0).filter(|slot| is_wanted(slot.sequence));
            slots
                .map(|slot| (slot.sequence, slot.trainable + slot.held_out))
                .collect()
        };
        found.retain(|&(sequence, _)| {
            let record = self.record(sequence).ok();
            let summary = record.and_then(|record| record::summary(&record).ok());
            summary.is_some_and(|summary| filter.fits(&summary.id, summary.positions, &summary.game))
        });
        found
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

    /// Returns a page of the window's games that the filter selects. The call considers every game that was acknowledged before it.
    /// Blocks on the disk.
    pub fn page(&self, listing: &Listing, filter: &Filter) -> Page {
        let is_wanted = self.by_ids(filter);
        let fits = |sequence: u64, listed: &Listed| is_wanted(sequence) && filter.fits_listed(listed);
        let mut page = Page::default();
        let mut after = listing.after;
        let mut candidates = 0;
        loop {
            let (sort, descending) = (listing.sort, listing.descending);
            let catalog = self.shared.catalog.read();
            let places = catalog.places(sort, after, descending, BATCH, fits);
            drop(catalog);
            if places.is_empty() {
                page.next = None;
                return page;
            }
            for place in places {
                if page.games.len() == listing.limit || candidates == MAX_CANDIDATES {
                    return page;
                }
                candidates += 1;
                after = Some(place);
                page.next = Some(Cursor {
                    sort: sort as u8,
                    place,
                });
                if let Some(game) = self.fitting(place.sequence, filter, &mut page.unreadable) {
                    page.games.push(summary(place.sequence, game));
                }
            }
        }
    }

    /// Returns a game of the catalog if it is in the window and the filter selects it.
    fn fitting(&self, sequence: u64, filter: &Filter, unreadable: &mut u32) -> Option<Summary> {
        if !self.shared.window.read().holds(sequence) {
            return None;
        }
        let found = self
            .record(sequence)
            .map_err(|error| error.to_string())
            .and_then(|record| record::summary(&record).map_err(|error| error.to_string()));
        match found {
            Ok(game) => filter.fits(&game.id, game.positions, &game.game).then_some(game),
            Err(reason) => {
                // A game that was retired in the meantime is not lost.
                if self.shared.window.read().holds(sequence) {
                    self.shared.mark_unreadable(sequence, &reason);
                    *unreadable += 1;
                }
                None
            }
        }
    }

    /// Returns the next part of an export: of the next `limit` games from sequence number `from` to `to`, oldest first, those that the
    /// filter selects, or fewer if those have [`EXPORT_BYTES`]. Returns `None` if there are no more games. Blocks on the disk.
    pub fn export(&self, (from, to): (u64, u64), limit: usize, filter: &Filter) -> Option<Exported> {
        let sequences: Vec<u64> = self
            .shared
            .window
            .read()
            .from(from)
            .map(|slot| slot.sequence)
            .take_while(|&sequence| sequence <= to)
            .take(limit)
            .collect();
        let mut exported = Exported {
            games: Vec::with_capacity(sequences.len()),
            next: sequences.last()? + 1,
            unreadable: 0,
        };
        let mut bytes = 0;
        for sequence in sequences {
            if bytes >= EXPORT_BYTES {
                exported.next = sequence;
                break;
            }
            match self.read(sequence) {
                Ok(game) if !filter.fits(&game.id, game.actions.len() as u32, &game) => {}
                Ok(game) => {
                    bytes += game.encoded_len();
                    exported.games.push(StoredGame {
                        sequence,
                        game: Some(game),
                        unreadable: 0,
                    });
                }
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

fn summary(sequence: u64, summary: Summary) -> GameSummary {
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
