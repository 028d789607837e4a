//! Shares of what a server has for all its clients: calls, long replies, and bytes of requests and of replies.
//!
//! One connection takes at most a quarter of each, and all connections of one address or with one token take at most half. So one
//! client leaves the rest to others. Each connection has a small reserve that it gets even if the others take everything, so that a
//! client is served although another one of the same address takes much. Reserves come on top of the limits.

use std::{
    collections::HashMap,
    hash::Hash,
    net::IpAddr,
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::limits::CallLimits;
use crate::security::tokens::TokenDigest;

/// Part of a limit that one connection takes at most, as a divisor.
const OF_CONNECTION: usize = 4;
/// Part of a limit that one address or token takes at most, as a divisor.
const OF_GROUP: usize = 2;
/// Part of a connection's limit that it always gets, as a divisor; at least 1.
const RESERVED: usize = 256;
/// Smallest number of accounts of groups at which unused ones are removed.
const CLEAN_FROM: usize = 256;

/// A limited resource. Its number is its place in the arrays of this module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    /// Open calls.
    Calls,
    /// Open calls that need no token.
    OpenCalls,
    /// Open calls with long replies.
    LongReplies,
    /// Bytes of requests that have arrived.
    RequestBytes,
    /// Bytes of replies that are being made or sent.
    ReplyBytes,
}

const RESOURCES: usize = 5;

/// Resources that one client, or the whole server, holds.
#[derive(Debug)]
pub(crate) struct Account {
    held: [AtomicUsize; RESOURCES],
    limits: [usize; RESOURCES],
    /// Notified when bytes of replies have become free.
    freed: Notify,
}

impl Account {
    fn new(limits: &CallLimits, divisor: usize) -> Arc<Self> {
        let limits = [
            limits.calls,
            limits.open_calls,
            limits.long_replies,
            limits.request_bytes,
            limits.reply_bytes,
        ];
        Arc::new(Self {
            held: Default::default(),
            limits: limits.map(|limit| limit / divisor),
            freed: Notify::new(),
        })
    }

    fn held(&self, what: Resource) -> usize {
        self.held[what as usize].load(Relaxed)
    }

    fn is_full(&self, what: Resource) -> bool {
        self.held(what) >= self.limits[what as usize]
    }
}

/// The accounts of a server: its own, and those of the addresses and tokens that have calls.
#[derive(Debug)]
pub(crate) struct Accounts {
    limits: CallLimits,
    server: Arc<Account>,
    addresses: Mutex<Groups<IpAddr>>,
    tokens: Mutex<Groups<TokenDigest>>,
}

#[derive(Debug)]
struct Groups<K> {
    of: HashMap<K, Weak<Account>>,
    /// Number of entries at which unused ones are removed.
    clean_at: usize,
}

impl<K: Eq + Hash> Groups<K> {
    fn new() -> Mutex<Self> {
        Mutex::new(Self {
            of: HashMap::new(),
            clean_at: CLEAN_FROM,
        })
    }

    fn get(&mut self, key: K, limits: &CallLimits) -> Arc<Account> {
        if let Some(account) = self.of.get(&key).and_then(Weak::upgrade) {
            return account;
        }
        if self.of.len() >= self.clean_at {
            self.of.retain(|_, account| account.strong_count() > 0);
            self.clean_at = CLEAN_FROM.max(2 * self.of.len());
        }
        let account = Account::new(limits, OF_GROUP);
        self.of.insert(key, Arc::downgrade(&account));
        account
    }
}

impl Accounts {
    pub(crate) fn new(limits: CallLimits) -> Self {
        Self {
            limits,
            server: Account::new(&limits, 1),
            addresses: Groups::new(),
            tokens: Groups::new(),
        }
    }

    /// Returns the account of a new connection.
    pub(crate) fn connection(&self) -> Arc<Account> {
        Account::new(&self.limits, OF_CONNECTION)
    }

    /// Returns the share of a call on `connection`, from `address` and with `token`, as far as they are known.
    pub(crate) fn share(
        &self,
        connection: Arc<Account>,
        address: Option<IpAddr>,
        token: Option<TokenDigest>,
    ) -> Share {
        let address = address.map(|address| self.addresses.lock().get(address, &self.limits));
        let token = token.map(|token| self.tokens.lock().get(token, &self.limits));
        Share {
            connection,
            groups: [Some(self.server.clone()), address, token],
        }
    }

    /// Returns what the whole server holds.
    #[cfg(test)]
    pub(crate) fn held(&self, what: Resource) -> usize {
        self.server.held(what)
    }
}

/// The accounts that a call is charged to.
#[derive(Debug)]
pub(crate) struct Share {
    connection: Arc<Account>,
    groups: [Option<Arc<Account>>; 3],
}

impl Share {
    fn accounts(&self) -> impl Iterator<Item = &Arc<Account>> {
        self.groups.iter().flatten().chain([&self.connection])
    }

    /// Returns an account that has no room; `None` if the call may take `amount`.
    fn full(&self, what: Resource, amount: usize) -> Option<&Arc<Account>> {
        let reserve = (self.connection.limits[what as usize] / RESERVED).max(1);
        // An unknown amount counts as one.
        if self.connection.held(what) + amount.max(1) <= reserve {
            return None;
        }
        self.accounts().find(|account| account.is_full(what))
    }

    /// Takes `amount`, unless an account has no room. What is taken may exceed an account's limit by one amount.
    pub(crate) fn take(&self, what: Resource, amount: usize) -> bool {
        let has_room = self.full(what, amount).is_none();
        if has_room {
            self.add(what, amount);
        }
        has_room
    }

    /// Takes `amount`, whether or not there is room.
    pub(crate) fn add(&self, what: Resource, amount: usize) {
        for account in self.accounts() {
            account.held[what as usize].fetch_add(amount, Relaxed);
        }
    }

    /// Gives `amount` back.
    pub(crate) fn give_back(&self, what: Resource, amount: usize) {
        for account in self.accounts() {
            let (held, limit) = (&account.held[what as usize], account.limits[what as usize]);
            let before = held.fetch_sub(amount, Relaxed);
            let has_room_again = before >= limit && before - amount < limit;
            // The calls of the connection itself may wait for its reserve.
            if has_room_again || Arc::ptr_eq(account, &self.connection) {
                account.freed.notify_waiters();
            }
        }
    }

    /// True if a call may make or send `bytes` more of its reply.
    pub(crate) fn has_reply_room(&self, bytes: usize) -> bool {
        self.full(Resource::ReplyBytes, bytes).is_none()
    }

    /// Waits until [`Self::has_reply_room`].
    pub(crate) async fn reply_room(&self, bytes: usize) {
        loop {
            let Some(full) = self.full(Resource::ReplyBytes, bytes) else {
                return;
            };
            let freed = [full.freed.notified(), self.connection.freed.notified()];
            let [group, connection] = freed;
            tokio::pin!(group, connection);
            // Both are registered before the second look, so that bytes freed in between are not missed.
            group.as_mut().enable();
            connection.as_mut().enable();
            if self.has_reply_room(bytes) {
                return;
            }
            tokio::select! {
                () = group => {}
                () = connection => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    const MIB: usize = 1 << 20;

    fn accounts() -> Accounts {
        Accounts::new(CallLimits {
            calls: 4096,
            reply_bytes: 64 * MIB,
            ..CallLimits::default()
        })
    }

    fn share(accounts: &Accounts, address: u8, token: &str) -> Share {
        let address = Some(IpAddr::from([10, 0, 0, address]));
        accounts.share(accounts.connection(), address, Some(TokenDigest::of(token)))
    }

    fn taken(share: &Share) -> usize {
        (0..).take_while(|_| share.take(Resource::Calls, 1)).count()
    }

    #[test]
    fn a_connection_takes_a_quarter_an_address_or_token_half_and_each_other_connection_its_reserve() {
        let accounts = accounts();
        let clients = [(1, "a"), (1, "b"), (1, "c"), (2, "a")];
        let shares = clients.map(|(address, token)| share(&accounts, address, token));
        // The third has its reserve, because its address has half.
        assert_eq!(shares.each_ref().map(taken), [1024, 1024, 4, 1024]);
        let before = accounts.held(Resource::Calls);
        let other = share(&accounts, 3, "d");
        let many = taken(&other);
        assert!(many > 900, "{many} with {before} taken");
        other.give_back(Resource::Calls, many);
        assert_eq!(accounts.held(Resource::Calls), before);
    }

    #[test]
    fn a_reply_waits_until_bytes_of_its_group_or_connection_are_free() {
        let accounts = accounts();
        let [first, second, late] = [1, 1, 1].map(|address| share(&accounts, address, "a"));
        first.add(Resource::ReplyBytes, 16 * MIB);
        second.add(Resource::ReplyBytes, 16 * MIB);
        assert!(late.has_reply_room(60 << 10) && !late.has_reply_room(MIB));
        let mut waiting = Box::pin(late.reply_room(MIB));
        assert!((&mut waiting).now_or_never().is_none());
        second.give_back(Resource::ReplyBytes, 1);
        assert!(waiting.now_or_never().is_some());
        assert!(share(&accounts, 2, "b").has_reply_room(MIB));
        let mut own = Box::pin(first.reply_room(0));
        assert!((&mut own).now_or_never().is_none());
        first.give_back(Resource::ReplyBytes, MIB);
        assert!(own.now_or_never().is_some());
    }

    #[test]
    fn accounts_of_groups_without_calls_are_removed() {
        let accounts = accounts();
        for number in 0..20 * CLEAN_FROM {
            accounts.share(
                accounts.connection(),
                None,
                Some(TokenDigest::of(&number.to_string())),
            );
        }
        assert!(accounts.tokens.lock().of.len() <= CLEAN_FROM);
    }
}
