//! One look at everything: the roles' pages, their health, their memory, the store's own count.

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

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

use super::page::Page;
use crate::up::plan::Plan;

/// A service that takes longer has no answer this time.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// What was seen at one moment.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The moment.
    pub at: Instant,
    /// The processes, by name.
    pub processes: BTreeMap<String, Process>,
    /// The replay store's counts; `None` while it does not answer.
    pub stats: Option<StatsReply>,
    /// The model that answers actors; `None` while there is none.
    pub model: Option<ModelDescription>,
    /// Memory and time of `minuet up` itself.
    pub own_usage: Option<Usage>,
}

/// One process at one moment.
#[derive(Clone, Debug)]
pub struct Process {
    /// What it does.
    pub role: Role,
    /// Its number, while it runs.
    pub pid: Option<u32>,
    /// Its page; `None` while it gives no answer.
    pub page: Option<Page>,
    /// It answers; a server says SERVING.
    pub ready: bool,
    /// Its memory and time.
    pub usage: Option<Usage>,
}

impl Observation {
    /// The pages of all processes with this role.
    pub fn pages(&self, role: Role) -> impl Iterator<Item = &Page> {
        let processes = self
            .processes
            .values()
            .filter(move |process| process.role == role);
        processes.filter_map(|process| process.page.as_ref())
    }

    /// The sum of a metric over all processes with this role; `None` if none has it.
    pub fn sum(&self, role: Role, metric: &str) -> Option<f64> {
        self.pages(role)
            .filter_map(|page| page.sum(metric))
            .reduce(|left, right| left + right)
    }
}

/// Looks at the processes of a run.
#[derive(Clone, Debug)]
pub struct Observer {
    members: Vec<(String, Role, SocketAddr)>,
    inference: Link,
    store: Link,
    /// The label or version that actors ask.
    label: String,
}

impl Observer {
    /// An observer of the planned processes.
    ///
    /// # Errors
    /// If an address is none.
    pub fn new(plan: &Plan) -> anyhow::Result<Self> {
        let members = plan.members.iter();
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

    /// Looks once. `pids` are the processes that run now.
    pub async fn look(&self, pids: &BTreeMap<String, u32>) -> Observation {
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

    async fn process(&self, role: Role, metrics: SocketAddr, pid: Option<u32>) -> Process {
        let serving = async {
            match role {
                Role::InferenceServer => serves(self.inference.clone()).await,
                Role::ReplayStore => serves(self.store.clone()).await,
                Role::Learner | Role::Actor | Role::Rating => true,
            }
        };
        let (page, serving) = match pid {
            Some(_) => tokio::join!(Page::fetch(metrics), serving),
            None => (None, false),
        };
        Process {
            role,
            pid,
            ready: page.is_some() && serving,
            page,
            usage: pid.and_then(process::usage),
        }
    }

    /// Reads the replay store's counts; `None` if it does not answer.
    pub async fn stats(&self) -> Option<StatsReply> {
        let mut client = ReplayStoreClient::new(self.store.clone());
        let reply = tokio::time::timeout(PATIENCE, client.stats(StatsRequest::default())).await;
        Some(reply.ok()?.ok()?.into_inner())
    }

    async fn model(&self) -> Option<ModelDescription> {
        let mut client = EvaluatorClient::new(self.inference.clone());
        let asked = DescribeModelRequest {
            model: self.label.clone(),
        };
        let reply = tokio::time::timeout(PATIENCE, client.describe_model(asked)).await;
        Some(reply.ok()?.ok()?.into_inner())
    }
}

async fn serves(channel: Link) -> bool {
    let mut client = HealthClient::new(channel);
    let request = HealthCheckRequest {
        service: String::new(),
    };
    let reply = tokio::time::timeout(PATIENCE, client.check(request)).await;
    matches!(reply, Ok(Ok(reply)) if reply.get_ref().status() == ServingStatus::Serving)
}
