//! Spreads calls over all servers of a host name, follows servers that are added or removed, and uses renewed certificates.
//!
//! The name is resolved again at an interval; in between, each of its servers is probed with a connection. Calls go to a random
//! server among those that can be reached (tower's `Balance`; tonic reports no load to it). A stream is one call, so a client
//! with long streams must open new ones from time to time. If no server can be reached, all stay in use, so that calls fail at
//! once with UNAVAILABLE instead of waiting. If the name cannot be resolved, the known servers stay in use. When a server dies
//! its calls fail, and callers repeat them; after at most [`Pace::probe`] no call goes to it.
//!
//! Authorities, certificate and key are read again at each look-up. If they have changed, later calls use new connections with
//! them, and open calls end on the old connections. If a file cannot be used, the previous ones stay in use.

use std::{collections::BTreeSet, fmt, io, net::SocketAddr, pin::Pin, sync::Arc, time::Duration};

use futures::future::join_all;
use tokio::{
    net::{TcpStream, lookup_host},
    sync::mpsc,
    time::{Instant, sleep, timeout},
};
use tonic::transport::{Channel, Endpoint, channel::Change};

use super::target::Target;
use crate::{log_throttle::LogThrottle, security::tls::ClientPem};

/// Time limit for a probe to connect.
const PROBE_TIME: Duration = Duration::from_secs(2);
/// Capacity of the queue of changes to the balancer.
const CHANGES: usize = 64;
/// Largest number of servers of one name; further servers are ignored.
const MAX_SERVERS: usize = 256;

/// Intervals of resolving a name and of probing its servers.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Time between two look-ups of the name, and between two readings of the certificates and the token.
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

/// Returns a channel over all servers of a name or an address, which uses TLS with `pem` until the files change. Resolving,
/// probing and reading end when the channel is dropped.
pub(super) fn channel(
    target: Target,
    pem: Option<ClientPem>,
    resolver: Arc<dyn Resolve>,
    pace: Pace,
) -> Channel {
    let (channel, changes) = Channel::balance_channel(CHANGES);
    let following = Following {
        target,
        pem,
        unreadable: LogThrottle::default(),
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
    /// Authorities and certificate in use.
    pem: Option<ClientPem>,
    unreadable: LogThrottle,
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
            let mut is_renewed = false;
            if is_due {
                self.look_up().await;
                is_renewed = self.read_again();
                next_look_up = Instant::now() + pace.resolve;
            }
            // A single server stays in use, reachable or not.
            let wanted = match self.known.len() {
                0 => BTreeSet::from([Server::Nowhere]),
                1 => self.known.iter().copied().map(Server::At).collect(),
                _ => self.reachable().await,
            };
            if !self.change_to(wanted, is_due, is_renewed).await {
                return;
            }
            let left = next_look_up.saturating_duration_since(Instant::now());
            sleep(left.min(pace.probe)).await;
        }
    }

    async fn look_up(&mut self) {
        let Target { host, port, .. } = &self.target;
        if let Some(ip) = self.target.ip() {
            self.known = BTreeSet::from([SocketAddr::new(ip, *port)]);
            return;
        }
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

    /// Reads the certificates again. True if they have changed.
    fn read_again(&mut self) -> bool {
        // A few small local files do not need a blocking thread.
        match self.target.read_again(&self.pem) {
            Ok(pem) => {
                self.unreadable.reset();
                if pem == self.pem {
                    return false;
                }
                tracing::info!(
                    host = self.target.host,
                    "new connections use renewed certificates"
                );
                self.pem = pem;
                true
            }
            Err(error) => {
                if self.unreadable.allows() {
                    let error = crate::chain(&error);
                    tracing::error!(host = self.target.host, %error, "cannot renew certificates; the previous ones stay in use");
                }
                false
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

    /// Sends the changes to the balancer; servers that take part already are sent again if the certificates were renewed. False
    /// if the balancer has been dropped.
    async fn change_to(&mut self, wanted: BTreeSet<Server>, is_due: bool, is_renewed: bool) -> bool {
        for server in &wanted {
            if self.taking_part.contains(server) && !is_renewed {
                continue;
            }
            let authority = match server {
                Server::At(address) => address.to_string(),
                Server::Nowhere => self.target.authority(),
            };
            match self.target.endpoint(&authority, self.pem.as_ref()) {
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
