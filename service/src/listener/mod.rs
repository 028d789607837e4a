//! A server's door: which connections come in, over TLS or plaintext, how many, and how long they may take about it.
//!
//! A connection is handed to HTTP/2 only once its TLS handshake is done, and is cut if HTTP/2's own greeting does not come:
//! who connects and says nothing holds a place for seconds, not for ever. Certificates and tokens are read again while the
//! server runs, so that they can be renewed without a restart.

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

use crate::security::{
    Named, SecurityError,
    guard::{Guard, Rights},
    tls::ServerFiles,
    tokens::Tokens,
};
use config::{Plaintext, SecurityConfig};

pub use peer::Peer;

use peer::Pause;

/// A client has this long for its TLS handshake, and then for HTTP/2's greeting, if nothing else is said.
const GREETING_TIME: Duration = Duration::from_secs(10);
/// Length of HTTP/2's greeting (RFC 9113, 3.4) and of the head of the frame after it.
const GREETING_BYTES: usize = 24 + 9;
/// How often certificates and tokens are read again.
const RENEWAL: Duration = Duration::from_secs(30);
/// Connections that are ready and not yet taken.
const READY: usize = 64;
/// Pause where the system gives no more connections (too many open files).
const PAUSE: Duration = Duration::from_millis(50);

/// Who may come in.
#[derive(Clone, Debug)]
pub struct Door {
    tls: Option<Tls>,
    tokens: Option<Named>,
    guard: Guard,
    plaintext: Plaintext,
    /// Connections at the same time.
    max_connections: usize,
    /// Streams of one connection.
    pub(crate) max_streams: u32,
    pub(crate) max_connection_age: Option<Duration>,
    pub(crate) keep_alive: Duration,
    greeting_time: Duration,
}

#[derive(Clone, Debug)]
struct Tls {
    files: ServerFiles,
    config: Arc<RwLock<Arc<ServerConfig>>>,
}

impl Door {
    /// As `[security]` says; `rights` says which right each call needs.
    ///
    /// # Errors
    /// [`SecurityError`] naming the file that cannot be used.
    pub fn new(config: &SecurityConfig, rights: Rights) -> Result<Self, SecurityError> {
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
                rights,
            },
            plaintext: config.plaintext,
            max_connections: config.max_connections,
            max_streams: config.max_streams,
            max_connection_age: (config.max_connection_age_seconds > 0)
                .then(|| Duration::from_secs(config.max_connection_age_seconds)),
            keep_alive: Duration::from_secs(config.keep_alive_seconds),
            greeting_time: GREETING_TIME,
        })
    }

    /// Plaintext, no tokens, wherever the listener is: for what gives nothing away, such as health.
    pub fn open() -> Self {
        let config = SecurityConfig::default();
        Self {
            tls: None,
            tokens: None,
            guard: Guard {
                tokens: None,
                rights: |_| None,
            },
            plaintext: Plaintext::Anywhere,
            max_connections: config.max_connections,
            max_streams: config.max_streams,
            max_connection_age: None,
            keep_alive: Duration::from_secs(config.keep_alive_seconds),
            greeting_time: GREETING_TIME,
        }
    }

    /// The same, with another time for a client's TLS handshake, and then for HTTP/2's greeting.
    pub fn with_greeting_time(mut self, time: Duration) -> Self {
        self.greeting_time = time;
        self
    }

    /// The layer that asks for tokens.
    pub(crate) fn guard(&self) -> Guard {
        self.guard.clone()
    }

    /// Whether `address` may be served: plaintext only where it is allowed.
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

    /// Opens the door: the stream of connections that are ready to be served. It closes when the stream is dropped.
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
        let places = Arc::new(Semaphore::new(self.max_connections));
        let too_many = counter!("minuet_server_connections_refused_total", "reason" => "too-many");
        let open = Open {
            gauge: gauge!("minuet_server_connections"),
            opened: counter!("minuet_server_connections_total"),
        };
        let greeting_time = self.greeting_time;
        loop {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    sleep(PAUSE).await;
                    continue;
                }
            };
            let Ok(place) = places.clone().try_acquire_owned() else {
                too_many.increment(1);
                continue;
            };
            let place = Place::new(place, &open);
            // Small answers should not wait for company.
            drop(stream.set_nodelay(true));
            let peer = Peer::new(stream.peer_addr().ok());
            match &self.tls {
                None => {
                    let connection = Connection::new(Wire::Plain(stream), peer, place, greeting_time);
                    if ready.send(Ok(connection)).await.is_err() {
                        return;
                    }
                }
                Some(tls) => {
                    let acceptor = TlsAcceptor::from(tls.config.read().clone());
                    let ready = ready.clone();
                    tokio::spawn(async move {
                        match shake_hands(acceptor, stream, greeting_time).await {
                            Ok(stream) => {
                                let wire = Wire::Tls(Box::new(stream));
                                let connection = Connection::new(wire, peer, place, greeting_time);
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

    /// Reads certificates and tokens again, for ever.
    async fn renew(&self) {
        if self.tls.is_none() && self.tokens.is_none() {
            std::future::pending::<()>().await;
        }
        loop {
            sleep(RENEWAL).await;
            let door = self.clone();
            let read = tokio::task::spawn_blocking(move || door.read_again()).await;
            if let Ok(Err(error)) = read {
                tracing::error!(%error, "cannot renew; what was read before is kept");
            }
        }
    }

    /// Reads certificates and tokens again, and uses them for what comes from now on.
    ///
    /// # Errors
    /// [`SecurityError`]; what was read before is kept.
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

async fn shake_hands(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    time: Duration,
) -> io::Result<TlsStream<TcpStream>> {
    timeout(time, acceptor.accept(stream))
        .await
        .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

struct Open {
    gauge: Gauge,
    opened: Counter,
}

/// A connection's place among those that may be open, given back when it is dropped.
struct Place {
    _permit: OwnedSemaphorePermit,
    open: Gauge,
}

impl Place {
    fn new(permit: OwnedSemaphorePermit, open: &Open) -> Self {
        open.gauge.increment(1.0);
        open.opened.increment(1);
        Self {
            _permit: permit,
            open: open.gauge.clone(),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.open.decrement(1.0);
    }
}

enum Wire {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// A connection that came in.
pub struct Connection {
    wire: Wire,
    peer: Peer,
    pause: Pause,
    /// Until HTTP/2's greeting has come: when patience ends, and how much of it has come.
    greeting: Option<(Pin<Box<Sleep>>, usize)>,
    _place: Place,
}

impl Connection {
    fn new(wire: Wire, peer: Peer, place: Place, patience: Duration) -> Self {
        let patience = sleep(patience);
        Self {
            wire,
            pause: Pause::of(&peer),
            peer,
            greeting: Some((Box::pin(patience), 0)),
            _place: place,
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
        ready!(self.pause.poll_over(context));
        let before = buffer.filled().len();
        let polled = match &mut self.wire {
            Wire::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Wire::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        };
        if let Some((patience, read)) = &mut self.greeting {
            *read += buffer.filled().len() - before;
            if *read >= GREETING_BYTES {
                self.greeting = None;
            } else if polled.is_pending() && patience.as_mut().poll(context).is_ready() {
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
