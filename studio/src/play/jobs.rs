//! The searches of a table, and the figures of an analysis. The engine of all tables analyses. Each other search runs on a thread of its
//! own and holds one of the permits that all tables share while it computes. All report to the table as long as the table holds their flag.

use std::{
    ptr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::anyhow;
use arena::{
    Player,
    analysis::{self, End, Figures, figures::Row},
    players::{searches::AnySearch, spec},
};
use games::{Course, FirstValue, erased::AnyState};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::table::{Job, Kind, Table};

/// Time between two reports.
const REPORT: Duration = Duration::from_millis(200);
/// Time for which each turn is shown where the computer plays both sides.
const PACE: Duration = Duration::from_millis(700);
/// Lines that an analysis keeps.
const LINES: usize = 8;

/// Figures of a search of one position.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// Name of the evaluator.
    pub by: String,
    /// Visits so far.
    pub visits: u32,
    /// Value of the position, for the first player.
    pub value: FirstValue,
    /// Player to act.
    pub mover: games::Player,
    /// True if the search has ended by itself.
    pub is_complete: bool,
    /// Figures of the legal actions, most visited first.
    pub rows: Vec<Row>,
}

impl Analysis {
    /// Figures of a search by the network called `by`.
    pub(super) fn of(search: &dyn AnySearch, by: &str, is_complete: bool) -> Self {
        let figures = Figures::of(search, LINES);
        Self {
            by: by.into(),
            visits: figures.visits,
            value: figures.first_value(),
            mover: figures.mover,
            is_complete,
            rows: figures.rows,
        }
    }
}

impl Table {
    /// Makes a search of the position that is shown. The opponent's search is of the newest position.
    pub(super) fn search(self: Arc<Self>, kind: Kind, job: &Job, state: &dyn AnyState) {
        let ended = match kind {
            Kind::Opponent => self.let_opponent_play(job),
            // The engine reports the end.
            Kind::Analysis => match self.analyse(job) {
                Ok(()) => return,
                failed => failed,
            },
            Kind::Review => self.review(job),
            Kind::Exact => {
                self.solve(job, state);
                Ok(())
            }
        };
        self.ended(kind, job, ended);
    }

    /// Lets the computer play until a person is to act or the game is over.
    fn let_opponent_play(self: &Arc<Self>, job: &Job) -> anyhow::Result<()> {
        let player = self.tables.player(self.game(), &self.seats.opponent)?;
        let (begin, actions) = {
            let inner = self.inner.lock();
            (inner.course.begin().copy(), inner.course.actions().to_vec())
        };
        let mut solo = player.solo(&*begin, self.key(0))?;
        let permits = match self.seats.opponent.kind {
            spec::Kind::Perfect => &self.tables.solving,
            _ => &self.tables.searches,
        };
        for action in actions {
            solo.play(action)?;
        }
        loop {
            let chosen = {
                let _permit = self.permit(permits);
                if job.load(Ordering::Relaxed) {
                    return Ok(());
                }
                solo.choose(job)
            };
            // A player that was stopped may have no action.
            if job.load(Ordering::Relaxed) {
                return Ok(());
            }
            let action = chosen?;
            let mover = solo.state().to_move();
            let answer = solo.thinker().map(|thinker| {
                let search = thinker.search();
                let value = search.decision().value.of_first(mover);
                (value.get(), search.visits_done())
            });
            solo.play(action)?;
            {
                let inner = &mut *self.inner.lock();
                if !inner.is_current(Kind::Opponent, job) {
                    return Ok(());
                }
                inner.course.play(action)?;
                inner.at = inner.course.actions().len();
                inner.last_value = answer;
                // Stops this search if a person is to act.
                self.moved(inner);
                if !inner.is_current(Kind::Opponent, job) {
                    return Ok(());
                }
            }
            if self.seats.people.is_empty() && !solo.state().is_mid_turn() {
                pause(job);
            }
        }
    }

    /// Gives the position that is shown to the analysis engine.
    fn analyse(self: &Arc<Self>, job: &Job) -> anyhow::Result<()> {
        let player = Arc::new(self.tables.player(self.game(), &self.seats.advisor)?);
        let by = player.name().to_owned();
        let asked = {
            let inner = self.inner.lock();
            // The position is another one if the job is not current.
            if !inner.is_current(Kind::Analysis, job) {
                return Ok(());
            }
            self.asked(job, player, &inner.course, inner.at, self.wanted_visits(&inner))
        };
        let (table, job) = (Arc::clone(self), Arc::clone(job));
        // The first evaluations are reported at once.
        let mut last = None::<Instant>;
        self.tables.engine.submit(asked, move |report| {
            let is_late = last.is_none_or(|last| last.elapsed() >= REPORT);
            if let Some(search) = report.search.filter(|_| is_late || report.end.is_some()) {
                last = Some(Instant::now());
                table.report(&job, Analysis::of(search, &by, report.end == Some(End::Done)));
            }
            match &report.end {
                None => {}
                Some(End::Failed(reason)) => table.ended(Kind::Analysis, &job, Err(anyhow!(reason.clone()))),
                Some(_) => table.ended(Kind::Analysis, &job, Ok(())),
            }
        });
        Ok(())
    }

    /// A search of the position after `at` actions, for the analysis engine.
    pub(super) fn asked(
        &self,
        job: &Job,
        player: Arc<Player>,
        course: &Course,
        at: usize,
        visits: u32,
    ) -> analysis::Job {
        let (begin, actions) = (course.begin(), &course.actions()[..at]);
        let place = format!("{}|{}|{actions:?}", self.game().title(), begin.position());
        analysis::Job {
            key: self.key(1 + at as u64),
            client: ptr::from_ref(self).addr() as u64,
            stop: Arc::clone(job),
            ..analysis::Job::new(player, course.state_after(at), place, visits)
        }
    }

    fn report(&self, job: &Job, analysis: Analysis) {
        let inner = &mut *self.inner.lock();
        if inner.is_current(Kind::Analysis, job) {
            inner.analysis = Some(analysis);
            self.notify();
        }
    }

    /// Finds exact values of the actions of a position.
    fn solve(&self, job: &Job, state: &dyn AnyState) {
        let _permit = self.permit(&self.tables.solving);
        if job.load(Ordering::Relaxed) {
            return;
        }
        state.solve_actions(job, &mut |action, value| {
            let inner = &mut *self.inner.lock();
            if inner.is_current(Kind::Exact, job) {
                inner.exact.push((action, value));
                self.notify();
            }
        });
    }

    /// Waits for a permit. `None` if the table is closed, which no search outlives.
    pub(super) fn permit<'a>(&self, permits: &'a Arc<Semaphore>) -> Option<SemaphorePermit<'a>> {
        self.runtime.block_on(permits.acquire()).ok()
    }
}

/// Waits until a turn has been shown for long enough, or the search is to stop.
fn pause(stop: &AtomicBool) {
    let until = Instant::now() + PACE;
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(20));
    }
}
