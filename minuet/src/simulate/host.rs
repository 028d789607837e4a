//! [`Host`]: a machine whose cores are shared equally by what runs on it.

/// A piece of work that a host executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A thread of an actor plays until its open request is full or no game can continue.
    Play(usize),
    /// An inference server reads a request.
    Read(usize),
    /// A device computes a batch.
    Compute(usize),
    /// The replay store appends or samples.
    Store,
    /// The learner trains on a batch.
    Train,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    work: Work,
    /// Seconds that are left when every thread of the task has a core.
    left: f64,
    threads: f64,
    /// Processor time of the whole task, in seconds.
    whole: f64,
}

/// Shortest time that counts as work, in seconds: differences below it are rounding.
const TICK: f64 = 1e-10;

/// A machine. Where more threads run than it has cores, all of them become slower by the same factor.
#[derive(Debug)]
pub struct Host {
    cores: f64,
    tasks: Vec<Task>,
    /// Time up to which the tasks have run.
    at: f64,
    /// Number of changes; a completion that was foreseen before the last change does not count.
    pub changes: u64,
}

impl Host {
    /// An idle machine.
    pub fn new(cores: f64) -> Self {
        Self {
            cores,
            tasks: Vec::new(),
            at: 0.0,
            changes: 0,
        }
    }

    /// Begins a task of `seconds` on `threads` threads.
    pub fn start(&mut self, now: f64, work: Work, seconds: f64, threads: u32) {
        self.run_to(now);
        self.tasks.push(Task {
            work,
            left: seconds,
            threads: f64::from(threads),
            whole: seconds * f64::from(threads),
        });
    }

    /// Abandons a task, if it runs.
    pub fn stop(&mut self, now: f64, work: Work) {
        self.run_to(now);
        self.tasks.retain(|task| task.work != work);
    }

    /// Removes a completed task and returns it with its processor time, in seconds.
    pub fn completed(&mut self, now: f64) -> Option<(Work, f64)> {
        self.run_to(now);
        let index = self.tasks.iter().position(|task| task.left <= TICK)?;
        let task = self.tasks.remove(index);
        Some((task.work, task.whole))
    }

    /// Seconds until the next completion if nothing else begins; `None` without a task.
    pub fn remaining(&mut self) -> Option<f64> {
        self.changes += 1;
        let speed = self.speed();
        let least = self.tasks.iter().map(|task| task.left).min_by(f64::total_cmp)?;
        Some(least.max(0.0) / speed)
    }

    /// Seconds of work that a task completes in each second.
    fn speed(&self) -> f64 {
        let threads: f64 = self.tasks.iter().map(|task| task.threads).sum();
        if threads > self.cores {
            self.cores / threads
        } else {
            1.0
        }
    }

    fn run_to(&mut self, now: f64) {
        let done = (now - self.at) * self.speed();
        for task in &mut self.tasks {
            task.left -= done;
        }
        self.at = now;
    }
}
