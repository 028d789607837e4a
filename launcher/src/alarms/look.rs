//! [`Look`]: the figures of a run at work, read at one moment from its processes and stores, and [`Evidence`]: two looks, which alarms
//! compare.

use std::time::Duration;

use config::{Provider, RunConfig};
use futures::future::join_all;
use proto::v1::{GameSort, ListGamesRequest, replay_store_client::ReplayStoreClient};
use service::role::Role;

use super::Learned;
use crate::{
    moment::age,
    page::{Page, TIMEOUT},
    run::addresses::{Addresses, Member},
    watch::disks::{self, Disk},
};

/// Time after the start of a run in which a process may not answer yet.
const START: Duration = Duration::from_secs(60);

/// A look at a run, and an earlier one since which counters have grown; without it they count from the start of each process.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The present look.
    pub now: &'a Look,
    /// The earlier look.
    pub before: Option<&'a Look>,
}

/// A process of the run, and its metrics page now and earlier.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Name, e.g. `actor-1`.
    pub name: &'a str,
    /// Role.
    role: Role,
    /// Metrics page; `None`: the process does not answer.
    pub now: Option<&'a Page>,
    /// An earlier page of the same process; `None`: counters have grown from 0.
    before: Option<&'a Page>,
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

impl<'a> Evidence<'a> {
    /// Processes of the run. One that has not answered yet in the first minute of a run is left out.
    pub fn processes(self) -> impl Iterator<Item = Seen<'a>> {
        let processes = self.now.processes.iter().map(move |(member, page)| Seen {
            name: &member.name,
            role: member.role,
            now: page.as_ref(),
            before: self.before.and_then(|look| look.page(&member.name)),
        });
        processes.filter(move |seen| seen.now.is_some() || !self.now.is_starting)
    }

    /// Processes of a role.
    pub fn of(self, role: Role) -> impl Iterator<Item = Seen<'a>> {
        self.processes().filter(move |seen| seen.role == role)
    }
}

/// Figures of a run at one moment. What is not known raises no alarm.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// Processes that the run should have, and their metrics pages; `None`: the process does not answer.
    pub processes: Vec<(Member, Option<Page>)>,
    /// Time since the newest game of the store ended, or since the run was started if there is none; `None` if the store does
    /// not answer.
    pub newest_game_age: Option<Duration>,
    /// Newest checkpoint of the run.
    pub newest_checkpoint: Option<NewestCheckpoint>,
    /// Execution provider that the run's configuration names; `None` if it leaves the choice to a measurement.
    pub provider: Option<&'static str>,
    /// Disks of the run besides that of the stored games, if they are on this machine.
    pub disks: Vec<Disk>,
    /// Figures of the run's learning.
    pub learned: Learned,
    /// True in the first minute of the run.
    pub is_starting: bool,
}

impl Look {
    /// Reads the metrics pages of all processes and the age of the newest game. What does not answer within two seconds is unknown.
    /// `learned` is what was read of the run's progress.
    pub async fn at(
        config: &RunConfig,
        addresses: &Addresses,
        newest_checkpoint: Option<NewestCheckpoint>,
        learned: Learned,
    ) -> Self {
        let members = addresses.members.iter().cloned();
        let pages = members.map(async |member| {
            let page = match member.metrics {
                Some(address) => Page::fetch(address).await,
                None => None,
            };
            (member, page)
        });
        let (processes, newest_game_age) = tokio::join!(join_all(pages), newest_game(config, addresses));
        Self {
            processes,
            newest_game_age,
            newest_checkpoint,
            provider: match config.inference.provider {
                Provider::Auto => None,
                named => Some(named.name()),
            },
            disks: disks::disks(config),
            learned,
            is_starting: age(addresses.started_at_ms) < START,
        }
    }

    /// Number of processes that have answered, and of all processes.
    pub fn answers(&self) -> (usize, usize) {
        let answers = self.processes.iter().filter(|(_, page)| page.is_some());
        (answers.count(), self.processes.len())
    }

    /// True if games are expected: the run has actors.
    pub fn has_actors(&self) -> bool {
        self.processes
            .iter()
            .any(|(member, _)| member.role == Role::Actor)
    }

    fn page(&self, name: &str) -> Option<&Page> {
        let found = self.processes.iter().find(|(member, _)| member.name == name);
        found.and_then(|(_, page)| page.as_ref())
    }
}

async fn newest_game(config: &RunConfig, addresses: &Addresses) -> Option<Duration> {
    let link = service::connect::link(&addresses.replay, &config.security).ok()?;
    let request = ListGamesRequest {
        limit: 1,
        newest_first: true,
        sort: GameSort::Sequence.into(),
        ..ListGamesRequest::default()
    };
    let mut client = ReplayStoreClient::new(link);
    let reply = tokio::time::timeout(TIMEOUT, client.list_games(request)).await;
    let games = reply.ok()?.ok()?.into_inner().games;
    let newest = games.first().map(|game| game.finished_at_ms);
    Some(age(newest.unwrap_or(addresses.started_at_ms)))
}
