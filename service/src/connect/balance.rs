//! One name, several servers: calls are spread over all of them, and who comes or goes is noticed.
//!
//! A name is looked up again every so often; in between, each of its servers is tried for a connection. Those that can be
//! reached take part, each call going to one drawn at random (tower's `Balance`, to which tonic tells no loads). A stream is one
//! call: whoever keeps streams opens new ones from time to time. Where none can be reached, all of them stay, so that calls
//! fail at once with UNAVAILABLE rather than wait; where the name cannot be looked up, those that were known stay. A server that
//! vanishes fails the calls it had, which their callers make again: at the latest [`Pace::probe`] later it is asked no more.

use std::{collections::BTreeSet, fmt, io, net::SocketAddr, pin::Pin, sync::Arc, time::Duration};

use futures::future::join_all;
use tokio::{
    net::{TcpStream, lookup_host},
    sync::mpsc,
    time::{Instant, sleep, timeout},
};
use tonic::transport::{Channel, Endpoint, channel::Change};

use super::Target;

/// How long a server may take to be reached.
const PROBE_TIME: Duration = Duration::from_secs(2);
/// Changes on their way to the balancer.
const CHANGES: usize = 64;
/// Servers of one name that take part; the rest is left out.
const MAX_SERVERS: usize = 256;

/// How often it is looked what a name stands for, and who of those can be reached.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Between two look-ups of the name.
    pub resolve: Duration,
    /// Between two trials of its servers.
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

/// The addresses that a look-up gave.
pub type Resolved<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'a>>;

/// Looks up names.
pub trait Resolve: fmt::Debug + Send + Sync {
    /// The addresses that `host` stands for now, each with `port`.
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

/// A server as the balancer knows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Server {
    /// One of the addresses.
    At(SocketAddr),
    /// The name itself, while it stands for no address: its calls fail and say why.
    Nowhere,
}

/// A channel over all servers of a name, until it is dropped.
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
    /// What the name stood for when it was last looked up.
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
            // One server is asked whether it can be reached or not.
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
                "the name stands for no address; those known before are used"
            ),
            Err(error) => {
                tracing::warn!(host, %error, "cannot look the name up; addresses known before are used")
            }
        }
    }

    /// Those that take a connection; all where none does.
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

    /// Tells the balancer. False where it is gone.
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
