//! The searches of a table, and the figures of an analysis. Each search runs on a thread of its own, holds one of the permits that all
//! tables share while it computes, and reports to the table as long as the table holds its flag.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use arena::players::{spec, thinker::Thinker};
use games::{Action, FirstValue, MoverValue, Player, erased::AnyState};
use search::{Decision, Reuse, Settings};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::table::{Job, Kind, Table};

/// Visits between two returns of the permit.
const SLICE: u32 = 100;
/// Time between two reports.
const REPORT: Duration = Duration::from_millis(200);
/// Time for which each turn is shown where the computer plays both sides.
const PACE: Duration = Duration::from_millis(700);
/// Leaves that the analysis evaluates at once.
const LEAVES: u32 = 8;

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
    pub mover: Player,
    /// True if the search has ended by itself.
    pub is_complete: bool,
    /// Figures of the legal actions, most visited first.
    pub rows: Vec<Row>,
}

/// Figures of one action.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The action.
    pub action: Action,
    /// Prior of the network.
    pub prior: f32,
    /// Visits of the action.
    pub visits: u32,
    /// Mean value of these visits for the player to act; `None` without visits.
    pub value: Option<MoverValue>,
    /// Most visited line that begins with the action; empty for all but the first rows.
    pub line: Vec<Action>,
}

impl Analysis {
    /// Figures of a decision. `line` gives the most visited line from an action on.
    pub fn of(decision: &Decision, visits: u32, by: &str, line: impl Fn(Action) -> Vec<Action>) -> Self {
        let mut rows: Vec<Row> = decision
            .actions
            .iter()
            .zip(&decision.priors)
            .zip(decision.visits.iter().zip(&decision.values))
            .map(|((&action, &prior), (&visits, &value))| Row {
                action,
                prior,
                visits,
                value: (visits > 0).then_some(value),
                line: Vec::new(),
            })
            .collect();
        rows.sort_by(|one, other| {
            (other.visits, other.prior.to_bits()).cmp(&(one.visits, one.prior.to_bits()))
        });
        for row in rows.iter_mut().take(LINES).filter(|row| row.visits > 0) {
            row.line = line(row.action);
        }
        Self {
            by: by.into(),
            visits,
            value: decision.value.of_first(decision.mover),
            mover: decision.mover,
            is_complete: false,
            rows,
        }
    }
}

impl Table {
    /// Makes a search of the position that is shown after `at` actions. The opponent's search is of the newest position.
    pub(super) fn search(self: Arc<Self>, kind: Kind, job: &Job, state: &dyn AnyState, at: u64) {
        let ended = match kind {
            Kind::Opponent => self.let_opponent_play(job),
            Kind::Analysis => self.analyse(job, state, at),
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

    /// Analyses a position.
    fn analyse(&self, job: &Job, state: &dyn AnyState, number: u64) -> anyhow::Result<()> {
        let player = self.tables.player(self.game(), &self.seats.advisor)?;
        let (settings, searches) = player.searches(1)?;
        let settings = Settings {
            leaves: LEAVES,
            noise_fraction: 0.0,
            reuse: Reuse::Drop,
            // An analysis overlooks no win by one move, and continues where the outcome is proven.
            solver: true,
            stop_when_solved: settings.stop_when_solved && self.game().players == 1,
            ..settings.clone()
        };
        let mut thinker = Thinker::new(state, settings, self.key(1 + number), searches)?;
        // The first evaluations are reported at once.
        let mut last = None::<Instant>;
        loop {
            let wanted = self.wanted_visits(&self.inner.lock());
            let goal = (thinker.search().visits_done() + SLICE).min(wanted);
            {
                let _permit = self.permit(&self.tables.searches);
                if job.load(Ordering::Relaxed) {
                    return Ok(());
                }
                thinker.think(goal, job, |thinker| {
                    if last.is_none_or(|last| last.elapsed() >= REPORT) {
                        last = Some(Instant::now());
                        self.report(job, thinker, player.name(), false);
                    }
                })?;
            }
            // A search that proves its result ends early.
            let visits = thinker.search().visits_done();
            let is_complete = visits < goal;
            let is_done = visits >= wanted || is_complete;
            self.report(job, &thinker, player.name(), is_done);
            if is_done {
                return Ok(());
            }
        }
    }

    fn report(&self, job: &Job, thinker: &Thinker, by: &str, is_done: bool) {
        let search = thinker.search();
        let mut analysis = Analysis::of(&search.decision(), search.visits_done(), by, |action| {
            search.principal_variation(Some(action))
        });
        analysis.is_complete = is_done;
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
    fn permit<'a>(&self, permits: &'a Arc<Semaphore>) -> Option<SemaphorePermit<'a>> {
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
