//! Pages of games in an order, from the index. The index names candidates; the record of each game decides.

use std::time::Duration;

use proto::v1::{GameSort, GameSummary};

use super::{Store, reading::summary};
use crate::{
    index::{
        IndexError,
        entry::{Order, Place},
        page::Cursor,
    },
    record::{self, Summary, filter::Filter},
};

/// Maximum time for which a request waits until the index has caught up with the log.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of candidates of one page. It limits the time of a request whose filter selects few games.
const MAX_CANDIDATES: usize = 20_000;

/// A request for a page.
#[derive(Clone, Copy, Debug)]
pub struct Listing {
    /// Order of the games. [`GameSort::Sequence`] is not possible, because it needs no index.
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
    /// The games, in the order asked for. There may be fewer than asked for, or none, before the last page.
    pub games: Vec<GameSummary>,
    /// Beginning of the next page; `None` after the last page.
    pub next: Option<Cursor>,
    /// Number of games that were left out because they cannot be read.
    pub unreadable: u32,
}

impl Store {
    /// Returns a page of the window's games that the filter selects. The call considers every game that was acknowledged before it.
    /// Blocks on the disk.
    ///
    /// # Errors
    /// [`IndexError`] if the index cannot answer at present.
    pub fn page(&self, listing: &Listing, filter: &Filter) -> Result<Page, IndexError> {
        let index = self.shared.index.as_ref().ok_or(IndexError::Off)?;
        let newest = self.shared.window.read().range().map(|(_, newest)| newest);
        index.wait(newest.map_or(0, |newest| newest + 1), TIMEOUT)?;
        let order = order(listing.sort);
        let (low, high) = range(order, filter);
        // The page begins where the filter's range begins in this order, or after the previous page.
        let edge = match listing.descending {
            true => high.checked_add(1).map(|value| Place { value, sequence: 0 }),
            false => low.checked_sub(1).map(|value| Place {
                value,
                sequence: u64::MAX,
            }),
        };
        let after = listing.after.or(edge);
        let candidates: Box<dyn Iterator<Item = Place>> = match filter.ids() {
            [] => Box::new(index.places(order, after, listing.descending, filter)),
            _ => Box::new(self.places_of(order, filter, listing).into_iter()),
        };
        let mut page = Page::default();
        for (number, place) in candidates.enumerate() {
            let is_beyond = match listing.descending {
                true => place.value < low,
                false => place.value > high,
            };
            if is_beyond {
                break;
            }
            if page.games.len() == listing.limit || number == MAX_CANDIDATES {
                return Ok(page);
            }
            if let Some(game) = self.fitting(order, place, filter, &mut page.unreadable) {
                page.games.push(summary(place.sequence, game));
            }
            page.next = Some(Cursor {
                sort: listing.sort as u8,
                place,
            });
        }
        page.next = None;
        Ok(page)
    }

    /// Returns the game at a place of the index if it is in the window, its sort key is that of the place, and the filter selects it.
    fn fitting(&self, order: Order, place: Place, filter: &Filter, unreadable: &mut u32) -> Option<Summary> {
        let sequence = place.sequence;
        if !self.shared.window.read().holds(sequence) {
            return None;
        }
        let found = self
            .record(sequence)
            .map_err(|error| error.to_string())
            .and_then(|record| record::summary(&record).map_err(|error| error.to_string()));
        match found {
            Ok(game) => (order.value(&game) == place.value
                && filter.fits(&game.id, game.positions, &game.game))
            .then_some(game),
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

    /// Returns the places of the games that a filter names by their ids, in order.
    fn places_of(&self, order: Order, filter: &Filter, listing: &Listing) -> Vec<Place> {
        let sequences: Vec<u64> = {
            let known = self.shared.known_ids.read();
            let ids = filter.ids().iter();
            ids.filter_map(|id| known.sequence(&id.as_ref().try_into().ok()?))
                .collect()
        };
        let mut places: Vec<Place> = sequences
            .into_iter()
            .filter_map(|sequence| {
                let game = record::summary(&self.record(sequence).ok()?).ok()?;
                let value = order.value(&game);
                Some(Place { value, sequence })
            })
            .collect();
        places.sort_unstable();
        places.dedup();
        if listing.descending {
            places.reverse();
        }
        places.retain(|place| match listing.after {
            Some(after) if listing.descending => *place < after,
            Some(after) => *place > after,
            None => true,
        });
        places
    }
}

/// Returns the index's order for a sort.
fn order(sort: GameSort) -> Order {
    match sort {
        GameSort::Length => Order::Length,
        GameSort::Surprise => Order::Surprise,
        GameSort::Time | GameSort::Sequence => Order::Time,
    }
}

/// Returns the lowest and the highest sort key that the filter allows.
fn range(order: Order, filter: &Filter) -> (u64, u64) {
    match order {
        Order::Length => filter.positions(),
        Order::Surprise => (0, u64::MAX),
        Order::Time => filter.finished(),
    }
}
