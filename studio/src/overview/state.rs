//! [`State`]: all that the overview shows, read again once a second while somebody looks.

use std::{sync::Arc, time::Duration};

use arena::rating::RatedMatch;
use launcher::run::addresses::Addresses;
use parking_lot::Mutex;
use service::figures::Tail;
use tokio::time::Instant;

use super::{
    newest::{self, Newest},
    watch::Watch,
};
use crate::{
    figures::{journal::Journal, learning::Learning},
    run::Run,
    store::Store,
};

/// Age from which the state is read again.
const FRESH: Duration = Duration::from_millis(900);
/// Time between two looks for a newer game.
const GAMES: Duration = Duration::from_secs(5);

/// State of a run.
#[derive(Debug)]
pub struct State {
    /// True while `minuet up` works in the folder.
    pub is_running: bool,
    /// True if the roles run elsewhere, so that the record began with the studio.
    pub is_elsewhere: bool,
    /// Record of `minuet up`.
    pub journal: Journal,
    /// Losses.
    pub learning: Learning,
    matches: Tail,
    /// Rated matches, oldest first.
    pub rated: Vec<RatedMatch>,
}

/// The state of a run, shared by all who look.
#[derive(Debug)]
pub struct Watched {
    run: Run,
    state: Mutex<(State, Option<Instant>)>,
    newest: tokio::sync::Mutex<(Option<Arc<Newest>>, Option<Instant>)>,
    /// Looks for alarms.
    pub alarms: Watch,
}

impl Watched {
    /// Creates the state of a run, which is read when somebody looks.
    pub fn new(run: &Run) -> Self {
        let state = State {
            is_running: false,
            is_elsewhere: run.is_elsewhere,
            journal: Journal::new(&run.folder),
            learning: Learning::new(&run.folder),
            matches: Tail::new(run.folder.join("rating/metrics.jsonl")),
            rated: Vec::new(),
        };
        Self {
            run: run.clone(),
            state: Mutex::new((state, None)),
            newest: tokio::sync::Mutex::default(),
            alarms: Watch::default(),
        }
    }

    /// Shows the state, which is read again if it is old. Blocks on files that are short or were read before.
    pub fn look<T>(&self, show: impl FnOnce(&State) -> T) -> T {
        let mut held = self.state.lock();
        let (state, read) = &mut *held;
        if read.is_none_or(|read| read.elapsed() >= FRESH) {
            state.refresh(&self.run);
            *read = Some(Instant::now());
        }
        show(state)
    }

    /// Newest game of the run; `None` if there is none, or while the store does not answer.
    pub async fn newest(&self, store: &Store) -> Option<Arc<Newest>> {
        let mut held = self.newest.lock().await;
        if held.1.is_none_or(|looked| looked.elapsed() >= GAMES) {
            let known = held.0.as_ref().map(|newest| newest.id.clone());
            match newest::find(store, known.as_deref()).await {
                Ok(Some(newest)) => held.0 = Some(Arc::new(newest)),
                Ok(None) => {}
                // The page shows the game before, and the roles' state says who does not answer.
                Err(error) => tracing::debug!("no newest game: {error}"),
            }
            held.1 = Some(Instant::now());
        }
        held.0.clone()
    }
}

impl State {
    fn refresh(&mut self, run: &Run) {
        self.is_running = Addresses::of_running(&run.folder).is_some();
        self.journal.refresh();
        self.learning.refresh();
        self.rated.extend(self.matches.read::<RatedMatch>());
    }
}
