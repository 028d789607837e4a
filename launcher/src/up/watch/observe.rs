//! One look at everything: the roles' pages, their health, their memory, the store's own count.

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use config::shards::Shard;
use futures::{StreamExt, future::join_all, stream::FuturesUnordered};
use proto::v1::{
    DescribeModelRequest, ModelDescription, StatsReply, StatsRequest, evaluator_client::EvaluatorClient,
    replay_store_client::ReplayStoreClient,
};
use service::{
    connect::{self, AddressError, Link},
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
    /// What the replay stores say together; `None` while one gives no answer.
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
    /// The replay stores, by name.
    stores: Vec<(String, Link)>,
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
        let stores = plan.config.replay.stores()?;
        let store = |shard: &Shard| {
            let link = connect::link(&shard.address, security)?;
            Ok::<_, AddressError>((shard.name.clone(), link))
        };
        Ok(Self {
            members: members
                .map(|member| (member.name.clone(), member.role, member.metrics))
                .collect(),
            inference: connect::link(&plan.config.inference.address, security)?,
            stores: stores.all().iter().map(store).collect::<Result<_, _>>()?,
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
                (name.clone(), self.process(name, *role, *metrics, pid).await)
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

    async fn process(&self, name: &str, role: Role, metrics: SocketAddr, pid: Option<u32>) -> Process {
        let serving = async {
            match role {
                Role::InferenceServer => serves(self.inference.clone()).await,
                Role::ReplayStore => match self.store(name) {
                    Some(link) => serves(link).await,
                    None => false,
                },
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

    /// The store that this process serves: the only one, or that of its name.
    fn store(&self, process: &str) -> Option<Link> {
        match self.stores.as_slice() {
            [(_, only)] => Some(only.clone()),
            stores => {
                let found = stores.iter().find(|(name, _)| name == process);
                found.map(|(_, link)| link.clone())
            }
        }
    }

    /// What the replay stores say now, together; `None` if one of them gives no answer.
    pub async fn stats(&self) -> Option<StatsReply> {
        let asked = self.stores.iter().map(async |(_, link)| {
            let mut client = ReplayStoreClient::new(link.clone());
            let reply = tokio::time::timeout(PATIENCE, client.stats(StatsRequest::default())).await;
            Some(reply.ok()?.ok()?.into_inner())
        });
        let replies: Option<Vec<StatsReply>> = join_all(asked).await.into_iter().collect();
        replies?.into_iter().reduce(together)
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

/// What two stores say, together. Sequence numbers are each one's own.
fn together(one: StatsReply, other: StatsReply) -> StatsReply {
    StatsReply {
        games: one.games + other.games,
        window_positions: one.window_positions + other.window_positions,
        games_inserted: one.games_inserted + other.games_inserted,
        positions_inserted: one.positions_inserted + other.positions_inserted,
        positions_sampled: one.positions_sampled + other.positions_sampled,
        duplicates: one.duplicates + other.duplicates,
        damaged_games: one.damaged_games + other.damaged_games,
        disk_bytes: one.disk_bytes + other.disk_bytes,
        stored_bytes: one.stored_bytes + other.stored_bytes,
        sampled_window_positions: one.sampled_window_positions + other.sampled_window_positions,
        appends_held: one.appends_held || other.appends_held,
        samples_held: one.samples_held || other.samples_held,
        held_out_positions: one.held_out_positions + other.held_out_positions,
        oldest_sequence: 0,
        newest_sequence: 0,
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
