//! Listening: which connections a server accepts, over TLS or plaintext, how many, and its time limits for them.
//!
//! A connection is handed to HTTP/2 only after its TLS handshake, and is closed if the HTTP/2 preface does not arrive in time.
//! So a client that connects and sends nothing takes one of the allowed connections for seconds only. Certificates and tokens
//! are read again while the server runs, so that they can be renewed without a restart. All connections together take at most
//! half of the descriptors of the process, so that files can always be opened.

pub(crate) mod acceptor;
mod connection;
mod peer;
mod slots;

use std::{io, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use metrics::counter;
use parking_lot::RwLock;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time::{sleep, timeout},
};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig, server::TlsStream};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::either::Either;

use crate::{
    calls::{
        layer::CallLayer,
        limits::{CallLimits, OpenCalls},
    },
    log_throttle::LogThrottle,
    process,
    security::{
        Named, SecurityError,
        guard::Guard,
        known::KnownTokens,
        methods::{Access, Method, Methods},
        tls::{HTTP1, HTTP2, ServerFiles},
        tokens::Tokens,
    },
};
use config::{Plaintext, SecurityConfig};

pub use connection::Connection;
pub use peer::Peer;

use acceptor::Acceptor;
use slots::Slots;

/// Default time limit for the TLS handshake, and again for the HTTP/2 preface.
const PREFACE_TIME: Duration = Duration::from_secs(10);
/// Calls and streams that one connection may have open at the same time.
const MAX_STREAMS: u32 = 256;
/// Default interval at which certificates and tokens are read again.
const RENEWAL: Duration = Duration::from_secs(15);
/// Number of connections that may be ready and not yet served.
const READY: usize = 64;
/// Largest number of connections of a server for probes.
const PROBES: usize = 64;
/// Largest number of connections of one peer to a server for probes.
const PROBES_OF_PEER: usize = 16;

/// Which connections a server accepts, and their limits.
#[derive(Clone, Debug)]
pub struct ConnectionPolicy {
    tls: Option<Tls>,
    tokens: Option<Named>,
    guard: Guard,
    /// Limits of calls.
    pub call_limits: CallLimits,
    plaintext: Plaintext,
    /// Largest number of connections at the same time.
    max_connections: usize,
    /// Largest number of connections of one peer.
    max_of_peer: usize,
    /// True if a new connection replaces the oldest one where there are too many.
    replaces: bool,
    /// Largest number of streams of one connection.
    pub(crate) max_streams: u32,
    pub(crate) max_connection_age: Option<Duration>,
    /// Time limit for the TLS handshake, and again for the HTTP/2 preface.
    pub preface_time: Duration,
    /// Interval at which certificates and tokens are read again.
    pub renewal: Duration,
}

#[derive(Clone, Debug)]
struct Tls {
    files: ServerFiles,
    config: Arc<RwLock<Arc<ServerConfig>>>,
}

impl ConnectionPolicy {
    /// Reads the policy from `[security]`. `methods` returns the rules of each method.
    ///
    /// # Errors
    /// [`SecurityError`] naming the file that cannot be used.
    pub fn new(config: &SecurityConfig, methods: Methods) -> Result<Self, SecurityError> {
        Self::of_protocol(config, methods, HTTP2)
    }

    /// Reads the policy of a server that browsers ask, in HTTP/1.1. A browser shows no certificate, so `client_ca` does not hold; the
    /// server checks tokens itself ([`Self::tokens`]).
    ///
    /// # Errors
    /// [`SecurityError`] naming the file that cannot be used.
    pub fn of_pages(config: &SecurityConfig) -> Result<Self, SecurityError> {
        let config = SecurityConfig {
            client_ca: PathBuf::new(),
            ..config.clone()
        };
        Self::of_protocol(&config, |_| Method::new(Access::AnyToken), HTTP1)
    }

    fn of_protocol(
        config: &SecurityConfig,
        methods: Methods,
        protocol: &'static [u8],
    ) -> Result<Self, SecurityError> {
        let tls = match ServerFiles::of(config, protocol) {
            None => None,
            Some(files) => Some(Tls {
                config: Arc::new(RwLock::new(files.read()?)),
                files,
            }),
        };
        let has_tokens = !config.tokens.as_os_str().is_empty();
        let tokens = has_tokens.then(|| Named::new("tokens", &config.tokens));
        let known = match &tokens {
            None => None,
            Some(file) => Some(KnownTokens::new(Tokens::read(file)?)),
        };
        Ok(Self {
            tls,
            tokens,
            guard: Guard {
                tokens: known,
                methods,
            },
            call_limits: CallLimits::default(),
            plaintext: config.plaintext,
            max_connections: config.max_connections.min(process::descriptors() / 2).max(1),
            max_of_peer: config.max_connections_per_peer,
            replaces: false,
            max_streams: MAX_STREAMS,
            max_connection_age: (config.max_connection_age_seconds > 0)
                .then(|| Duration::from_secs(config.max_connection_age_seconds)),
            preface_time: PREFACE_TIME,
            renewal: RENEWAL,
        })
    }

    /// Returns a policy of plaintext without tokens on every address, for services without secrets such as health. A new connection
    /// replaces the oldest one where there are too many.
    ///
    /// # Errors
    /// None in practice: no file is read.
    pub fn plaintext() -> Result<Self, SecurityError> {
        let config = SecurityConfig {
            plaintext: Plaintext::Anywhere,
            max_connections: PROBES,
            max_connections_per_peer: PROBES_OF_PEER,
            ..SecurityConfig::default()
        };
        let policy = Self::new(&config, |_| Method::new(Access::Everyone))?;
        Ok(Self {
            call_limits: CallLimits::of_probes(),
            replaces: true,
            ..policy
        })
    }

    /// Returns the layer that checks and limits calls.
    pub(crate) fn layer(&self) -> CallLayer {
        CallLayer {
            guard: self.guard.clone(),
            calls: OpenCalls::new(self.call_limits),
        }
    }

    /// Returns the accepted tokens; `None` if the server accepts every call.
    pub fn tokens(&self) -> Option<&KnownTokens> {
        self.guard.tokens.as_ref()
    }

    /// True if connections are encrypted.
    pub fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Checks that `address` may be served: plaintext is refused where other machines could listen.
    ///
    /// # Errors
    /// [`SecurityError`] if it may not.
    pub fn check(&self, address: SocketAddr) -> Result<(), SecurityError> {
        let is_closed = address.ip().to_canonical().is_loopback();
        if self.tls.is_some() || is_closed || self.plaintext == Plaintext::Anywhere {
            Ok(())
        } else {
            Err(SecurityError(format!(
                "{address} can be reached from other machines, and without security.certificate everything would be plaintext; \
                 give a certificate and a key, or set security.plaintext = \"anywhere\" if the network is trusted"
            )))
        }
    }

    /// Accepts connections until the returned stream is dropped. The stream yields those that are ready to be served.
    pub fn connections(self, listener: TcpListener) -> ReceiverStream<io::Result<Connection>> {
        let (sender, connections) = mpsc::channel(READY);
        tokio::spawn(async move {
            let renewing = self.clone();
            tokio::select! {
                () = self.accept(listener, &sender) => {}
                () = renewing.renew() => {}
                () = sender.closed() => {}
            }
        });
        ReceiverStream::new(connections)
    }

    async fn accept(&self, listener: TcpListener, ready: &mpsc::Sender<io::Result<Connection>>) {
        let slots = Slots::new(self.max_connections, self.max_of_peer, self.replaces);
        let mut acceptor = Acceptor::new(listener);
        let (preface_time, reply_time) = (self.preface_time, self.call_limits.reply_time);
        connection::unread().increment(0);
        loop {
            let stream = acceptor.next().await;
            let peer = Peer::new(stream.peer_addr().ok());
            let Some(slot) = slots.take(&peer) else {
                continue;
            };
            // Without this, small replies would wait for more data.
            drop(stream.set_nodelay(true));
            match &self.tls {
                None => {
                    let connection =
                        Connection::new(Either::Left(stream), peer, slot, preface_time, reply_time);
                    if ready.send(Ok(connection)).await.is_err() {
                        return;
                    }
                }
                Some(tls) => {
                    let acceptor = TlsAcceptor::from(tls.config.read().clone());
                    let ready = ready.clone();
                    tokio::spawn(async move {
                        match tls_handshake(acceptor, stream, preface_time).await {
                            Ok(stream) => {
                                let wire = Either::Right(Box::new(stream));
                                let connection = Connection::new(wire, peer, slot, preface_time, reply_time);
                                drop(ready.send(Ok(connection)).await);
                            }
                            Err(error) => {
                                counter!("minuet_server_connections_refused_total", "reason" => "handshake")
                                    .increment(1);
                                tracing::debug!(peer = ?peer.address(), %error, "TLS handshake failed");
                            }
                        }
                    });
                }
            }
        }
    }

    /// Reads certificates and tokens again at a fixed interval; never returns.
    async fn renew(&self) {
        if self.tls.is_none() && self.tokens.is_none() {
            std::future::pending::<()>().await;
        }
        let [certificates, tokens] = [(); 2].map(|()| Arc::new(LogThrottle::default()));
        loop {
            sleep(self.renewal).await;
            let policy = self.clone();
            let throttles = [certificates.clone(), tokens.clone()];
            // A panic there would end the process.
            drop(tokio::task::spawn_blocking(move || policy.read_again(&throttles)).await);
        }
    }

    /// Reads certificates and tokens again, each whether or not the others can be read. Later connections use the certificates;
    /// the tokens concern open calls too. If certificates cannot be used or have expired, the previous ones stay in use. If the tokens
    /// cannot be used, no token is accepted, because a client may just have been removed from their file. `throttles` limits the log
    /// lines about certificates and about tokens.
    fn read_again(&self, [of_certificates, of_tokens]: &[Arc<LogThrottle>; 2]) {
        if let Some(tls) = &self.tls {
            let read = tls.files.read();
            match read.and_then(|config| tls.files.check_expiry().map(|()| config)) {
                Ok(config) => {
                    *tls.config.write() = config;
                    of_certificates.reset();
                }
                Err(error) if of_certificates.allows() => {
                    tracing::error!(%error, "cannot renew certificates; the previous ones stay in use");
                }
                Err(_) => {}
            }
        }
        if let (Some(file), Some(known)) = (&self.tokens, &self.guard.tokens) {
            let read = Tokens::read(file);
            match &read {
                Ok(_) => drop(of_tokens.reset()),
                Err(error) if of_tokens.allows() => {
                    tracing::error!(%error, "cannot read tokens; every call that needs one is refused");
                }
                Err(_) => {}
            }
            known.set(read.ok());
        }
    }
}

async fn tls_handshake(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    time: Duration,
) -> io::Result<TlsStream<TcpStream>> {
    timeout(time, acceptor.accept(stream))
        .await
        .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}
