//! [`Monitor`]: looks at a search after each of its batches, reports the results so far, and decides when it ends.

use std::{
    collections::HashMap,
    sync::{atomic::Ordering, mpsc::SyncSender},
    time::{Duration, Instant},
};

use arena::players::searches::AnySearch;
use games::{Action, chess::Chess};

use super::{
    mate,
    report::{self, Snapshot},
    worker::{self, Event, Task},
};

/// Shortest time between `info` lines, which are sent when the best move changes or the line grows.
const INFO_PAUSE: Duration = Duration::from_millis(50);
/// Longest time between `info` lines.
const INFO_INTERVAL: Duration = Duration::from_secs(1);

/// A search, and the last report about it.
pub struct Monitor<'a> {
    task: &'a Task,
    root: &'a Chess,
    events: &'a SyncSender<Event>,
    shown: Instant,
    shown_best: Option<Action>,
    shown_depth: usize,
    /// Proven mate distances, by first move and length of the line; `None`: not proven.
    mates: HashMap<(Action, usize), Option<i32>>,
}

impl<'a> Monitor<'a> {
    /// Makes the monitor of a search of `root` that has reported nothing.
    pub fn new(task: &'a Task, root: &'a Chess, events: &'a SyncSender<Event>) -> Self {
        Self {
            task,
            root,
            events,
            shown: task.began,
            shown_best: None,
            shown_depth: 0,
            mates: HashMap::new(),
        }
    }

    /// Reports the results so far. Returns true if the search should end.
    pub fn update(&mut self, search: &dyn AnySearch) -> bool {
        if search.visits_done() == 0 {
            return false;
        }
        let line = search.principal_variation(None);
        let first = line.first().copied();
        if first.is_some() {
            *self.task.control.best.lock() = Some(worker::best(self.root, &line));
        }
        let is_new = first != self.shown_best || line.len() > self.shown_depth;
        let pause = if is_new { INFO_PAUSE } else { INFO_INTERVAL };
        if self.shown.elapsed() >= pause {
            self.show(search);
        }
        let limits = &self.task.limits;
        self.task.control.stop.load(Ordering::Relaxed)
            || limits.depth.is_some_and(|depth| line.len() >= depth as usize)
            || self.has_found_mate(&line)
            || self.is_time_up(search)
    }

    /// Sends the `info` lines.
    pub fn show(&mut self, search: &dyn AnySearch) {
        let line = search.principal_variation(None);
        self.shown = Instant::now();
        self.shown_best = line.first().copied();
        self.shown_depth = line.len();
        let (root, options) = (self.root, &self.task.options);
        let snapshot = Snapshot {
            root,
            search,
            elapsed: self.task.began.elapsed(),
            multi_pv: options.multi_pv as usize,
            show_wdl: options.show_wdl,
        };
        let lines = report::lines(&snapshot, |line| {
            let key = (line.first().copied().unwrap_or_default(), line.len());
            *self.mates.entry(key).or_insert_with(|| mate::score(root, line))
        });
        // Sending fails only if the engine has ended.
        let _ = self.events.send(Event::Info(self.task.id, lines));
    }

    fn has_found_mate(&self, line: &[Action]) -> bool {
        let Some(moves) = self.task.limits.mate else {
            return false;
        };
        line.len().div_ceil(2) <= moves as usize
            && mate::score(self.root, line).is_some_and(|found| found > 0)
    }

    fn is_time_up(&self, search: &dyn AnySearch) -> bool {
        let Some((began, budget)) = *self.task.control.clock.lock() else {
            return false;
        };
        budget.is_up(began.elapsed(), search)
    }
}
