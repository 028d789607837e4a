//! One search that can be stopped, continued and inspected at any time: [`Thinker`].
//!
//! ```text
//! let mut thinker = Thinker::new(&state, settings, key, searches)?;
//! thinker.think(800, &stop, |thinker| say(thinker.search().principal_variation(None)))?;
//! let action = thinker.search().choose(0.0);
//! thinker.advance(action)?;
//! ```

use std::sync::atomic::{AtomicBool, Ordering};

use games::{Action, IllegalAction, erased::AnyState};
use search::{GameKey, Root, Settings};

use super::searches::{AnySearch, Searches};

/// Largest number of traversals between two looks at the flag to stop. Gray and terminal traversals need no network and would otherwise
/// run without a check.
const SLICE: u32 = 512;

/// A search with its network.
#[derive(Debug)]
pub struct Thinker {
    searches: Box<dyn Searches>,
    slot: usize,
    state: Box<dyn AnyState>,
}

impl Thinker {
    /// Begins at `state`. [`Thinker::think`] takes the number of traversals, not `settings`. The search can be continued, so PUCT chooses at
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

    /// Searches until the decision has `visits` traversals, earlier ones included, or `stop` is set. A later call continues the same
    /// search. `look` is called after every batch. The first batch is always completed, so that there is always a result.
    ///
    /// # Errors
    /// The search fails. Earlier results are kept.
    pub fn think(
        &mut self,
        visits: u32,
        stop: &AtomicBool,
        mut look: impl FnMut(&Self),
    ) -> anyhow::Result<()> {
        loop {
            let search = self.searches.search_mut(self.slot);
            let done = search.visits_done();
            search.set_visits(visits.min(done.saturating_add(SLICE)));
            if search.is_decided() {
                return Ok(());
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
                return Ok(());
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
