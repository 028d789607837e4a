//! The client of a connection, pauses in reading from it, and the replies that it has not read.
//!
//! Refusing a request costs about as much as answering one with a small network, because the socket, HTTP/2 and the message
//! cost the same. During a pause the next requests gather in the socket and are then read together, and TCP's flow control
//! slows down a client that sends far more than is accepted.

use std::{
    collections::HashMap,
    future::Future as _,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use futures::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::time::{Instant, Sleep, sleep};

use super::slots::client;
use crate::calls::shares::Account;

/// Pause after a refused call, multiplied by the refusals so far, in milliseconds.
const REFUSAL_MS: u32 = 10;
/// Longest pause after a refused call, in milliseconds.
const LONGEST_REFUSAL_MS: u32 = 1000;

/// The client of a connection, attached to each of its requests.
#[derive(Clone, Debug)]
pub struct Peer {
    address: Option<SocketAddr>,
    connection: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Requested pause in milliseconds, from the connection's next read on; 0 for none.
    pause: AtomicU32,
    /// Calls that were refused because the client has too many.
    refused: AtomicU32,
    account: OnceLock<Arc<Account>>,
    unread: Unread,
    is_cut: AtomicBool,
    reader: AtomicWaker,
}

/// Replies of one connection that its client has not read. For each call: their bytes, and when the client last read some.
#[derive(Debug, Default)]
pub(crate) struct Unread(Mutex<HashMap<u64, (usize, Instant)>>);

impl Unread {
    pub(crate) fn add(&self, call: u64, bytes: usize) {
        let mut unread = self.0.lock();
        unread.entry(call).or_insert_with(|| (0, Instant::now())).0 += bytes;
    }

    pub(crate) fn subtract(&self, call: u64, bytes: usize) {
        let mut unread = self.0.lock();
        if let Some((left, since)) = unread.get_mut(&call) {
            *left = left.saturating_sub(bytes);
            *since = Instant::now();
            if *left == 0 {
                unread.remove(&call);
            }
        }
    }

    /// True if the client of a call has read nothing for longer than `time`, although something waits for it.
    pub(super) fn is_overdue(&self, time: Duration) -> bool {
        self.0.lock().values().any(|(_, since)| since.elapsed() > time)
    }
}

impl Peer {
    pub(crate) fn new(address: Option<SocketAddr>) -> Self {
        Self {
            address,
            connection: Arc::default(),
        }
    }

    /// Returns the client that sent a request; `None` if the connection was not accepted by this module.
    pub fn of<T>(request: &tonic::Request<T>) -> Option<Self> {
        request.extensions().get::<Self>().cloned()
    }

    /// Returns the client's address, if it is known.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Returns the address under which the client is counted, if it is known.
    pub(crate) fn client(&self) -> Option<IpAddr> {
        self.address.map(|address| client(address.ip()))
    }

    /// Stops reading from the connection for `time`, rounded down to milliseconds, from its next read on. Replies are still sent.
    pub fn pause(&self, time: Duration) {
        let millis = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        self.connection.pause.fetch_max(millis, Relaxed);
    }

    /// Pauses after a refused call. The pause becomes longer with each refusal, so that a client that repeats refused calls at once
    /// takes little of the server's time.
    pub(crate) fn slow_down(&self) {
        let refused = self.connection.refused.fetch_add(1, Relaxed).saturating_add(1);
        let millis = refused.saturating_mul(REFUSAL_MS).min(LONGEST_REFUSAL_MS);
        self.connection.pause.fetch_max(millis, Relaxed);
    }

    /// Notes that a call was not refused, so the next refusal is the first.
    pub(crate) fn speed_up(&self) {
        self.connection.refused.store(0, Relaxed);
    }

    /// Returns the account of the connection, which `make` makes for its first call.
    pub(crate) fn account(&self, make: impl FnOnce() -> Arc<Account>) -> Arc<Account> {
        self.connection.account.get_or_init(make).clone()
    }

    pub(crate) fn unread(&self) -> &Unread {
        &self.connection.unread
    }

    /// Closes the connection.
    pub(super) fn cut(&self) {
        self.connection.is_cut.store(true, Relaxed);
        self.connection.reader.wake();
    }

    /// True if the connection was cut. Otherwise its task is woken when it is.
    pub(super) fn is_cut(&self, context: &Context<'_>) -> bool {
        self.connection.reader.register(context.waker());
        self.connection.is_cut.load(Relaxed)
    }
}

/// The connection's side of [`Peer::pause`].
#[derive(Debug)]
pub(super) struct Pause {
    peer: Peer,
    sleeping: Option<Pin<Box<Sleep>>>,
}

impl Pause {
    pub(super) fn of(peer: &Peer) -> Self {
        Self {
            peer: peer.clone(),
            sleeping: None,
        }
    }

    /// Returns ready when the connection may be read.
    pub(super) fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let requested = &self.peer.connection.pause;
        if requested.load(Relaxed) > 0 {
            let millis = requested.swap(0, Relaxed);
            let pause = sleep(Duration::from_millis(millis.into()));
            match &mut self.sleeping {
                Some(sleeping) if sleeping.deadline() >= pause.deadline() => {}
                sleeping => *sleeping = Some(Box::pin(pause)),
            }
        }
        if let Some(sleeping) = &mut self.sleeping {
            ready!(sleeping.as_mut().poll(context));
            self.sleeping = None;
        }
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_longest_requested_pause_applies_once() {
        let peer = Peer::new(None);
        let mut pause = Pause::of(&peer);
        let began = Instant::now();
        let over = async |pause: &mut Pause| poll_fn(|context| pause.poll_end(context)).await;
        over(&mut pause).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        for millis in [3, 7, 5] {
            peer.clone().pause(Duration::from_millis(millis));
        }
        over(&mut pause).await;
        assert_eq!(began.elapsed(), Duration::from_millis(7));
        over(&mut pause).await;
        assert_eq!(began.elapsed(), Duration::from_millis(7));
        // A shorter pause requested during another does not end that one early.
        peer.pause(Duration::from_millis(10));
        assert!(
            poll_fn(|context| Poll::Ready(pause.poll_end(context)))
                .await
                .is_pending()
        );
        peer.pause(Duration::from_millis(2));
        over(&mut pause).await;
        assert_eq!(began.elapsed(), Duration::from_millis(17));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_of_which_nothing_is_read_is_overdue_whatever_is_read_of_others() {
        let unread = Unread::default();
        let time = Duration::from_secs(10);
        unread.add(1, 100);
        unread.add(2, 100);
        for _ in 0..3 {
            advance(Duration::from_secs(4)).await;
            unread.subtract(2, 10);
        }
        assert!(unread.is_overdue(time));
        unread.subtract(1, 100);
        assert!(!unread.is_overdue(time));
        advance(Duration::from_secs(11)).await;
        assert!(unread.is_overdue(time));
        unread.subtract(2, 70);
        assert!(!unread.is_overdue(Duration::ZERO));
    }
}
