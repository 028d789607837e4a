//! Limits on the memory of requests whose answers have not been read, for each connection and for the server.
//!
//! The number of requests in flight is bounded elsewhere, but one answer with logits can take megabytes. In a stream, a charge ends when
//! the transport asks for the next answer, because it has then passed on the previous one; the answer of a single call is charged until
//! it has been sent. The transport's own memory is limited by `service::calls`. A connection that holds nothing
//! may always have one more answer, so a client that reads its answers never waits for one that does not.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use metrics::Gauge;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_stream::Stream;

use crate::intake::request::ClientId;

/// Limit of one connection, in bytes. A single larger answer is allowed.
pub const CONNECTION_BYTES: usize = 64 << 20;
/// Limit of all connections together, in bytes. One answer of each connection is allowed beyond it.
pub const SERVER_BYTES: usize = 1 << 30;
/// Smallest charge, in bytes. Smaller requests are not charged: the limit on requests in flight bounds their memory.
pub const FREE_BYTES: usize = 4 << 10;
/// Smallest number of connections at which unused entries are removed.
const CLEAN_FROM: usize = 256;

/// Limits of all connections.
#[derive(Debug)]
pub struct MemoryLimits {
    connections: Mutex<Connections>,
    total: Arc<Total>,
}

#[derive(Debug, Default)]
struct Connections {
    of: HashMap<ClientId, Weak<ConnectionMemory>>,
    /// Number of entries after unused ones were last removed.
    used: usize,
}

#[derive(Debug)]
struct Total {
    held: AtomicUsize,
    gauge: Gauge,
}

/// Charged memory of one connection.
#[derive(Debug)]
pub struct ConnectionMemory {
    held: Mutex<usize>,
    freed: Notify,
    total: Arc<Total>,
}

/// Charged memory. Dropping it ends the charge.
#[derive(Debug)]
pub struct MemoryCharge {
    connection: Arc<ConnectionMemory>,
    bytes: usize,
}

impl MemoryLimits {
    /// Makes limits under which no memory is charged yet. `gauge` shows the charged bytes of all connections.
    pub fn new(gauge: Gauge) -> Self {
        let held = AtomicUsize::new(0);
        Self {
            connections: Mutex::default(),
            total: Arc::new(Total { held, gauge }),
        }
    }

    /// Returns the charged memory of a client's connection, shared by all its calls.
    pub fn connection(&self, client: ClientId) -> Arc<ConnectionMemory> {
        let mut connections = self.connections.lock();
        if let Some(connection) = connections.of.get(&client).and_then(Weak::upgrade) {
            return connection;
        }
        if connections.of.len() >= CLEAN_FROM.max(2 * connections.used) {
            connections
                .of
                .retain(|_, connection| connection.strong_count() > 0);
            connections.used = connections.of.len();
        }
        let connection = Arc::new(ConnectionMemory {
            held: Mutex::new(0),
            freed: Notify::new(),
            total: self.total.clone(),
        });
        connections.of.insert(client, Arc::downgrade(&connection));
        connection
    }
}

impl ConnectionMemory {
    /// Waits until `bytes` more may be charged. Returns `None` at once for less than [`FREE_BYTES`].
    pub async fn charge(self: &Arc<Self>, bytes: usize) -> Option<MemoryCharge> {
        if bytes < FREE_BYTES {
            return None;
        }
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // Register before looking, so that memory freed in between is not missed.
            freed.as_mut().enable();
            if let Some(charge) = self.try_charge(bytes) {
                return Some(charge);
            }
            freed.await;
        }
    }

    fn try_charge(self: &Arc<Self>, bytes: usize) -> Option<MemoryCharge> {
        let mut held = self.held.lock();
        let total = self.total.held.load(Ordering::Relaxed);
        let fits = *held + bytes <= CONNECTION_BYTES && total + bytes <= SERVER_BYTES;
        if *held > 0 && !fits {
            return None;
        }
        *held += bytes;
        self.total.held.fetch_add(bytes, Ordering::Relaxed);
        self.total.gauge.increment(bytes as f64);
        Some(MemoryCharge {
            connection: self.clone(),
            bytes,
        })
    }
}

impl Drop for MemoryCharge {
    fn drop(&mut self) {
        let ConnectionMemory { held, freed, total } = &*self.connection;
        *held.lock() -= self.bytes;
        total.held.fetch_sub(self.bytes, Ordering::Relaxed);
        total.gauge.decrement(self.bytes as f64);
        freed.notify_waiters();
    }
}

/// A stream of answers. The charge of each answer ends when the next one is polled.
pub struct ChargedStream<S> {
    answers: S,
    /// Charge of the last answer.
    charge: Option<MemoryCharge>,
}

impl<S> ChargedStream<S> {
    /// Wraps a stream of answers with their charges.
    pub fn new(answers: S) -> Self {
        Self {
            answers,
            charge: None,
        }
    }
}

impl<S, T> Stream for ChargedStream<S>
where
    S: Stream<Item = (T, Option<MemoryCharge>)> + Unpin,
{
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.charge = None;
        Pin::new(&mut self.answers).poll_next(context).map(|next| {
            let (answer, charge) = next?;
            self.charge = charge;
            Some(answer)
        })
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt as _, StreamExt as _, stream};

    use super::*;

    const LARGE: usize = CONNECTION_BYTES / 2;

    fn now(connection: &Arc<ConnectionMemory>, bytes: usize) -> Option<MemoryCharge> {
        connection.charge(bytes).now_or_never().flatten()
    }

    #[test]
    fn a_connection_is_limited_but_may_always_hold_one_answer() {
        let ledger = MemoryLimits::new(Gauge::noop());
        let connection = ledger.connection(ClientId(1));
        let first = now(&connection, LARGE).unwrap();
        // All calls of a connection share its limit.
        let again = ledger.connection(ClientId(1));
        let second = now(&again, LARGE).unwrap();
        assert!(now(&connection, LARGE).is_none());
        // Small requests are not charged.
        assert!(
            connection
                .charge(FREE_BYTES - 1)
                .now_or_never()
                .unwrap()
                .is_none()
        );
        // Another connection has its own limit.
        let other = ledger.connection(ClientId(2));
        drop(now(&other, 3 * CONNECTION_BYTES).unwrap());
        drop(first);
        assert!(now(&connection, LARGE + 1).is_none());
        drop(second);
        let most = now(&connection, 3 * CONNECTION_BYTES).unwrap();
        assert!(now(&connection, FREE_BYTES).is_none());
        drop(most);
        assert_eq!(ledger.total.held.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_connection_that_holds_nothing_does_not_wait_for_others() {
        let ledger = MemoryLimits::new(Gauge::noop());
        let greedy: Vec<_> = (0..)
            .map(|client| ledger.connection(ClientId(client)))
            .take(SERVER_BYTES / CONNECTION_BYTES)
            .map(|connection| now(&connection, CONNECTION_BYTES).unwrap())
            .collect();
        let late = ledger.connection(ClientId(u64::MAX));
        let one = now(&late, LARGE).unwrap();
        assert!(now(&late, FREE_BYTES).is_none(), "all is taken");
        drop(one);
        assert!(now(&late, LARGE).is_some());
        drop(greedy);
    }

    #[test]
    fn closed_connections_are_removed() {
        let ledger = MemoryLimits::new(Gauge::noop());
        let stays = ledger.connection(ClientId(0));
        for client in 1..20 * CLEAN_FROM as u64 {
            ledger.connection(ClientId(client));
        }
        assert!(ledger.connections.lock().of.len() <= CLEAN_FROM);
        assert!(Arc::ptr_eq(&stays, &ledger.connection(ClientId(0))));
    }

    #[tokio::test]
    async fn a_charge_ends_when_the_next_answer_is_polled() {
        let ledger = MemoryLimits::new(Gauge::noop());
        let connection = ledger.connection(ClientId(1));
        let answers = [now(&connection, LARGE), now(&connection, LARGE)];
        let mut unread = ChargedStream::new(stream::iter(answers.into_iter().enumerate()));
        let mut waiting = Box::pin(connection.charge(LARGE));
        assert!((&mut waiting).now_or_never().is_none());
        assert_eq!(unread.next().await, Some(0));
        assert!((&mut waiting).now_or_never().is_none(), "it may not be sent yet");
        assert_eq!(unread.next().await, Some(1));
        assert!((&mut waiting).now_or_never().flatten().is_some());
        // Dropping the stream frees all that was not read.
        drop((unread, waiting));
        assert_eq!(*connection.held.lock(), 0);
    }
}
