//! Observes all processes once: metrics pages, health, memory, and the replay store's counts.

use std::{collections::BTreeMap, net::SocketAddr};

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
    plan::Plan,
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
    /// Memory and processor time of `minuet up` itself.
    pub own_usage: Option<Usage>,
}

/// One process at one moment.
#[derive(Clone, Debug)]
pub struct Process {
    /// Role.
    pub role: Role,
    /// Process number, while the process runs.
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
    members: Vec<(String, Role, Option<SocketAddr>)>,
    inference: Link,
    store: Link,
    /// Label or version that actors request.
    label: String,
}

impl Observer {
    /// Creates an observer of the planned processes.
    ///
    /// # Errors
    /// An address is invalid.
    pub fn new(plan: &Plan) -> anyhow::Result<Self> {
        let members = plan.processes.iter();
        let security = &plan.config.security;
        Ok(Self {
            members: members
                .map(|member| (member.name.clone(), member.role, member.metrics))
                .collect(),
            inference: connect::link(&plan.config.inference.address, security)?,
            store: connect::link(plan.config.replay.store_address()?, security)?,
            label: plan.config.actor.model.clone(),
        })
    }

    /// Observes all processes once. `pids` are the numbers of the running ones.
    pub async fn observe(&self, pids: &BTreeMap<String, u32>) -> Observation {
        let processes: FuturesUnordered<_> = self
            .members
            .iter()
            .map(|(name, role, metrics)| async move {
                let pid = pids.get(name).copied();
                (name.clone(), self.process(*role, *metrics, pid).await)
            })
            .collect();
        let (processes, stats, model) = tokio::join!(processes.collect(), self.stats(), self.model());
        Observation {
            at: Instant::now(),
            processes,
            stats,
            model,
            own_usage: process::usage(std::process::id()),
        }
    }

    async fn process(&self, role: Role, metrics: Option<SocketAddr>, pid: Option<u32>) -> Process {
        let serving = async {
            match role {
                Role::InferenceServer => serves(self.inference.clone()).await,
                Role::ReplayStore => serves(self.store.clone()).await,
                Role::Learner | Role::Actor | Role::Rating | Role::Studio => true,
            }
        };
        let page = async {
            match metrics {
                Some(metrics) => Page::fetch(metrics).await,
                None => None,
            }
        };
        let (page, serving) = match pid {
            Some(_) => tokio::join!(page, serving),
            None => (None, false),
        };
        Process {
            role,
            pid,
            ready: serving && (page.is_some() || metrics.is_none()),
            page,
            usage: pid.and_then(process::usage),
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

async fn serves(channel: Link) -> bool {
    let mut client = HealthClient::new(channel);
    let request = HealthCheckRequest {
        service: String::new(),
    };
    let reply = tokio::time::timeout(TIMEOUT, client.check(request)).await;
    matches!(reply, Ok(Ok(reply)) if reply.get_ref().status() == ServingStatus::Serving)
}
