//! One search that can be stopped, prolonged and looked into at any time: [`Thinker`].
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
use search::{ApplyError, Counters, Decision, Depths, GameKey, Search, Settings};

use network::NetworkError;

use crate::evaluator::{Counts, Evaluator};

/// Traversals between two looks at the clock, at most: gray and terminal ones need no network.
const SLICE: u32 = 512;

/// When a search ends. Whatever comes first; without any limit, when it is stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Traversals of the decision, those done before included.
    pub visits: Option<u32>,
    /// When to be done. It is looked at between two batches.
    pub until: Option<Instant>,
}

/// A search that went wrong.
#[derive(Debug, thiserror::Error)]
pub enum ThinkError {
    /// The network did not answer.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The network's answer is no evaluation.
    #[error("the network's answer cannot be used: {0}")]
    Answer(#[from] ApplyError),
}

/// Why thinking ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The traversals are done (or the game is over).
    Visits,
    /// The time is up.
    Time,
    /// It was stopped.
    Stopped,
}

/// A search with its evaluator.
#[derive(Debug)]
pub struct Thinker<G: Game> {
    search: Search<G>,
    evaluator: Evaluator<G>,
}

impl<G: Game> Thinker<G> {
    /// Begins at `state`. The settings' number of traversals does not matter: [`Limits`] say when to end.
    pub fn new(state: G, settings: Settings, key: GameKey, evaluator: Evaluator<G>) -> Self {
        Self {
            search: Search::new(state, settings, key),
            evaluator,
        }
    }

    /// The decision's state.
    pub fn state(&self) -> &G {
        self.search.state()
    }

    /// Thinks until a limit is reached or `stop` is set; a later call goes on from there. `look` is called after every
    /// batch. Something is always known afterwards: the first batch is done even if there is no time at all.
    ///
    /// # Errors
    /// [`ThinkError`]; what was found until then is kept.
    pub fn think(
        &mut self,
        limits: &Limits,
        stop: &AtomicBool,
        mut look: impl FnMut(&Self),
    ) -> Result<Ended, ThinkError> {
        let most = limits.visits.unwrap_or(Settings::MAX_TRAVERSALS);
        loop {
            let done = self.search.done();
            self.search.set_traversals(most.min(done.saturating_add(SLICE)));
            if self.search.is_decided() {
                return Ok(Ended::Visits);
            }
            if let Err(error) = self.step() {
                self.evaluator.drop_questions();
                self.search.abandon();
                return Err(error);
            }
            look(self);
            // The first batch is the decision node's own evaluation, which says nothing about actions but their priors.
            if self.search.done() == 0 {
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

    /// One batch.
    fn step(&mut self) -> Result<(), ThinkError> {
        let Self { search, evaluator } = self;
        search.gather(|leaf| evaluator.ask(0, &leaf));
        evaluator.hand_out_known(|_, leaf, evaluation| search.apply(leaf, evaluation))?;
        evaluator.flush(|_, leaf, evaluation| search.apply(leaf, evaluation).map_err(ThinkError::from))
    }

    /// What is known of the decision.
    pub fn decision(&self) -> Decision {
        self.search.decision()
    }

    /// Traversals of this decision.
    pub fn visits(&self) -> u32 {
        self.search.done()
    }

    /// How far this decision's traversals have gone.
    pub fn depths(&self) -> Depths {
        self.search.depths()
    }

    /// The most visited line; with `first`, the most visited line that begins with that action.
    pub fn line(&self, first: Option<Action>) -> Vec<Action> {
        self.search.principal_variation(first)
    }

    /// The most visited action, a tie is drawn; `None` where the game is over or nothing is known yet.
    pub fn best(&self) -> Option<Action> {
        self.search.choose(0.0)
    }

    /// An action drawn in proportion to `visits^(1/temperature)`.
    pub fn draw(&self, temperature: f32) -> Option<Action> {
        self.search.choose(temperature)
    }

    /// Plays an action, whoever's it is, and keeps what is known below it.
    ///
    /// # Errors
    /// [`IllegalAction`] by the game's rules; nothing has changed then.
    pub fn advance(&mut self, action: Action) -> Result<(), IllegalAction> {
        self.search.advance(action)
    }

    /// What the search did since it began, and the tree's size.
    pub fn counters(&self) -> Counters {
        self.search.counters()
    }

    /// How its evaluations were answered.
    pub fn counts(&self) -> Counts {
        self.evaluator.counts()
    }

    /// Ends this search and gives its evaluator to another.
    pub fn into_evaluator(self) -> Evaluator<G> {
        self.evaluator
    }
}

impl Limits {
    /// A number of traversals.
    pub fn visits(visits: u32) -> Self {
        Self {
            visits: Some(visits),
            until: None,
        }
    }

    /// From now on for so long.
    pub fn time(time: Duration) -> Self {
        Self {
            visits: None,
            until: Instant::now().checked_add(time),
        }
    }
}
