//! From looks to rates: what grew, over the last seconds.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use service::role::Role;
use tokio::time::Instant;

use super::observe::Observation;

/// Rates are taken over at most this long.
const WINDOW: Duration = Duration::from_secs(15);

/// Counters that only grow, though the processes behind them come and go: a counter that is smaller than before began
/// again at nothing with its process.
#[derive(Clone, Debug, Default)]
struct Grown {
    last: BTreeMap<(String, &'static str), f64>,
    total: BTreeMap<(Role, &'static str), f64>,
}

/// The looks of the last seconds.
#[derive(Debug, Default)]
pub struct History {
    counters: Vec<(Role, &'static str)>,
    grown: Grown,
    kept: VecDeque<Kept>,
}

#[derive(Debug)]
struct Kept {
    at: Instant,
    grown: BTreeMap<(Role, &'static str), f64>,
    /// Processor time by process and its number.
    used: BTreeMap<(String, u32), f64>,
}

impl History {
    /// A history of these counters.
    pub fn new(counters: &[(Role, &'static str)]) -> Self {
        Self {
            counters: counters.to_vec(),
            ..Self::default()
        }
    }

    /// Takes a look into account.
    pub fn push(&mut self, observation: &Observation) {
        for (name, process) in &observation.processes {
            let Some(page) = &process.page else { continue };
            for &(role, counter) in self.counters.iter().filter(|(role, _)| *role == process.role) {
                let Some(value) = page.sum(counter) else { continue };
                let before = self.grown.last.insert((name.clone(), counter), value);
                let total = self.grown.total.entry((role, counter)).or_default();
                // What a counter had when it was first seen happened before this start's first look.
                *total += match before {
                    Some(before) if value >= before => value - before,
                    _ => value,
                };
            }
        }
        let processes = observation.processes.iter();
        self.kept.push_back(Kept {
            at: observation.at,
            grown: self.grown.total.clone(),
            used: processes
                .filter_map(|(name, process)| {
                    Some(((name.clone(), process.pid?), process.usage?.cpu_seconds))
                })
                .collect(),
        });
        while self
            .kept
            .get(1)
            .is_some_and(|kept| observation.at - kept.at >= WINDOW)
        {
            self.kept.pop_front();
        }
    }

    /// How much a counter grew for each second of the last ones, over all processes of the role.
    /// `None` while it was not seen at two moments.
    pub fn rate(&self, role: Role, counter: &'static str) -> Option<f64> {
        let (seconds, grown) = self.growth(role, counter)?;
        (seconds > 0.0).then(|| grown / seconds)
    }

    /// How much one counter grew for each one of another, over the last seconds. `None` while the other did not grow.
    pub fn per(&self, role: Role, counter: &'static str, other: &'static str) -> Option<f64> {
        let (_, grown) = self.growth(role, counter)?;
        let (_, of) = self.growth(role, other)?;
        (of > 0.0).then(|| grown / of)
    }

    /// Cores that a process kept busy over the last seconds. `None` while it was not seen at two moments.
    pub fn cores(&self, name: &str) -> Option<f64> {
        let last = self.kept.back()?;
        let (process, used) = last.used.iter().find(|((own, _), _)| own == name)?;
        let first = self.kept.iter().find(|kept| kept.used.contains_key(process))?;
        let seconds = (last.at - first.at).as_secs_f64();
        (seconds > 0.0).then(|| (used - first.used.get(process).unwrap_or(used)) / seconds)
    }

    fn growth(&self, role: Role, counter: &'static str) -> Option<(f64, f64)> {
        let key = (role, counter);
        let last = self.kept.back()?;
        let first = self.kept.iter().find(|kept| kept.grown.contains_key(&key))?;
        let grown = last.grown.get(&key)? - first.grown.get(&key)?;
        (first.at < last.at).then(|| ((last.at - first.at).as_secs_f64(), grown))
    }
}

#[cfg(test)]
mod tests {
    use super::super::observe::Process;
    use super::*;
    use crate::page::Page;
    use service::process::Usage;

    const COUNTER: &str = "minuet_actor_visits_total";
    const OTHER: &str = "minuet_actor_fresh_evaluations_total";

    fn look(at: Instant, actors: &[(u32, Option<&str>, f64)]) -> Observation {
        let process = |&(pid, page, cpu_seconds): &(u32, Option<&str>, f64)| Process {
            role: Role::Actor,
            pid: Some(pid),
            page: page.map(Page::parse),
            ready: true,
            usage: Some(Usage {
                resident_bytes: 1,
                peak_resident_bytes: 1,
                cpu_seconds,
            }),
        };
        let numbered = actors.iter().enumerate();
        Observation {
            at,
            processes: numbered
                .map(|(number, actor)| (format!("actor-{number}"), process(actor)))
                .collect(),
            stats: None,
            model: None,
            own_usage: None,
        }
    }

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
        // One gives no answer, the other was started again: nothing is lost and nothing counted twice.
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
        assert_eq!(history.kept.len(), 16);
    }
}
