//! Spreads calls over all servers of a host name, and follows servers that are added or removed.
//!
//! The name is resolved again at an interval; in between, each of its servers is probed with a connection. Calls go to a random
//! server among those that can be reached (tower's `Balance`; tonic reports no load to it). A stream is one call, so a client
//! with long streams must open new ones from time to time. If no server can be reached, all stay in use, so that calls fail at
//! once with UNAVAILABLE instead of waiting. If the name cannot be resolved, the known servers stay in use. When a server dies
//! its calls fail, and callers repeat them; after at most [`Pace::probe`] no call goes to it.

use std::{collections::BTreeSet, fmt, io, net::SocketAddr, pin::Pin, sync::Arc, time::Duration};

use futures::future::join_all;
use tokio::{
    net::{TcpStream, lookup_host},
    sync::mpsc,
    time::{Instant, sleep, timeout},
};
use tonic::transport::{Channel, Endpoint, channel::Change};

use super::target::Target;

/// Time limit for a probe to connect.
const PROBE_TIME: Duration = Duration::from_secs(2);
/// Capacity of the queue of changes to the balancer.
const CHANGES: usize = 64;
/// Greatest number of servers of one name; further servers are ignored.
const MAX_SERVERS: usize = 256;

/// Intervals of resolving a name and of probing its servers.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Time between two look-ups of the name.
    pub resolve: Duration,
    /// Time between two probes of the servers.
    pub probe: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            resolve: Duration::from_secs(10),
            probe: Duration::from_secs(5),
        }
    }
}

/// Future addresses of a look-up.
pub type Resolved<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'a>>;

/// Resolves host names.
pub trait Resolve: fmt::Debug + Send + Sync {
    /// Resolves `host` and returns its addresses, each with `port`.
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> Resolved<'a>;
}

/// The system's resolver (`getaddrinfo`).
#[derive(Clone, Copy, Debug)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> Resolved<'a> {
        Box::pin(async move { Ok(lookup_host((host, port)).await?.collect()) })
    }
}

/// Key of a server in the balancer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Server {
    /// A server at one of the name's addresses.
    At(SocketAddr),
    /// The name itself, while it has no address: calls fail with the resolver's error.
    Nowhere,
}

/// Returns a channel over all servers of a name. Resolving and probing end when the channel is dropped.
pub(crate) fn channel(target: Target, resolver: Arc<dyn Resolve>, pace: Pace) -> Channel {
    let (channel, changes) = Channel::balance_channel(CHANGES);
    let following = Following {
        target,
        resolver,
        changes: changes.clone(),
        known: BTreeSet::new(),
        taking_part: BTreeSet::new(),
    };
    tokio::spawn(async move {
        tokio::select! {
            () = following.run(pace) => {}
            () = changes.closed() => {}
        }
    });
    channel
}

struct Following {
    target: Target,
    resolver: Arc<dyn Resolve>,
    changes: mpsc::Sender<Change<Server, Endpoint>>,
    /// Addresses of the name at the last look-up.
    known: BTreeSet<SocketAddr>,
    taking_part: BTreeSet<Server>,
}

impl Following {
    async fn run(mut self, pace: Pace) {
        let mut next_look_up = Instant::now();
        loop {
            let is_due = Instant::now() >= next_look_up;
            if is_due {
                self.look_up().await;
                next_look_up = Instant::now() + pace.resolve;
            }
            // A single server stays in use, reachable or not.
            let wanted = match self.known.len() {
                0 => BTreeSet::from([Server::Nowhere]),
                1 => self.known.iter().copied().map(Server::At).collect(),
                _ => self.reachable().await,
            };
            if !self.change_to(wanted, is_due).await {
                return;
            }
            let left = next_look_up.saturating_duration_since(Instant::now());
            sleep(left.min(pace.probe)).await;
        }
    }

    async fn look_up(&mut self) {
        let Target { host, port, .. } = &self.target;
        match self.resolver.resolve(host, *port).await {
            Ok(found) if !found.is_empty() => self.known = found.into_iter().take(MAX_SERVERS).collect(),
            Ok(_) => tracing::warn!(
                host,
                "the name has no address; the previous addresses stay in use"
            ),
            Err(error) => {
                tracing::warn!(host, %error, "cannot resolve the name; the previous addresses stay in use")
            }
        }
    }

    /// Returns the servers that accept a connection, or all servers if none does.
    async fn reachable(&self) -> BTreeSet<Server> {
        let probes = self.known.iter().map(|&address| async move {
            let connected = timeout(PROBE_TIME, TcpStream::connect(address)).await;
            matches!(connected, Ok(Ok(_))).then_some(Server::At(address))
        });
        let found: BTreeSet<Server> = join_all(probes).await.into_iter().flatten().collect();
        if found.is_empty() {
            self.known.iter().copied().map(Server::At).collect()
        } else {
            found
        }
    }

    /// Sends the changes to the balancer. False if the balancer has been dropped.
    async fn change_to(&mut self, wanted: BTreeSet<Server>, is_due: bool) -> bool {
        for server in &wanted {
            if self.taking_part.contains(server) {
                continue;
            }
            let endpoint = match server {
                Server::At(address) => self.target.endpoint(&address.to_string()),
                Server::Nowhere => self.target.endpoint(&self.target.authority()),
            };
            match endpoint {
                Ok(endpoint) => {
                    tracing::debug!(host = self.target.host, ?server, "takes part");
                    if self
                        .changes
                        .send(Change::Insert(server.clone(), endpoint))
                        .await
                        .is_err()
                    {
                        return false;
                    }
                    self.taking_part.insert(server.clone());
                }
                Err(error) => {
                    if is_due {
                        tracing::error!(host = self.target.host, %error, "cannot use a server");
                    }
                }
            }
        }
        let gone: Vec<Server> = self.taking_part.difference(&wanted).cloned().collect();
        for server in gone {
            tracing::debug!(host = self.target.host, ?server, "takes part no more");
            self.taking_part.remove(&server);
            if self.changes.send(Change::Remove(server)).await.is_err() {
                return false;
            }
        }
        true
    }
}
