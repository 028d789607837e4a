//! One search that can be stopped, continued and inspected at any time: [`Thinker`].
//!
//! ```text
//! let mut thinker = Thinker::new(&state, settings, key, searches)?;
//! thinker.think(&Limits { visits: Some(800), ..Limits::default() }, &stop, |thinker| say(thinker.search().principal_variation(None)))?;
//! let action = thinker.search().choose(0.0);
//! thinker.advance(action)?;
//! ```

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use games::{Action, IllegalAction, erased::AnyState};
use search::{GameKey, Root, Settings};

use super::searches::{AnySearch, Searches};

/// Largest number of traversals between two checks of the limits. Gray and terminal traversals need no network and would otherwise
/// run without a check.
const SLICE: u32 = 512;

/// Limits of a search. The first limit that is reached ends it. Without limits a search runs until it is stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Number of traversals of the decision, including earlier ones.
    pub visits: Option<u32>,
    /// Time of the end, checked between two batches.
    pub until: Option<Instant>,
}

/// Reason for the end of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The number of traversals is reached, or the game is over.
    Visits,
    /// The time limit is reached.
    Time,
    /// The flag to stop was set.
    Stopped,
}

/// A search with its network.
#[derive(Debug)]
pub struct Thinker {
    searches: Box<dyn Searches>,
    slot: usize,
    state: Box<dyn AnyState>,
}

impl Thinker {
    /// Begins at `state`. [`Limits`] replace the number of traversals in `settings`. The search can be continued, so PUCT chooses at
    /// its root: sequential halving needs a number of traversals to divide.
    ///
    /// # Errors
    /// The state is of another game than `searches`.
    pub fn new(
        state: &dyn AnyState,
        settings: Settings,
        key: GameKey,
        mut searches: Box<dyn Searches>,
    ) -> anyhow::Result<Self> {
        let settings = Settings {
            root: Root::Puct,
            ..settings
        };
        Ok(Self {
            slot: searches.begin(state, settings, key)?,
            searches,
            state: state.copy(),
        })
    }

    /// State in which the search decides.
    pub fn state(&self) -> &dyn AnyState {
        &*self.state
    }

    /// The search itself, with its decision and its tree.
    pub fn search(&self) -> &dyn AnySearch {
        self.searches.search(self.slot)
    }

    /// The search and its network.
    pub fn searches(&self) -> &dyn Searches {
        &*self.searches
    }

    /// Searches until a limit is reached or `stop` is set. A later call continues the same search. `look` is called after every batch.
    /// The first batch is always completed, so that there is always a result.
    ///
    /// # Errors
    /// The search fails. Earlier results are kept.
    pub fn think(
        &mut self,
        limits: &Limits,
        stop: &AtomicBool,
        mut look: impl FnMut(&Self),
    ) -> anyhow::Result<Ended> {
        let most = limits.visits.unwrap_or(Settings::MAX_VISITS);
        loop {
            let search = self.searches.search_mut(self.slot);
            let done = search.visits_done();
            search.set_visits(most.min(done.saturating_add(SLICE)));
            if search.is_decided() {
                return Ok(Ended::Visits);
            }
            if self.searches.gather(self.slot)? {
                self.searches.evaluate()?;
            }
            look(self);
            // The first batch evaluates the root only and gives no visits, so the search does not end here.
            if self.search().visits_done() == 0 {
                continue;
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(Ended::Stopped);
            }
            if limits.until.is_some_and(|until| Instant::now() >= until) {
                return Ok(Ended::Time);
            }
        }
    }

    /// Limits this decision to some of the legal actions; see [`Search::restrict_root`](search::Search::restrict_root).
    pub fn restrict_root(&mut self, allowed: &[Action]) {
        self.searches.search_mut(self.slot).restrict_root(allowed);
    }

    /// Plays an action of either player and keeps the subtree below it.
    ///
    /// # Errors
    /// [`IllegalAction`] if the rules forbid the action. Nothing has changed then.
    pub fn advance(&mut self, action: Action) -> Result<(), IllegalAction> {
        self.searches.search_mut(self.slot).advance(action)?;
        self.state.play(action)
    }
}

impl Limits {
    /// Limits the number of traversals.
    pub fn visits(visits: u32) -> Self {
        Self {
            visits: Some(visits),
            until: None,
        }
    }

    /// Limits the duration from now on.
    pub fn time(time: Duration) -> Self {
        Self {
            visits: None,
            until: Instant::now().checked_add(time),
        }
    }
}
