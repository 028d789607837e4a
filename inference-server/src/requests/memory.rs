//! Memory of requests whose answers have not been read, bounded for each connection and for all of them together.
//!
//! How many requests a stream may have on its way is bounded anyway, but an answer of logits is megabytes. What is charged is
//! given back when the transport asks for the next answer: it has passed this one on by then. Nobody waits for others to
//! read: a connection that holds nothing may always have one answer more, so who reads what it asks for is never kept
//! waiting by who does not.

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

use crate::requests::request::ClientId;

/// What one connection may hold, in bytes, but for a single answer that is larger.
pub const CONNECTION_BYTES: usize = 64 << 20;
/// What all connections may hold, in bytes, but for one answer of each.
pub const SERVER_BYTES: usize = 1 << 30;
/// What is smaller is not charged: as many of these as streams may have are little memory, and nothing is to be paid for
/// counting them.
pub const FREE_BYTES: usize = 4 << 10;
/// Accounts, at least, before they are looked through for unused ones.
const UNUSED: usize = 256;

/// What all connections hold.
#[derive(Debug)]
pub struct Ledger {
    accounts: Mutex<Accounts>,
    total: Arc<Total>,
}

#[derive(Debug, Default)]
struct Accounts {
    of: HashMap<ClientId, Weak<Account>>,
    /// So many were in use when they were last looked through.
    used: usize,
}

#[derive(Debug)]
struct Total {
    held: AtomicUsize,
    gauge: Gauge,
}

/// What one connection holds.
#[derive(Debug)]
pub struct Account {
    held: Mutex<usize>,
    freed: Notify,
    total: Arc<Total>,
}

/// Bytes that are held until this is dropped.
#[derive(Debug)]
pub struct Charge {
    account: Arc<Account>,
    bytes: usize,
}

impl Ledger {
    /// A ledger that says with `gauge` how many bytes are held.
    pub fn new(gauge: Gauge) -> Self {
        let held = AtomicUsize::new(0);
        Self {
            accounts: Mutex::default(),
            total: Arc::new(Total { held, gauge }),
        }
    }

    /// A connection's account, the same for all its calls.
    pub fn account(&self, client: ClientId) -> Arc<Account> {
        let mut accounts = self.accounts.lock();
        if let Some(account) = accounts.of.get(&client).and_then(Weak::upgrade) {
            return account;
        }
        if accounts.of.len() >= UNUSED.max(2 * accounts.used) {
            accounts.of.retain(|_, account| account.strong_count() > 0);
            accounts.used = accounts.of.len();
        }
        let account = Arc::new(Account {
            held: Mutex::new(0),
            freed: Notify::new(),
            total: self.total.clone(),
        });
        accounts.of.insert(client, Arc::downgrade(&account));
        account
    }
}

impl Account {
    /// Waits until `bytes` more may be held; `None`, at once, for less than [`FREE_BYTES`].
    pub async fn charge(self: &Arc<Self>, bytes: usize) -> Option<Charge> {
        if bytes < FREE_BYTES {
            return None;
        }
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // What is freed after the look below must not be missed.
            freed.as_mut().enable();
            if let Some(charge) = self.try_charge(bytes) {
                return Some(charge);
            }
            freed.await;
        }
    }

    fn try_charge(self: &Arc<Self>, bytes: usize) -> Option<Charge> {
        let mut held = self.held.lock();
        let total = self.total.held.load(Ordering::Relaxed);
        let fits = *held + bytes <= CONNECTION_BYTES && total + bytes <= SERVER_BYTES;
        if *held > 0 && !fits {
            return None;
        }
        *held += bytes;
        self.total.held.fetch_add(bytes, Ordering::Relaxed);
        self.total.gauge.increment(bytes as f64);
        Some(Charge {
            account: self.clone(),
            bytes,
        })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let Account { held, freed, total } = &*self.account;
        *held.lock() -= self.bytes;
        total.held.fetch_sub(self.bytes, Ordering::Relaxed);
        total.gauge.decrement(self.bytes as f64);
        freed.notify_waiters();
    }
}

/// A stream of answers, each of which is charged until the next one is asked for.
pub struct Unread<S> {
    answers: S,
    /// Of the answer that was given last.
    charge: Option<Charge>,
}

impl<S> Unread<S> {
    /// Over answers and what they are charged with.
    pub fn new(answers: S) -> Self {
        Self {
            answers,
            charge: None,
        }
    }
}

impl<S, T> Stream for Unread<S>
where
    S: Stream<Item = (T, Option<Charge>)> + Unpin,
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

    fn now(account: &Arc<Account>, bytes: usize) -> Option<Charge> {
        account.charge(bytes).now_or_never().flatten()
    }

    #[test]
    fn a_connection_has_a_limit_and_always_one_answer() {
        let ledger = Ledger::new(Gauge::noop());
        let account = ledger.account(ClientId(1));
        let first = now(&account, LARGE).unwrap();
        // Whichever call of the connection asks.
        let again = ledger.account(ClientId(1));
        let second = now(&again, LARGE).unwrap();
        assert!(now(&account, LARGE).is_none());
        // What is small is not counted.
        assert!(account.charge(FREE_BYTES - 1).now_or_never().unwrap().is_none());
        // Another connection has its own limit.
        let other = ledger.account(ClientId(2));
        drop(now(&other, 3 * CONNECTION_BYTES).unwrap());
        drop(first);
        assert!(now(&account, LARGE + 1).is_none());
        drop(second);
        let most = now(&account, 3 * CONNECTION_BYTES).unwrap();
        assert!(now(&account, FREE_BYTES).is_none());
        drop(most);
        assert_eq!(ledger.total.held.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn who_holds_nothing_need_not_wait_for_others() {
        let ledger = Ledger::new(Gauge::noop());
        let greedy: Vec<_> = (0..)
            .map(|client| ledger.account(ClientId(client)))
            .take(SERVER_BYTES / CONNECTION_BYTES)
            .map(|account| now(&account, CONNECTION_BYTES).unwrap())
            .collect();
        let late = ledger.account(ClientId(u64::MAX));
        let one = now(&late, LARGE).unwrap();
        assert!(now(&late, FREE_BYTES).is_none(), "all is taken");
        drop(one);
        assert!(now(&late, LARGE).is_some());
        drop(greedy);
    }

    #[test]
    fn accounts_of_who_is_gone_are_forgotten() {
        let ledger = Ledger::new(Gauge::noop());
        let stays = ledger.account(ClientId(0));
        for client in 1..20 * UNUSED as u64 {
            ledger.account(ClientId(client));
        }
        assert!(ledger.accounts.lock().of.len() <= UNUSED);
        assert!(Arc::ptr_eq(&stays, &ledger.account(ClientId(0))));
    }

    #[tokio::test]
    async fn what_waits_goes_on_when_the_next_answer_is_asked_for() {
        let ledger = Ledger::new(Gauge::noop());
        let account = ledger.account(ClientId(1));
        let answers = [now(&account, LARGE), now(&account, LARGE)];
        let mut unread = Unread::new(stream::iter(answers.into_iter().enumerate()));
        let mut waiting = Box::pin(account.charge(LARGE));
        assert!((&mut waiting).now_or_never().is_none());
        assert_eq!(unread.next().await, Some(0));
        assert!((&mut waiting).now_or_never().is_none(), "it may not be sent yet");
        assert_eq!(unread.next().await, Some(1));
        assert!((&mut waiting).now_or_never().flatten().is_some());
        // Dropping the stream frees all that was not read.
        drop((unread, waiting));
        assert_eq!(*account.held.lock(), 0);
    }
}
