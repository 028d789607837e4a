//! The processes' own counters at a moment, from their metrics pages.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use service::{
    process::{self, Usage},
    role::Role,
};

use super::{
    super::page::{Page, page},
    team::Team,
};

pub const VISITS: &str = "minuet_actor_visits_total";

const ROLES: [Role; 3] = [Role::Actor, Role::InferenceServer, Role::ReplayStore];
const PATIENCE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(5);

/// All counters at a moment.
pub struct Sample {
    pub at: Instant,
    pages: Vec<(Role, Page, Usage)>,
}

impl Sample {
    /// Takes a sample at the moment at which the actor brings its page up to date, which it does every second.
    pub fn take(team: &Team) -> anyhow::Result<Self> {
        let actor = team.member(Role::Actor)?.metrics;
        let old = page(actor)?.sum(VISITS);
        let began = Instant::now();
        while page(actor)?.sum(VISITS) <= old {
            ensure!(
                began.elapsed() < PATIENCE,
                "the actor has stopped playing; --logs shows why"
            );
            thread::sleep(POLL);
        }
        let at = Instant::now();
        let mut pages = Vec::new();
        for role in ROLES {
            let member = team.member(role)?;
            let usage = process::usage(member.pid())
                .with_context(|| format!("{} has ended; --logs shows why", role.binary()))?;
            pages.push((role, page(member.metrics)?, usage));
        }
        Ok(Self { at, pages })
    }

    /// A counter of a role, summed over its labels; 0 where there is none.
    pub fn counter(&self, role: Role, name: &str) -> f64 {
        self.of(role).map_or(0.0, |(page, _)| page.sum(name))
    }

    /// Processor time that a role has used.
    pub fn cpu_seconds(&self, role: Role) -> f64 {
        self.of(role).map_or(0.0, |(_, usage)| usage.cpu_seconds)
    }

    /// Resident bytes of a role.
    pub fn memory(&self, role: Role) -> u64 {
        self.of(role).map_or(0, |(_, usage)| usage.resident_bytes)
    }

    fn of(&self, role: Role) -> Option<(&Page, &Usage)> {
        let found = self.pages.iter().find(|(own, _, _)| *own == role);
        found.map(|(_, page, usage)| (page, usage))
    }
}
