//! [`Sample`]: the counters of the processes at one moment, from their metrics pages.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use service::{
    process::{self, Usage},
    role::Role,
};

use launcher::page::Page;

use super::system::{System, VISITS};
use crate::harness::page;

/// Roles of the benchmark.
pub const ROLES: [Role; 3] = [Role::Actor, Role::InferenceServer, Role::ReplayStore];
const TIMEOUT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(5);

/// All counters at one moment.
pub struct Sample {
    pub at: Instant,
    pages: Vec<(Role, Page, Usage)>,
}

impl Sample {
    /// Takes a sample right after the actor has updated its page, which it does every second.
    pub fn take(system: &System) -> anyhow::Result<Self> {
        let actor = system.process(Role::Actor)?.1;
        let old = page::fetch(actor)?.sum(VISITS);
        let began = Instant::now();
        while page::fetch(actor)?.sum(VISITS) <= old {
            ensure!(
                began.elapsed() < TIMEOUT,
                "the actor has stopped playing; --logs shows why"
            );
            thread::sleep(POLL);
        }
        let at = Instant::now();
        let mut pages = Vec::new();
        for role in ROLES {
            let (pid, metrics) = system.process(role)?;
            let usage = process::usage(pid)
                .with_context(|| format!("{} has ended; --logs shows why", role.binary()))?;
            pages.push((role, page::fetch(metrics)?, usage));
        }
        Ok(Self { at, pages })
    }

    /// Returns the value of a role's counter, summed over its labels; 0 if there is none.
    pub fn counter(&self, role: Role, name: &str) -> f64 {
        self.of(role).and_then(|(page, _)| page.sum(name)).unwrap_or(0.0)
    }

    /// Returns the processor time that a role has used, in seconds.
    pub fn cpu_seconds(&self, role: Role) -> f64 {
        self.of(role).map_or(0.0, |(_, usage)| usage.cpu_seconds)
    }

    /// Returns the resident memory of a role, in bytes.
    pub fn memory(&self, role: Role) -> u64 {
        self.of(role).map_or(0, |(_, usage)| usage.resident_bytes)
    }

    fn of(&self, role: Role) -> Option<(&Page, &Usage)> {
        let found = self.pages.iter().find(|(own, _, _)| *own == role);
        found.map(|(_, page, usage)| (page, usage))
    }
}
