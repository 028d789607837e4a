//! Observes all processes once: metrics pages, health, memory, and the replay store's counts.

use std::collections::BTreeMap;

use config::RunConfig;
use futures::{StreamExt, stream::FuturesUnordered};
use proto::v1::{
    DescribeModelRequest, ModelDescription, StatsReply, StatsRequest, evaluator_client::EvaluatorClient,
    replay_store_client::ReplayStoreClient,
};
use service::{
    connect::{self, Link},
    process::{self, Usage},
    role::Role,
};
use tokio::time::Instant;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use crate::{
    page::{Page, TIMEOUT},
    run::addresses::Member,
    watch::{
        disks::{self, Disk},
        names,
    },
};

/// State of all processes at one moment.
#[derive(Clone, Debug)]
pub struct Observation {
    /// Time of the observation.
    pub at: Instant,
    /// Processes by name.
    pub processes: BTreeMap<String, Process>,
    /// Statistics of the replay store; `None` while it does not answer.
    pub stats: Option<StatsReply>,
    /// Model that serves the actors; `None` while there is none.
    pub model: Option<ModelDescription>,
    /// Memory and processor time of `minuet up` itself; `None` if the processes run elsewhere.
    pub own_usage: Option<Usage>,
    /// Free bytes of the disk of the stored games; `None` if they are not known.
    pub free_bytes: Option<u64>,
    /// Other disks of the run; none if the processes run elsewhere.
    pub disks: Vec<Disk>,
}

/// One process at one moment.
#[derive(Clone, Debug)]
pub struct Process {
    /// Role.
    pub role: Role,
    /// Process number, while the process runs on this machine.
    pub pid: Option<u32>,
    /// Metrics page; `None` while the process does not answer.
    pub page: Option<Page>,
    /// True if the process answers and, if it is a server, reports SERVING.
    pub ready: bool,
    /// Memory and processor time.
    pub usage: Option<Usage>,
}

impl Observation {
    /// Metrics pages of all processes of a role.
    pub fn pages(&self, role: Role) -> impl Iterator<Item = &Page> {
        let processes = self
            .processes
            .values()
            .filter(move |process| process.role == role);
        processes.filter_map(|process| process.page.as_ref())
    }

    /// Sum of a metric over all processes of a role; `None` if none has it.
    pub fn sum(&self, role: Role, metric: &str) -> Option<f64> {
        self.pages(role)
            .filter_map(|page| page.sum(metric))
            .reduce(|left, right| left + right)
    }
}

/// Observes all processes of a run.
#[derive(Clone, Debug)]
pub struct Observer {
    members: Vec<Member>,
    inference: Link,
    store: Link,
    config: RunConfig,
    /// Label or version that actors request.
    label: String,
}

/// Place where a process runs.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// On this machine, with this number.
    Here(u32),
    /// Elsewhere: its metrics page alone tells its memory and processor time.
    Elsewhere,
}

impl Observer {
    /// Creates an observer of the services of a run, and of these processes.
    ///
    /// # Errors
    /// An address is invalid.
    pub fn new(config: &RunConfig, members: Vec<Member>) -> anyhow::Result<Self> {
        Ok(Self {
            members,
            inference: connect::link(&config.inference.address, &config.security)?,
            store: connect::link(&config.replay.address, &config.security)?,
            config: config.clone(),
            label: config.actor.model.clone(),
        })
    }

    /// Observes these processes from now on.
    pub fn watch(&mut self, members: &[Member]) {
        self.members = members.to_vec();
    }

    /// Observes the processes of this machine once. `pids` are the numbers of the running ones.
    pub async fn observe(&self, pids: &BTreeMap<String, u32>) -> Observation {
        let place = |member: &Member| pids.get(&member.name).copied().map(Place::Here);
        Observation {
            own_usage: process::usage(std::process::id()),
            // A store that cannot start on a full disk has no metrics page.
            free_bytes: disks::free_bytes(&self.config.replay.folder),
            disks: disks::disks(&self.config),
            ..self.look(place).await
        }
    }

    /// Observes processes elsewhere once.
    pub async fn observe_all(&self) -> Observation {
        let seen = self.look(|_| Some(Place::Elsewhere)).await;
        Observation {
            free_bytes: seen
                .sum(Role::ReplayStore, names::DISK_FREE)
                .map(|free| free as u64),
            ..seen
        }
    }

    /// Observes all processes. `place` returns `None` for one that does not run.
    async fn look(&self, place: impl Fn(&Member) -> Option<Place>) -> Observation {
        let processes: FuturesUnordered<_> = self
            .members
            .iter()
            .map(|member| {
                let place = place(member);
                async move { (member.name.clone(), self.process(member, place).await) }
            })
            .collect();
        let (processes, stats, model) = tokio::join!(processes.collect(), self.stats(), self.model());
        Observation {
            at: Instant::now(),
            processes,
            stats,
            model,
            own_usage: None,
            free_bytes: None,
            disks: Vec::new(),
        }
    }

    async fn process(&self, member: &Member, place: Option<Place>) -> Process {
        let role = member.role;
        let serving = async {
            match role {
                Role::InferenceServer => serves(self.inference.clone()).await,
                Role::ReplayStore => serves(self.store.clone()).await,
                Role::Learner | Role::Actor | Role::Rating | Role::Analysis | Role::Studio => true,
            }
        };
        let page = async {
            match member.metrics {
                Some(metrics) => Page::fetch(metrics).await,
                None => None,
            }
        };
        let (page, serving) = match place {
            Some(_) => tokio::join!(page, serving),
            None => (None, false),
        };
        let (pid, usage) = match place {
            Some(Place::Here(pid)) => (Some(pid), process::usage(pid)),
            Some(Place::Elsewhere) => (None, page.as_ref().and_then(usage)),
            None => (None, None),
        };
        Process {
            role,
            pid,
            // The studio has no metrics page.
            ready: serving && (page.is_some() || role == Role::Studio),
            page,
            usage,
        }
    }

    /// Requests the replay store's statistics; `None` if it does not answer.
    pub async fn stats(&self) -> Option<StatsReply> {
        let mut client = ReplayStoreClient::new(self.store.clone());
        let reply = tokio::time::timeout(TIMEOUT, client.stats(StatsRequest::default())).await;
        Some(reply.ok()?.ok()?.into_inner())
    }

    async fn model(&self) -> Option<ModelDescription> {
        let mut client = EvaluatorClient::new(self.inference.clone());
        let request = DescribeModelRequest {
            model: self.label.clone(),
        };
        let reply = tokio::time::timeout(TIMEOUT, client.describe_model(request)).await;
        Some(reply.ok()?.ok()?.into_inner())
    }
}

/// Memory and processor time of a process, as its metrics page says.
fn usage(page: &Page) -> Option<Usage> {
    Some(Usage {
        resident_bytes: page.sum(names::RESIDENT)? as u64,
        peak_resident_bytes: page.sum(names::PEAK_RESIDENT)? as u64,
        cpu_seconds: page.sum(names::CPU_SECONDS)?,
    })
}

async fn serves(channel: Link) -> bool {
    let mut client = HealthClient::new(channel);
    let request = HealthCheckRequest {
        service: String::new(),
    };
    let reply = tokio::time::timeout(TIMEOUT, client.check(request)).await;
    matches!(reply, Ok(Ok(reply)) if reply.get_ref().status() == ServingStatus::Serving)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An observation of actors with these numbers, pages and processor times.
    pub fn actors(at: Instant, actors: &[(u32, Option<&str>, f64)]) -> Observation {
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
            free_bytes: None,
            disks: Vec::new(),
        }
    }
}
