//! An accepted connection, over TLS or plaintext, with the time limit of the HTTP/2 preface.

use std::{
    future::Future as _,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Sleep, sleep},
};
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;
use tonic::transport::server::Connected;

use super::{
    peer::{Pause, Peer},
    slots::ConnectionSlot,
};

/// Length of the HTTP/2 connection preface (RFC 9113, 3.4) and of the header of the frame after it, in bytes. A request in HTTP/1.1
/// is longer, so its first bytes have the same time limit.
const PREFACE_BYTES: usize = 24 + 9;

/// Plaintext or TLS.
pub(super) type Wire = Either<TcpStream, Box<TlsStream<TcpStream>>>;

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
    pub(super) fn new(wire: Wire, peer: Peer, slot: ConnectionSlot, limit: Duration) -> Self {
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
        let polled = Pin::new(&mut self.wire).poll_read(context, buffer);
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
        Pin::new(&mut self.wire).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.wire).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.wire.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_shutdown(context)
    }
}
