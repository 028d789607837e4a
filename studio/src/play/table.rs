//! A table: one game under way on a page, with its opponent and its analysis.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use games::{Action, Course, Notation};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{analysis::Analysis, command::Seats, refusal::Refusal, tables::Tables};

/// Visits of the search behind a hint.
pub(super) const HINT_VISITS: u32 = 400;

/// One game under way.
pub struct Table<G: Notation> {
    pub(super) tables: Arc<Tables>,
    pub(super) seats: Seats,
    pub(super) inner: Mutex<Inner<G>>,
    pub(super) changed: watch::Sender<u64>,
    pub(super) runtime: tokio::runtime::Handle,
}

/// Flag that stops one search. The search is current while the table holds its flag.
pub(super) type Job = Arc<AtomicBool>;

/// The changing part of a table.
pub(super) struct Inner<G> {
    pub course: Course<G>,
    /// Text of the start; `None` for the usual one.
    pub start: Option<String>,
    /// Number of actions before the position that is shown.
    pub at: usize,
    pub is_paused: bool,
    pub is_analysing: bool,
    /// Stage of the hint, 0 to 3.
    pub hint: u8,
    pub analysis: Option<Analysis>,
    /// Exact values for the player to act, as far as they are found.
    pub exact: Vec<(Action, i8)>,
    /// Evaluation of the opponent's last search: value for the first player, and its visits.
    pub last_value: Option<(f32, u32)>,
    pub trouble: Option<String>,
    pub opponent_job: Option<Job>,
    pub analysis_job: Option<Job>,
    pub exact_job: Option<Job>,
    pub watchers: usize,
    pub unwatched_since: Instant,
    pub is_closed: bool,
}

impl<G: Notation> Inner<G> {
    /// State that is shown.
    pub fn shown(&self) -> G {
        self.course.state_after(self.at)
    }

    /// True if the newest position is shown.
    pub fn is_at_end(&self) -> bool {
        self.at == self.course.actions().len()
    }

    /// True if the position has no analysis of `wanted` visits, and none that ended by itself.
    fn lacks(&self, wanted: u32) -> bool {
        let known = self.analysis.as_ref();
        known.is_none_or(|known| known.visits < wanted && !(known.is_complete && known.visits != HINT_VISITS))
    }

    /// True if the exact value of a legal action is missing, because the solver was not asked or was stopped.
    fn lacks_exact_values(&self) -> bool {
        let mut legal = Vec::new();
        self.shown().legal_actions(&mut legal);
        self.exact.len() < legal.len()
    }

    fn may_search(&self) -> bool {
        !self.is_closed && (self.watchers > 0)
    }
}

impl<G: Notation> Table<G> {
    /// A table at which a game begins.
    pub fn new(tables: Arc<Tables>, seats: Seats, begin: G, start: Option<String>) -> Arc<Self> {
        Arc::new(Self {
            tables,
            seats,
            inner: Mutex::new(Inner {
                course: Course::new(begin),
                start,
                at: 0,
                is_paused: false,
                is_analysing: false,
                hint: 0,
                analysis: None,
                exact: Vec::new(),
                last_value: None,
                trouble: None,
                opponent_job: None,
                analysis_job: None,
                exact_job: None,
                watchers: 0,
                unwatched_since: Instant::now(),
                is_closed: false,
            }),
            changed: watch::Sender::new(0),
            runtime: tokio::runtime::Handle::current(),
        })
    }

    /// Plays actions that a game had before it came to this table.
    ///
    /// # Errors
    /// [`Refusal::Turn`] if one of them is not legal.
    pub fn replay(&self, actions: &[Action]) -> Result<(), Refusal> {
        let mut inner = self.inner.lock();
        for &action in actions {
            let played = inner.course.play(action);
            played.map_err(|error| Refusal::Turn(error.to_string()))?;
        }
        inner.at = inner.course.actions().len();
        Ok(())
    }

    /// Runtime on which the table's tasks run.
    pub(super) fn handle(&self) -> &tokio::runtime::Handle {
        &self.runtime
    }

    /// Tells the streams that something changed.
    pub(super) fn notify(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// True if the computer plays in this state.
    pub(super) fn is_computers(&self, state: &G) -> bool {
        state.outcome().is_none() && !self.seats.people.contains(&state.to_move())
    }

    /// Forgets what belonged to another position, and starts the searches of this one.
    pub(super) fn moved(self: &Arc<Self>, inner: &mut Inner<G>) {
        for job in [&mut inner.analysis_job, &mut inner.exact_job] {
            stop(job);
        }
        inner.analysis = None;
        inner.exact.clear();
        inner.hint = 0;
        self.wake(inner);
    }

    /// Starts the searches that are due, and stops those that are not.
    pub(super) fn wake(self: &Arc<Self>, inner: &mut Inner<G>) {
        let may_search = inner.may_search();
        let computers_turn = self.is_computers(inner.course.state()) && inner.is_at_end() && !inner.is_paused;
        if !(may_search && computers_turn && inner.trouble.is_none()) {
            stop(&mut inner.opponent_job);
        } else if inner.opponent_job.is_none() {
            let job = begin(&mut inner.opponent_job);
            let table = Arc::clone(self);
            self.runtime.spawn_blocking(move || table.let_opponent_play(&job));
        }
        let wanted = self.wanted_visits(inner);
        let is_running = inner.outcome_of_shown().is_none();
        if !(may_search && wanted > 0 && is_running) {
            stop(&mut inner.analysis_job);
        } else if inner.analysis_job.is_none() && inner.lacks(wanted) {
            let job = begin(&mut inner.analysis_job);
            let table = Arc::clone(self);
            let state = inner.shown();
            let key = inner.at as u64;
            self.runtime
                .spawn_blocking(move || table.analyse(&job, state, key));
        }
        if !(may_search && inner.is_analysing && G::HAS_SOLVER && is_running) {
            stop(&mut inner.exact_job);
        } else if inner.exact_job.is_none() && inner.lacks_exact_values() {
            // The solver begins with the first action again.
            inner.exact.clear();
            let job = begin(&mut inner.exact_job);
            let table = Arc::clone(self);
            let state = inner.shown();
            self.runtime.spawn_blocking(move || table.solve(&job, &state));
        }
        self.notify();
    }

    /// Visits that the analysis of the position should have.
    pub(super) fn wanted_visits(&self, inner: &Inner<G>) -> u32 {
        match (inner.is_analysing, inner.hint) {
            (true, _) => self.tables.limits.visits,
            (false, 0) => 0,
            (false, _) => HINT_VISITS,
        }
    }
}

impl<G: Notation> Inner<G> {
    pub fn outcome_of_shown(&self) -> Option<games::Outcome> {
        self.shown().outcome()
    }
}

fn begin(slot: &mut Option<Job>) -> Job {
    let job = Job::default();
    *slot = Some(Arc::clone(&job));
    job
}

/// Tells a search to stop. Its result will not count.
pub(super) fn stop(slot: &mut Option<Job>) {
    if let Some(job) = slot.take() {
        job.store(true, Ordering::Relaxed);
    }
}

pub(super) fn stop_all<G>(inner: &mut Inner<G>) {
    for job in [
        &mut inner.opponent_job,
        &mut inner.analysis_job,
        &mut inner.exact_job,
    ] {
        stop(job);
    }
}

#[cfg(test)]
mod tests {
    use arena::players::spec::{Kind, SearchSpec};
    use games::{Game as _, Player, connect_four::ConnectFour};

    use super::*;
    use crate::play::{
        command::{AnyTable as _, Command},
        tables::Limits,
    };

    #[tokio::test]
    async fn a_solver_that_was_stopped_goes_on_and_one_that_is_done_is_not_asked_again() {
        let tables = Arc::new(Tables::new(None, Limits::default()));
        // No search begins.
        let _searches = tables.searches.acquire_many(2).await.unwrap();
        let _solving = tables.solving.acquire().await.unwrap();
        let uct = arena::Spec {
            name: "uct".into(),
            written: "uct".into(),
            kind: Kind::Uct(SearchSpec::default()),
        };
        let seats = Seats {
            people: vec![Player::First, Player::Second],
            opponent: uct.clone(),
            advisor: uct,
            seed: 1,
        };
        let start = ConnectFour::start(&Default::default(), None).unwrap();
        let table = Table::new(Arc::clone(&tables), seats, start, None);
        let _watching = Arc::clone(&table).watch();
        for (known, is_asked) in [(0, true), (3, true), (7, false)] {
            {
                let inner = &mut *table.inner.lock();
                stop(&mut inner.exact_job);
                inner.exact = (0..known).map(|column| (column, 0)).collect();
            }
            Arc::clone(&table).execute(Command::Analyse { on: true }).unwrap();
            let inner = table.inner.lock();
            assert_eq!(inner.exact_job.is_some(), is_asked, "{known} values are known");
            assert_eq!(inner.exact.is_empty(), is_asked, "{known} values are known");
        }
        table.close();
    }
}
