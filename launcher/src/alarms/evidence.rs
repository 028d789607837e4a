//! [`Evidence`]: the figures that alarms look at.

use std::time::Duration;

use service::role::Role;

use super::Learned;
use crate::page::Page;

/// Figures of a run at one moment. What is not known raises no alarm.
#[derive(Clone, Debug, Default)]
pub struct Evidence<'a> {
    /// Processes that the run should have.
    pub processes: Vec<Seen<'a>>,
    /// Time since the newest stored game ended, or since the run was started if there is no game.
    pub newest_game_age: Option<Duration>,
    /// Newest checkpoint of the run.
    pub newest_checkpoint: Option<NewestCheckpoint>,
    /// Execution provider that the run's configuration names; `None` if it leaves the choice to a measurement.
    pub provider: Option<&'static str>,
    /// Figures of the run's learning.
    pub learned: Learned,
}

/// A process of the run, and its metrics page now and earlier.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Name, e.g. `actor-1`.
    pub name: &'a str,
    /// Role.
    pub role: Role,
    /// Metrics page; `None`: the process does not answer.
    pub now: Option<&'a Page>,
    /// An earlier page of the same process; `None`: counters have grown from 0.
    pub before: Option<&'a Page>,
}

/// Newest checkpoint of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NewestCheckpoint {
    /// Training steps.
    pub step: u64,
    /// Time since it was published.
    pub age: Duration,
}

impl Seen<'_> {
    /// Value of a metric now, summed over its labels.
    pub fn value(&self, metric: &str) -> Option<f64> {
        self.now?.sum(metric)
    }

    /// Growth of a counter. A counter that has become smaller began anew at 0.
    pub fn increase(&self, metric: &str) -> Option<f64> {
        let now = self.value(metric)?;
        let before = self.before.and_then(|page| page.sum(metric)).unwrap_or(0.0);
        Some(if before <= now { now - before } else { now })
    }

    /// Quantile of the values that a histogram has gained, from the upper ends of its buckets.
    pub fn quantile(&self, histogram: &str, share: f64) -> Option<f64> {
        let bucket = format!("{histogram}_bucket");
        let now = self.now?.buckets(&bucket);
        let before = self.before.map(|page| page.buckets(&bucket)).unwrap_or_default();
        let gained = now.iter().map(|&(end, count)| {
            let earlier = before.iter().find(|(other, _)| *other == end);
            (end, count - earlier.map_or(0.0, |(_, count)| *count))
        });
        let gained: Vec<(f64, f64)> = gained.collect();
        let all = gained.last().map(|(_, count)| *count).filter(|&all| all > 0.0)?;
        let found = gained.into_iter().find(|(_, count)| *count >= share * all);
        found.map(|(end, _)| end)
    }
}

impl Evidence<'_> {
    /// Processes of a role.
    pub fn of(&self, role: Role) -> impl Iterator<Item = &Seen<'_>> {
        self.processes.iter().filter(move |seen| seen.role == role)
    }
}
