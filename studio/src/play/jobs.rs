//! The searches of a table. Each runs on a thread of its own, holds one of the permits that all tables share while it computes, and reports
//! to the table as long as the table holds its flag.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use arena::{
    PlayerError,
    players::{
        Solo,
        spec::Kind,
        thinker::{Limits, ThinkError, Thinker},
    },
    solver_test::optimal_actions,
};
use games::{Action, IllegalAction, Notation};
use search::{Draws, GameKey, Purpose, Reuse, Settings};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::{
    analysis::Analysis,
    table::{Inner, Job, Table},
};

/// Error: a search cannot go on.
#[derive(Debug, thiserror::Error)]
enum JobError {
    /// The player cannot be opened or cannot choose.
    #[error(transparent)]
    Player(#[from] PlayerError),
    /// The search failed.
    #[error(transparent)]
    Think(#[from] ThinkError),
    /// The player chose an action that the rules refuse.
    #[error(transparent)]
    Action(#[from] IllegalAction),
    /// The player does not search, so that it cannot analyse.
    #[error("{0} does not search")]
    NoSearch(String),
}

/// Visits between two returns of the permit.
const SLICE: u32 = 100;
/// Time between two reports.
const REPORT: Duration = Duration::from_millis(200);
/// Time for which each turn is shown where the computer plays both sides.
const PACE: Duration = Duration::from_millis(700);
/// Leaves that the analysis evaluates at once.
const LEAVES: u32 = 8;

impl<G: Notation> Table<G> {
    /// Lets the computer play until a person is to act or the game is over.
    pub(super) fn let_opponent_play(self: Arc<Self>, job: &Job) {
        if let Err(error) = self.opponent_plays(job) {
            self.fail(job, &error, |inner| &mut inner.opponent_job);
        }
    }

    fn opponent_plays(self: &Arc<Self>, job: &Job) -> Result<(), JobError> {
        let player = self.tables.player::<G>(&self.seats.opponent)?;
        let (begin, actions) = {
            let inner = self.inner.lock();
            (inner.course.begin().clone(), inner.course.actions().to_vec())
        };
        let key = GameKey {
            run_seed: self.seats.seed,
            game: 0,
        };
        let mut solo = player.solo(&begin, key)?;
        for action in actions {
            solo.play(action)?;
        }
        loop {
            let action = if self.seats.opponent.kind == Kind::Perfect {
                let Some(action) = self.optimal_action(job, &solo) else {
                    return Ok(());
                };
                action
            } else {
                let _permit = self.permit(&self.tables.searches);
                if job.load(Ordering::Relaxed) {
                    return Ok(());
                }
                solo.choose(job)?
            };
            let mover = solo.state().to_move();
            let answer = solo.thinker().map(|thinker| {
                let value = thinker.decision().value.of_first(mover);
                (value.get(), thinker.visits())
            });
            solo.play(action)?;
            {
                let inner = &mut *self.inner.lock();
                if !is_current(inner.opponent_job.as_ref(), job) {
                    return Ok(());
                }
                inner.course.play(action)?;
                inner.at = inner.course.actions().len();
                inner.last_value = answer;
                let goes_on = self.is_computers(inner.course.state());
                if !goes_on {
                    inner.opponent_job = None;
                }
                self.moved(inner);
                if !goes_on {
                    return Ok(());
                }
            }
            if self.seats.people.is_empty() && !solo.state().is_mid_turn() {
                pause(job);
            }
        }
    }

    /// Analyses a position.
    pub(super) fn analyse(self: Arc<Self>, job: &Job, state: G, number: u64) {
        if let Err(error) = self.analyses(job, state, number) {
            self.fail(job, &error, |inner| &mut inner.analysis_job);
        }
    }

    fn analyses(self: &Arc<Self>, job: &Job, state: G, number: u64) -> Result<(), JobError> {
        let player = self.tables.player::<G>(&self.seats.advisor)?;
        let (Some(settings), Some(evaluator)) = (player.settings(), player.evaluator(1)) else {
            return Err(JobError::NoSearch(player.name().into()));
        };
        let settings = Settings {
            leaves: LEAVES,
            noise_fraction: 0.0,
            reuse: Reuse::Drop,
            // An analysis shows figures of all moves, also where one is proven.
            solver: false,
            exact_leaves: false,
            ..settings.clone()
        };
        let key = GameKey {
            run_seed: self.seats.seed,
            game: 1 + number,
        };
        let mut thinker = Thinker::new(state, settings, key, evaluator);
        // The first evaluations are reported at once.
        let mut last = None::<Instant>;
        loop {
            let wanted = self.wanted_visits(&self.inner.lock());
            let goal = (thinker.visits() + SLICE).min(wanted);
            {
                let _permit = self.permit(&self.tables.searches);
                if job.load(Ordering::Relaxed) {
                    return Ok(());
                }
                thinker.think(&Limits::visits(goal), job, |thinker| {
                    if last.is_none_or(|last| last.elapsed() >= REPORT) {
                        last = Some(Instant::now());
                        self.report(job, thinker, player.name(), false);
                    }
                })?;
            }
            // A search that proves its result ends early.
            let is_complete = thinker.visits() < goal;
            let is_done = thinker.visits() >= wanted || is_complete;
            self.report(job, &thinker, player.name(), is_done);
            if is_done {
                return Ok(());
            }
        }
    }

    fn report(&self, job: &Job, thinker: &Thinker<G>, by: &str, is_done: bool) {
        let mut analysis = Analysis::of(&thinker.decision(), thinker.visits(), by, |action| {
            thinker.line(Some(action))
        });
        analysis.is_complete = is_done;
        let inner = &mut *self.inner.lock();
        if is_current(inner.analysis_job.as_ref(), job) {
            inner.analysis = Some(analysis);
            if is_done {
                inner.analysis_job = None;
            }
            self.notify();
        }
    }

    /// Finds exact values of the actions of a position.
    pub(super) fn solve(self: Arc<Self>, job: &Job, state: &G) {
        let _permit = self.permit(&self.tables.solving);
        if job.load(Ordering::Relaxed) {
            return;
        }
        state.solve_actions(job, &mut |action, value| {
            let inner = &mut *self.inner.lock();
            if is_current(inner.exact_job.as_ref(), job) {
                inner.exact.push((action, value));
                self.notify();
            }
        });
        let inner = &mut *self.inner.lock();
        if is_current(inner.exact_job.as_ref(), job) {
            inner.exact_job = None;
        }
    }

    /// Draws one of the actions that keep the value of the state `solo` is in. `None` if the search is to stop. The player itself would
    /// solve the position to its end, for minutes at the start of a game, though nobody waits any more.
    fn optimal_action(&self, job: &Job, solo: &Solo<G>) -> Option<Action> {
        let _permit = self.permit(&self.tables.solving);
        let mut values = Vec::new();
        solo.state()
            .solve_actions(job, &mut |action, value| values.push((action, value)));
        if job.load(Ordering::Relaxed) {
            return None;
        }
        let optimal = optimal_actions(&values);
        let key = GameKey {
            run_seed: self.seats.seed,
            game: 0,
        };
        let number = self.inner.lock().course.actions().len();
        let mut draws = Draws::new(key, number as u32, Purpose::Choice);
        optimal.get(draws.below(optimal.len())).copied()
    }

    /// Waits for a permit. `None` if the table is closed, which no search outlives.
    fn permit<'a>(&self, permits: &'a Arc<Semaphore>) -> Option<SemaphorePermit<'a>> {
        self.handle().block_on(permits.acquire()).ok()
    }

    fn fail(&self, job: &Job, error: &JobError, slot: impl Fn(&mut Inner<G>) -> &mut Option<Job>) {
        let inner = &mut *self.inner.lock();
        if is_current(slot(inner).as_ref(), job) {
            *slot(inner) = None;
            inner.trouble = Some(service::chain(error).to_string());
            inner.is_analysing = false;
            inner.hint = 0;
            self.notify();
        }
    }
}

fn is_current(held: Option<&Job>, job: &Job) -> bool {
    held.is_some_and(|held| Arc::ptr_eq(held, job))
}

/// Waits until a turn has been shown for long enough, or the search is to stop.
fn pause(stop: &AtomicBool) {
    let until = Instant::now() + PACE;
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(20));
    }
}
