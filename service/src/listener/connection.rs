//! An accepted connection, over TLS or plaintext, with the time limits of the HTTP/2 preface and of replies that nobody reads.

use std::{
    future::Future as _,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use metrics::{Counter, counter};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep, sleep},
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

/// Number of checks of unread replies within their time limit.
const CHECKS: u32 = 4;

/// Plaintext or TLS.
pub(super) type Wire = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// An accepted connection.
pub struct Connection {
    wire: Wire,
    peer: Peer,
    pause: Pause,
    /// Time limit of the HTTP/2 preface and the bytes read so far; `None` once the preface has arrived.
    preface: Option<(Pin<Box<Sleep>>, usize)>,
    /// Time of the next check of unread replies.
    next_check: Pin<Box<Sleep>>,
    /// Time limit of unread replies.
    reply_time: Duration,
    _slot: ConnectionSlot,
}

impl Connection {
    /// Makes a connection with the time limits of the preface and of unread replies.
    pub(super) fn new(
        wire: Wire,
        peer: Peer,
        slot: ConnectionSlot,
        preface_time: Duration,
        reply_time: Duration,
    ) -> Self {
        Self {
            wire,
            pause: Pause::of(&peer),
            peer,
            preface: Some((Box::pin(sleep(preface_time)), 0)),
            next_check: Box::pin(sleep(reply_time / CHECKS)),
            reply_time,
            _slot: slot,
        }
    }

    /// Checks that the connection may stay open. Both directions check, because the transport may wait for either alone.
    ///
    /// # Errors
    /// The connection was cut, or its client does not read a reply.
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if self.peer.is_cut(context) {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        while self.next_check.as_mut().poll(context).is_ready() {
            if self.peer.unread().is_overdue(self.reply_time) {
                unread().increment(1);
                self.peer.cut();
                return Err(io::ErrorKind::TimedOut.into());
            }
            let next = Instant::now() + self.reply_time / CHECKS;
            self.next_check.as_mut().reset(next);
        }
        Ok(())
    }
}

/// Counter of connections that were closed because a reply was not read.
pub(super) fn unread() -> Counter {
    counter!("minuet_server_unread_connections_closed_total")
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
        self.check(context)?;
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
        self.check(context)?;
        Pin::new(&mut self.wire).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
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
