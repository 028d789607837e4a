//! [`Engine`]: threads that search positions, each some of them at once.
//!
//! A job that has had its slice of visits goes back to the queue with its tree if others wait. The tree of a job that has ended is kept as it
//! was before the end cut a batch short: from there a longer search takes the same visits as one that was never interrupted.

use std::{
    mem,
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
    time::Instant,
};

use anyhow::Context as _;
use parking_lot::{Condvar, Mutex};

use super::{
    End, Job, Report, Reporter,
    queue::{Queue, Task},
    trees::Trees,
};
use crate::{
    Player,
    players::searches::{AnySearch, Searches},
};

/// Positions that one thread searches at once.
const WIDTH: usize = 12;
/// Visits after which a job makes room for others.
const SLICE: u32 = 64;
/// Visits between two cuts of every search, so that visits without the network cannot run for long without a look at the flag to stop.
const SEGMENT: u32 = 4096;

/// An analysis engine. All jobs are cancelled when it is dropped.
#[derive(Debug)]
pub struct Engine {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    trees: Mutex<Trees>,
    /// Wakes threads that have no job.
    wake: Condvar,
}

#[derive(Debug, Default)]
struct State {
    queue: Queue,
    /// Number of the next job.
    next: u64,
    /// Threads without a job.
    idle: usize,
    /// Number of threads that have had a job.
    used: usize,
    is_closed: bool,
}

impl Engine {
    /// Starts an engine that searches with `threads` threads. The first thread with a job takes the first copy of each network, and so on.
    pub fn start(threads: usize) -> Self {
        let shared = Arc::new(Shared::default());
        let start = |_| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || Worker::new(&shared).run())
        };
        Self {
            threads: (0..threads.max(1)).map(start).collect(),
            shared,
        }
    }

    /// Adds a job. `report` is called after each of its batches and once at its end, on a thread that searches.
    pub fn submit(&self, job: Job, report: impl FnMut(&Report<'_>) + Send + 'static) {
        let report: Reporter = Box::new(report);
        let mut state = self.shared.state.lock();
        let number = state.next;
        state.next += 1;
        state.queue.push(Task {
            job,
            report,
            number,
            began: None,
            fresh: 0,
            tree: None,
        });
        self.shared.wake.notify_one();
    }

    /// Runs jobs to their ends and returns what `look` sees of each, in order.
    ///
    /// # Errors
    /// A search fails or is stopped.
    pub fn run<T: Send + 'static>(
        &self,
        jobs: impl IntoIterator<Item = Job>,
        look: impl Fn(&dyn AnySearch) -> T + Clone + Send + 'static,
    ) -> anyhow::Result<Vec<T>> {
        let mut ended = Vec::new();
        for job in jobs {
            let (sender, receiver) = mpsc::channel();
            let look = look.clone();
            self.submit(job, move |report| {
                let result = match (&report.end, report.search) {
                    (None, _) => return,
                    (Some(End::Done), Some(search)) => Ok(look(search)),
                    (Some(End::Failed(reason)), _) => Err(reason.clone()),
                    (Some(_), _) => Err("the search was stopped".into()),
                };
                // Nobody waits after an earlier failure.
                let _ = sender.send(result);
            });
            ended.push(receiver);
        }
        let results = ended.into_iter().map(|receiver| {
            let result = receiver.recv().context("the analysis has ended")?;
            result.map_err(anyhow::Error::msg)
        });
        results.collect()
    }

    /// Forgets all trees that no job is searching.
    pub fn clear_trees(&self) {
        self.shared.trees.lock().clear();
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shared.state.lock().is_closed = true;
        self.shared.wake.notify_all();
        for thread in self.threads.drain(..) {
            // The last owner may be a report on one of the threads. A thread that has panicked has said so.
            if thread.thread().id() != thread::current().id() {
                let _ = thread.join();
            }
        }
        let next = || self.shared.state.lock().queue.pop();
        while let Some(mut task) = next() {
            task.report(None, Some(End::Cancelled));
        }
    }
}

/// A thread that searches.
struct Worker<'a> {
    shared: &'a Shared,
    /// Number of the thread among those that have had a job; `None` before its first one.
    number: Option<usize>,
    /// Searches by network and game.
    lanes: Vec<Lane>,
}

/// Searches of one thread that share batches.
struct Lane {
    player: Arc<Player>,
    searches: Box<dyn Searches>,
    active: Vec<Active>,
}

/// A job that is at work.
struct Active {
    task: Task,
    slot: usize,
    /// Visits at the last charge.
    charged: u32,
    /// The tree before the last batches, which the end of the job may cut short.
    kept: Option<Box<dyn AnySearch>>,
}

impl<'a> Worker<'a> {
    const fn new(shared: &'a Shared) -> Self {
        Self {
            shared,
            number: None,
            lanes: Vec::new(),
        }
    }

    fn run(mut self) {
        while self.take_jobs() {
            for lane in &mut self.lanes {
                lane.round(self.shared);
            }
            self.lanes.retain(|lane| !lane.active.is_empty());
        }
        let active = self.lanes.iter_mut().flat_map(|lane| &mut lane.active);
        active.for_each(|active| active.task.report(None, Some(End::Cancelled)));
    }

    /// Takes jobs until this thread has its share. Waits while there are none; returns false once the engine is closed.
    fn take_jobs(&mut self) -> bool {
        loop {
            let active: usize = self.lanes.iter().map(|lane| lane.active.len()).sum();
            let mut state = self.shared.state.lock();
            if state.is_closed {
                return false;
            }
            // The other threads take a job each before this one takes a second.
            let takes = active == 0 || (active < WIDTH && state.queue.len() > state.idle);
            let next = if takes { state.queue.pop() } else { None };
            match next {
                Some(task) => {
                    if self.number.is_none() {
                        self.number = Some(state.used);
                        state.used += 1;
                    }
                    drop(state);
                    self.begin(task);
                }
                None if active > 0 => return true,
                None => {
                    state.idle += 1;
                    self.shared.wake.wait(&mut state);
                    state.idle -= 1;
                }
            }
        }
    }

    fn begin(&mut self, mut task: Task) {
        if task.is_stopped() {
            return self.shared.end(task, None, End::Cancelled);
        }
        task.began.get_or_insert_with(Instant::now);
        let lane = match self
            .lanes
            .iter_mut()
            .position(|lane| lane.player.searches_with(&task.job.player))
        {
            Some(place) => &mut self.lanes[place],
            None => match task.job.player.searches(self.number.unwrap_or_default()) {
                Ok((_, searches)) => {
                    let player = Arc::clone(&task.job.player);
                    self.lanes.push(Lane {
                        player,
                        searches,
                        active: Vec::new(),
                    });
                    let last = self.lanes.len() - 1;
                    &mut self.lanes[last]
                }
                Err(error) => return self.shared.end(task, None, End::Failed(format!("{error:#}"))),
            },
        };
        let interrupted = task.tree.take();
        let Job {
            state, settings, key, ..
        } = &task.job;
        // A tree with more visits than this job takes is of no use to it.
        let kept = || self.shared.trees.lock().take(&task.tree_name(), settings.visits);
        let begun = match interrupted.or_else(kept) {
            Some(tree) => lane.searches.resume(tree),
            None => lane.searches.begin(&**state, settings.clone(), *key),
        };
        match begun {
            Ok(slot) => lane.active.push(Active {
                charged: lane.searches.search(slot).visits_done(),
                task,
                slot,
                kept: None,
            }),
            Err(error) => self.shared.end(task, None, End::Failed(format!("{error:#}"))),
        }
    }
}

impl Lane {
    /// Continues every search by one batch, and ends those that are done.
    fn round(&mut self, shared: &Shared) {
        if let Err(error) = self.evaluate() {
            for active in self.active.drain(..) {
                let search = self.searches.end(active.slot);
                let reason = End::Failed(format!("{error:#}"));
                shared.end(active.task, Some(&*search), reason);
            }
            return;
        }
        for mut active in mem::take(&mut self.active) {
            let search = self.searches.search_mut(active.slot);
            match active.after_batch(search, shared) {
                Next::Continues => self.active.push(active),
                Next::Pauses => {
                    active.task.tree = Some(self.searches.end(active.slot));
                    shared.pause(active.task);
                }
                Next::Ends(end) => {
                    let search = self.searches.end(active.slot);
                    let is_cut = search.visits_done() >= active.task.job.settings.visits;
                    let name = active.task.tree_name();
                    let tree = if is_cut { active.kept } else { Some(search.copy()) };
                    if let Some(tree) = tree {
                        shared.trees.lock().put(name, tree);
                    }
                    shared.end(active.task, Some(&*search), end);
                }
            }
        }
    }

    fn evaluate(&mut self) -> anyhow::Result<()> {
        let mut waits = false;
        for active in &mut self.active {
            waits |= active.gather(&mut *self.searches)?;
        }
        if waits {
            self.searches.evaluate()?;
        }
        Ok(())
    }
}

/// Next step of a job after a batch.
enum Next {
    Continues,
    Pauses,
    Ends(End),
}

impl Active {
    /// Gathers leaves until the search waits for the network or has done its slice. Returns true if it waits.
    fn gather(&mut self, searches: &mut dyn Searches) -> anyhow::Result<bool> {
        loop {
            let search = searches.search_mut(self.slot);
            let done = search.visits_done();
            search.set_visits(self.task.job.settings.visits.min((done / SEGMENT + 1) * SEGMENT));
            if search.is_decided() {
                return Ok(false);
            }
            let before = searches.waiting();
            let waits = searches.gather(self.slot)?;
            self.task.fresh += (searches.waiting() - before) as u64;
            let done = searches.search(self.slot).visits_done();
            if waits || done >= self.charged.saturating_add(SLICE) {
                return Ok(waits);
            }
        }
    }

    fn after_batch(&mut self, search: &mut dyn AnySearch, shared: &Shared) -> Next {
        let goal = self.task.job.settings.visits;
        let done = search.visits_done();
        search.set_visits(goal);
        let is_done = search.is_decided();
        // The first batch evaluates the position only, and a job that has begun makes a visit.
        let ends = if is_done || done > 0 && self.task.is_time_up() {
            Some(End::Done)
        } else {
            (done > 0 && self.task.is_stopped()).then_some(End::Cancelled)
        };
        if ends.is_some() || done >= self.charged.saturating_add(SLICE) {
            let visits = done - mem::replace(&mut self.charged, done);
            let queue = &mut shared.state.lock().queue;
            queue.charge(self.task.job.client, visits);
            if ends.is_none() && queue.may_interrupt(search.counters().bytes) {
                return Next::Pauses;
            }
        }
        match ends {
            Some(end) => Next::Ends(end),
            None => {
                if self.kept.is_none() && done > 0 && done < goal && goal - done < SLICE {
                    self.kept = Some(search.copy());
                }
                self.task.report(Some(search), None);
                Next::Continues
            }
        }
    }
}

impl Shared {
    /// Puts an interrupted job back into the queue.
    fn pause(&self, task: Task) {
        let mut state = self.state.lock();
        let client = task.job.client;
        state.queue.push(task);
        state.queue.leave(client);
        self.wake.notify_one();
    }

    /// Reports the end of a job.
    fn end(&self, mut task: Task, search: Option<&dyn AnySearch>, end: End) {
        self.state.lock().queue.leave(task.job.client);
        task.report(search, Some(end));
    }
}
