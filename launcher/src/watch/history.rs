//! [`History`]: the observations of the last seconds, and rates computed from them.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use service::role::Role;
use tokio::time::Instant;

use super::observe::Observation;

/// Longest time over which a rate is taken.
const WINDOW: Duration = Duration::from_secs(15);

/// Growth of counters over restarts of processes. If a counter is smaller than before, its process was restarted and the counter
/// began at 0.
#[derive(Clone, Debug, Default)]
struct Growth {
    last: BTreeMap<(String, &'static str), f64>,
    total: BTreeMap<(Role, &'static str), f64>,
}

/// Counters and processor times of the last seconds.
#[derive(Debug, Default)]
pub struct History {
    counters: Vec<(Role, &'static str)>,
    growth: Growth,
    samples: VecDeque<Sample>,
}

/// Figures of one observation.
#[derive(Debug)]
struct Sample {
    at: Instant,
    /// Growth of each counter since the first observation.
    growth: BTreeMap<(Role, &'static str), f64>,
    /// Processor time in seconds, by name of the process and its number, if it is one of this machine.
    cpu_seconds: BTreeMap<(String, Option<u32>), f64>,
}

impl History {
    /// Creates an empty history of these counters.
    pub fn new(counters: &[(Role, &'static str)]) -> Self {
        Self {
            counters: counters.to_vec(),
            ..Self::default()
        }
    }

    /// Adds an observation.
    pub fn push(&mut self, observation: &Observation) {
        for (name, process) in &observation.processes {
            let Some(page) = &process.page else { continue };
            for &(role, counter) in self.counters.iter().filter(|(role, _)| *role == process.role) {
                let Some(value) = page.sum(counter) else { continue };
                let before = self.growth.last.insert((name.clone(), counter), value);
                let total = self.growth.total.entry((role, counter)).or_default();
                *total += match before {
                    Some(before) if value >= before => value - before,
                    _ => value,
                };
            }
        }
        let processes = observation.processes.iter();
        self.samples.push_back(Sample {
            at: observation.at,
            growth: self.growth.total.clone(),
            cpu_seconds: processes
                .filter_map(|(name, process)| Some(((name.clone(), process.pid), process.usage?.cpu_seconds)))
                .collect(),
        });
        while self
            .samples
            .get(1)
            .is_some_and(|sample| observation.at - sample.at >= WINDOW)
        {
            self.samples.pop_front();
        }
    }

    /// Returns the growth of a counter per second, over all processes of the role; `None` before its second observation.
    pub fn rate(&self, role: Role, counter: &'static str) -> Option<f64> {
        let (seconds, grown) = self.growth(role, counter)?;
        (seconds > 0.0).then(|| grown / seconds)
    }

    /// Returns the growth of `counter` divided by that of `other`; `None` while `other` does not grow.
    pub fn per(&self, role: Role, counter: &'static str, other: &'static str) -> Option<f64> {
        let (_, grown) = self.growth(role, counter)?;
        let (_, of) = self.growth(role, other)?;
        (of > 0.0).then(|| grown / of)
    }

    /// Returns the average number of cores that a process used; `None` before its second observation.
    pub fn cores(&self, name: &str) -> Option<f64> {
        let last = self.samples.back()?;
        let (process, used) = last.cpu_seconds.iter().find(|((own, _), _)| own == name)?;
        let first = self
            .samples
            .iter()
            .find(|sample| sample.cpu_seconds.contains_key(process))?;
        let seconds = (last.at - first.at).as_secs_f64();
        let before = first.cpu_seconds.get(process).unwrap_or(used);
        // A process elsewhere that was restarted has used less than before.
        (seconds > 0.0 && used >= before).then(|| (used - before) / seconds)
    }

    /// Returns a time in seconds and the growth of a counter in it.
    fn growth(&self, role: Role, counter: &'static str) -> Option<(f64, f64)> {
        let key = (role, counter);
        let last = self.samples.back()?;
        let first = self
            .samples
            .iter()
            .find(|sample| sample.growth.contains_key(&key))?;
        let grown = last.growth.get(&key)? - first.growth.get(&key)?;
        (first.at < last.at).then(|| ((last.at - first.at).as_secs_f64(), grown))
    }
}

#[cfg(test)]
mod tests {
    use super::super::observe::tests::actors as look;
    use super::*;

    const COUNTER: &str = "minuet_actor_visits_total";
    const OTHER: &str = "minuet_actor_fresh_evaluations_total";

    #[tokio::test(start_paused = true)]
    async fn rates_are_sums_over_processes_and_survive_their_restarts() {
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let mut history = History::new(&[(Role::Actor, COUNTER), (Role::Actor, OTHER)]);
        let page = |visits: u32| format!("{COUNTER} {visits}\n{OTHER} {}", visits / 4);
        history.push(&look(
            at(0),
            &[(7, Some(&page(1_000)), 1.0), (8, Some(&page(40)), 0.0)],
        ));
        assert_eq!(history.rate(Role::Actor, COUNTER), None);
        history.push(&look(
            at(2),
            &[(7, Some(&page(1_200)), 3.0), (8, Some(&page(80)), 0.5)],
        ));
        assert_eq!(history.rate(Role::Actor, COUNTER), Some(120.0));
        assert_eq!(history.per(Role::Actor, OTHER, COUNTER), Some(0.25));
        assert_eq!(history.cores("actor-0"), Some(1.0));
        // One process does not answer, the other was restarted: no growth is lost or counted twice.
        history.push(&look(at(4), &[(7, None, 5.0), (9, Some(&page(20)), 0.1)]));
        assert_eq!(history.rate(Role::Actor, COUNTER), Some(260.0 / 4.0));
        assert_eq!(history.cores("actor-1"), None);
        assert_eq!(history.rate(Role::Learner, COUNTER), None);
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_last_seconds_count() {
        let began = Instant::now();
        let mut history = History::new(&[(Role::Actor, COUNTER)]);
        let mut visits = 0;
        for second in 0..100 {
            visits += if second < 50 { 10 } else { 1_000 };
            let page = format!("{COUNTER} {visits}");
            history.push(&look(
                began + Duration::from_secs(second),
                &[(7, Some(&page), 0.0)],
            ));
        }
        assert_eq!(history.rate(Role::Actor, COUNTER), Some(1_000.0));
        assert_eq!(history.samples.len(), 16);
    }
}
