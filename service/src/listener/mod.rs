//! Listening: which connections a server accepts, over TLS or plaintext, how many, and its time limits for them.
//!
//! A connection is handed to HTTP/2 only after its TLS handshake, and is closed if the HTTP/2 preface does not arrive in time.
//! So a client that connects and sends nothing takes one of the allowed connections for seconds only. Certificates and tokens
//! are read again while the server runs, so that they can be renewed without a restart.

mod peer;

use std::{
    future::Future as _,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use metrics::{Counter, Gauge, counter, gauge};
use parking_lot::RwLock;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time::{Sleep, sleep, timeout},
};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig, server::TlsStream};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

use crate::{
    calls::{
        layer::CallLayer,
        limits::{CallLimits, OpenCalls},
    },
    security::{
        Named, SecurityError,
        guard::Guard,
        methods::{Access, Method, Methods},
        tls::ServerFiles,
        tokens::Tokens,
    },
};
use config::{Plaintext, SecurityConfig};

pub use peer::Peer;

use peer::Pause;

/// Default time limit for the TLS handshake, and again for the HTTP/2 preface.
const PREFACE_TIME: Duration = Duration::from_secs(10);
/// Length of the HTTP/2 connection preface (RFC 9113, 3.4) and of the header of the frame after it, in bytes.
const PREFACE_BYTES: usize = 24 + 9;
/// Calls and streams that one connection may have open at the same time.
const MAX_STREAMS: u32 = 256;
/// Interval at which certificates and tokens are read again.
const RENEWAL: Duration = Duration::from_secs(30);
/// Number of connections that may be ready and not yet served.
const READY: usize = 64;
/// Pause after an error of `accept`, such as too many open files.
const PAUSE: Duration = Duration::from_millis(50);

/// Which connections a server accepts, and their limits.
#[derive(Clone, Debug)]
pub struct ConnectionPolicy {
    tls: Option<Tls>,
    tokens: Option<Named>,
    guard: Guard,
    call_limits: CallLimits,
    plaintext: Plaintext,
    /// Greatest number of connections at the same time.
    max_connections: usize,
    /// Greatest number of streams of one connection.
    pub(crate) max_streams: u32,
    pub(crate) max_connection_age: Option<Duration>,
    pub(crate) keep_alive: Duration,
    preface_time: Duration,
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
        let tls = match ServerFiles::of(config) {
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
            Some(file) => Some(Arc::new(RwLock::new(Tokens::read(file)?))),
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
            max_connections: config.max_connections,
            max_streams: MAX_STREAMS,
            max_connection_age: (config.max_connection_age_seconds > 0)
                .then(|| Duration::from_secs(config.max_connection_age_seconds)),
            keep_alive: Duration::from_secs(config.keep_alive_seconds),
            preface_time: PREFACE_TIME,
        })
    }

    /// Returns a policy of plaintext without tokens on every address, for services without secrets such as health.
    pub fn plaintext() -> Self {
        let config = SecurityConfig::default();
        Self {
            tls: None,
            tokens: None,
            guard: Guard {
                tokens: None,
                methods: |_| Method::new(Access::Everyone),
            },
            call_limits: CallLimits::of_probes(),
            plaintext: Plaintext::Anywhere,
            max_connections: config.max_connections,
            max_streams: MAX_STREAMS,
            max_connection_age: None,
            keep_alive: Duration::from_secs(config.keep_alive_seconds),
            preface_time: PREFACE_TIME,
        }
    }

    /// Sets the time limit for the TLS handshake, and again for the HTTP/2 preface.
    pub fn with_preface_time(mut self, time: Duration) -> Self {
        self.preface_time = time;
        self
    }

    /// Sets the limits of calls.
    pub fn with_call_limits(mut self, limits: CallLimits) -> Self {
        self.call_limits = limits;
        self
    }

    /// Returns the layer that checks and limits calls.
    pub(crate) fn layer(&self) -> CallLayer {
        CallLayer {
            guard: self.guard.clone(),
            calls: OpenCalls::new(self.call_limits),
        }
    }

    /// Checks that `address` may be served: plaintext is refused where other machines could listen.
    ///
    /// # Errors
    /// [`SecurityError::OpenServer`].
    pub fn check(&self, address: SocketAddr) -> Result<(), SecurityError> {
        let is_closed = address.ip().to_canonical().is_loopback();
        if self.tls.is_some() || is_closed || self.plaintext == Plaintext::Anywhere {
            Ok(())
        } else {
            Err(SecurityError::OpenServer {
                address: address.to_string(),
            })
        }
    }

    /// Accepts connections until the returned stream is dropped. The stream yields those that are ready to be served.
    pub(crate) fn connections(self, listener: TcpListener) -> ReceiverStream<io::Result<Connection>> {
        let (sender, connections) = mpsc::channel(READY);
        tokio::spawn(async move {
            let renewing = self.clone();
            tokio::select! {
                () = self.accept(&listener, &sender) => {}
                () = renewing.renew() => {}
                () = sender.closed() => {}
            }
        });
        ReceiverStream::new(connections)
    }

    async fn accept(&self, listener: &TcpListener, ready: &mpsc::Sender<io::Result<Connection>>) {
        let slots = Arc::new(Semaphore::new(self.max_connections));
        let too_many = counter!("minuet_server_connections_refused_total", "reason" => "too-many");
        let open = Open {
            gauge: gauge!("minuet_server_connections"),
            opened: counter!("minuet_server_connections_total"),
        };
        let preface_time = self.preface_time;
        loop {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    sleep(PAUSE).await;
                    continue;
                }
            };
            let Ok(slot) = slots.clone().try_acquire_owned() else {
                too_many.increment(1);
                continue;
            };
            let slot = ConnectionSlot::new(slot, &open);
            // Without this, small replies would wait for more data.
            drop(stream.set_nodelay(true));
            let peer = Peer::new(stream.peer_addr().ok());
            match &self.tls {
                None => {
                    let connection = Connection::new(Wire::Plain(stream), peer, slot, preface_time);
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
                                let wire = Wire::Tls(Box::new(stream));
                                let connection = Connection::new(wire, peer, slot, preface_time);
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

    /// Reads certificates and tokens again at a fixed interval, for ever.
    async fn renew(&self) {
        if self.tls.is_none() && self.tokens.is_none() {
            std::future::pending::<()>().await;
        }
        loop {
            sleep(RENEWAL).await;
            let policy = self.clone();
            let read = tokio::task::spawn_blocking(move || policy.read_again()).await;
            if let Ok(Err(error)) = read {
                tracing::error!(%error, "cannot renew certificates or tokens; the previous ones stay in use");
            }
        }
    }

    /// Reads certificates and tokens again, and uses them for later connections and calls.
    ///
    /// # Errors
    /// [`SecurityError`]; the previous certificates and tokens then stay in use.
    pub fn read_again(&self) -> Result<(), SecurityError> {
        if let Some(tls) = &self.tls {
            *tls.config.write() = tls.files.read()?;
        }
        if let (Some(file), Some(known)) = (&self.tokens, &self.guard.tokens) {
            *known.write() = Tokens::read(file)?;
        }
        Ok(())
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

/// Metrics of the open connections.
struct Open {
    gauge: Gauge,
    opened: Counter,
}

/// One of the allowed connections, released on drop.
struct ConnectionSlot {
    _permit: OwnedSemaphorePermit,
    open: Gauge,
}

impl ConnectionSlot {
    fn new(permit: OwnedSemaphorePermit, open: &Open) -> Self {
        open.gauge.increment(1.0);
        open.opened.increment(1);
        Self {
            _permit: permit,
            open: open.gauge.clone(),
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.open.decrement(1.0);
    }
}

enum Wire {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// An accepted connection.
pub struct Connection {
    wire: Wire,
    peer: Peer,
    pause: Pause,
    /// Time limit of the HTTP/2 preface and the bytes read so far; `None` once the preface has arrived.
    preface: Option<(Pin<Box<Sleep>>, usize)>,
    _slot: ConnectionSlot,
}

impl Connection {
    fn new(wire: Wire, peer: Peer, slot: ConnectionSlot, limit: Duration) -> Self {
        let limit = sleep(limit);
        Self {
            wire,
            pause: Pause::of(&peer),
            peer,
            preface: Some((Box::pin(limit), 0)),
            _slot: slot,
        }
    }
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.pause.poll_end(context));
        let before = buffer.filled().len();
        let polled = match &mut self.wire {
            Wire::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Wire::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        };
        if let Some((limit, read)) = &mut self.preface {
            *read += buffer.filled().len() - before;
            if *read >= PREFACE_BYTES {
                self.preface = None;
            } else if polled.is_pending() && limit.as_mut().poll(context).is_ready() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        }
        polled
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.wire {
            Wire::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Wire::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.wire {
            Wire::Plain(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Wire::Tls(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.wire {
            Wire::Plain(stream) => stream.is_write_vectored(),
            Wire::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.wire {
            Wire::Plain(stream) => Pin::new(stream).poll_flush(context),
            Wire::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.wire {
            Wire::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Wire::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
