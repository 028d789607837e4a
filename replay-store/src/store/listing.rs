//! Pages of games in an order. The catalog names candidates; the record of each game decides.

use std::collections::HashSet;

use proto::v1::{GameSort, GameSummary};

use super::{Store, reading::summary};
use crate::{
    record::{self, Summary, filter::Filter},
    window::catalog::{Cursor, Listed, Place},
};

/// Maximum number of candidates of one page. It limits the time of a request whose filter selects few games.
const MAX_CANDIDATES: usize = 20_000;

/// Number of candidates that are taken from the catalog at a time.
const BATCH: usize = 1024;

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

impl Store {
    /// Returns a page of the window's games that the filter selects. The call considers every game that was acknowledged before it.
    /// Blocks on the disk.
    pub fn page(&self, listing: &Listing, filter: &Filter) -> Page {
        let wanted: Option<HashSet<u64>> = match filter.ids() {
            [] => None,
            ids => Some(self.known(ids)),
        };
        let fits = |sequence: u64, listed: &Listed| {
            wanted.as_ref().is_none_or(|wanted| wanted.contains(&sequence)) && filter.fits_listed(listed)
        };
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
}
