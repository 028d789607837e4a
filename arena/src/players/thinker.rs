//! One search that can be stopped, continued and inspected at any time: [`Thinker`].
//!
//! ```text
//! let mut thinker = Thinker::new(state, settings, key, evaluator);
//! thinker.think(&Limits { visits: Some(800), ..Limits::default() }, &stop, |thinker| say(thinker.line(None)))?;
//! let action = thinker.best();
//! thinker.advance(action)?;
//! ```

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use games::{Action, Game, IllegalAction};
use network::batched::{BatchedEvaluator, EvaluationCounts};
use search::{Counters, Decision, Depths, GameKey, Root, Search, Settings};

use super::PlayerError;

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

/// A search with its evaluator.
#[derive(Debug)]
pub struct Thinker<G: Game> {
    search: Search<G>,
    evaluator: BatchedEvaluator<G>,
}

impl<G: Game> Thinker<G> {
    /// Begins at `state`. [`Limits`] replace the number of traversals in `settings`. The search can be continued, so PUCT chooses at
    /// its root: sequential halving needs a number of traversals to divide.
    pub fn new(state: G, settings: Settings, key: GameKey, evaluator: BatchedEvaluator<G>) -> Self {
        let settings = Settings {
            root: Root::Puct,
            ..settings
        };
        Self {
            search: Search::new(state, settings, key),
            evaluator,
        }
    }

    /// State in which the search decides.
    pub fn state(&self) -> &G {
        self.search.state()
    }

    /// The search itself, to look into its tree.
    pub fn search(&self) -> &Search<G> {
        &self.search
    }

    /// Searches until a limit is reached or `stop` is set. A later call continues the same search. `look` is called after every batch.
    /// The first batch is always completed, so that there is always a result.
    ///
    /// # Errors
    /// [`PlayerError`] if the search fails. Earlier results are kept.
    pub fn think(
        &mut self,
        limits: &Limits,
        stop: &AtomicBool,
        mut look: impl FnMut(&Self),
    ) -> Result<Ended, PlayerError> {
        let most = limits.visits.unwrap_or(Settings::MAX_VISITS);
        loop {
            let done = self.search.visits_done();
            self.search.set_visits(most.min(done.saturating_add(SLICE)));
            if self.search.is_decided() {
                return Ok(Ended::Visits);
            }
            if let Err(error) = self.step() {
                self.evaluator.clear();
                self.search.abandon();
                return Err(error);
            }
            look(self);
            // The first batch evaluates the root only and gives no visits, so the search does not end here.
            if self.search.visits_done() == 0 {
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

    /// Gathers and evaluates one batch.
    fn step(&mut self) -> Result<(), PlayerError> {
        let Self { search, evaluator } = self;
        search.gather(|leaf| evaluator.add(0, &leaf));
        evaluator.take_known(|_, leaf, evaluation| search.apply(leaf, evaluation))?;
        evaluator.flush(|_, leaf, evaluation| search.apply(leaf, evaluation).map_err(PlayerError::from))
    }

    /// The decision so far.
    pub fn decision(&self) -> Decision {
        self.search.decision()
    }

    /// Number of traversals of this decision.
    pub fn visits(&self) -> u32 {
        self.search.visits_done()
    }

    /// Depths of this decision's traversals.
    pub fn depths(&self) -> Depths {
        self.search.depths()
    }

    /// The principal variation: the most visited line, or, with `first`, the most visited line that begins with that action.
    pub fn line(&self, first: Option<Action>) -> Vec<Action> {
        self.search.principal_variation(first)
    }

    /// The most visited action; ties are drawn at random. `None` if the game is over or there are no visits.
    pub fn best(&self) -> Option<Action> {
        self.search.choose(0.0)
    }

    /// An action drawn in proportion to `visits^(1/temperature)`.
    pub fn draw(&self, temperature: f32) -> Option<Action> {
        self.search.choose(temperature)
    }

    /// Limits this decision to some of the legal actions; see [`Search::restrict_root`].
    pub fn restrict_root(&mut self, allowed: &[Action]) {
        self.search.restrict_root(allowed);
    }

    /// Plays an action of either player and keeps the subtree below it.
    ///
    /// # Errors
    /// [`IllegalAction`] if the rules forbid the action. Nothing has changed then.
    pub fn advance(&mut self, action: Action) -> Result<(), IllegalAction> {
        self.search.advance(action)
    }

    /// Counters of the search since its beginning, and the size of the tree.
    pub fn counters(&self) -> Counters {
        self.search.counters()
    }

    /// Numbers of evaluations, by where they came from.
    pub fn counts(&self) -> EvaluationCounts {
        self.evaluator.counts()
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
