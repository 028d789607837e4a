//! The calls that a server has open, the bytes of requests and replies that it holds for them, and the limits of both.
//!
//! A call is charged the largest message that it has received so far, because the buffer of a request keeps that size until the
//! call ends. Beyond a limit, calls end with RESOURCE_EXHAUSTED. A reply is charged while it is made and until the socket has taken it.

use std::{
    any::Any,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use metrics::{Counter, Gauge, counter, gauge};
use parking_lot::Mutex;
use tonic::Status;

use super::shares::{Accounts, Resource, Share};
use crate::{
    listener::Peer,
    security::{methods::Method, tokens::TokenDigest},
};

/// Bytes of a message that are not charged. Each open call has a buffer of this size anyway.
const FREE_BYTES: usize = 8 << 10;

/// Limits of a server, over all its connections. One connection takes at most a quarter of each number, one address or token at most
/// half ([`shares`](super::shares)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// Largest number of open calls.
    pub calls: usize,
    /// Largest number of open calls that need no token.
    pub open_calls: usize,
    /// Largest number of open calls with long replies.
    pub long_replies: usize,
    /// Largest number of bytes of requests.
    pub request_bytes: usize,
    /// Largest number of bytes of replies that are being made or sent.
    pub reply_bytes: usize,
    /// Largest time for the request of a call, and for each message of a stream of requests.
    pub request_time: Duration,
    /// Longest time in which a client reads nothing of a reply that waits for it. Then its connection is closed.
    pub reply_time: Duration,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            calls: 8192,
            open_calls: 1024,
            long_replies: 128,
            request_bytes: 256 << 20,
            reply_bytes: 256 << 20,
            request_time: Duration::from_secs(30),
            reply_time: Duration::from_secs(60),
        }
    }
}

impl CallLimits {
    /// Returns the limits of a server of health alone, whose clients are probes.
    pub(crate) fn of_probes() -> Self {
        Self {
            calls: 64,
            open_calls: 64,
            long_replies: 0,
            request_bytes: 0,
            reply_bytes: 1 << 20,
            request_time: Duration::from_secs(10),
            reply_time: Duration::from_secs(10),
        }
    }
}

/// The open calls of a server.
#[derive(Debug)]
pub(crate) struct OpenCalls {
    pub(crate) limits: CallLimits,
    accounts: Accounts,
    begun: AtomicU64,
    calls_gauge: Gauge,
    bytes_gauge: Gauge,
    reply_gauge: Gauge,
}

impl OpenCalls {
    pub(crate) fn new(limits: CallLimits) -> Arc<Self> {
        for reason in ["calls", "bytes", "time", "length"] {
            refusals(reason).increment(0);
        }
        Arc::new(Self {
            limits,
            accounts: Accounts::new(limits),
            begun: AtomicU64::new(0),
            calls_gauge: gauge!("minuet_server_calls"),
            bytes_gauge: gauge!("minuet_server_request_bytes"),
            reply_gauge: gauge!("minuet_server_reply_bytes"),
        })
    }

    /// Counts a call of `method` until the returned value is dropped. `peer` is its client, with the token `token`, if it is known.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if too many calls are open, in all or by this client.
    pub(crate) fn begin(
        self: &Arc<Self>,
        method: Method,
        peer: Option<&Peer>,
        token: Option<TokenDigest>,
    ) -> Result<Call, Status> {
        let connection = peer.map_or_else(
            || self.accounts.connection(),
            |peer| peer.account(|| self.accounts.connection()),
        );
        let share = self
            .accounts
            .share(connection, peer.and_then(Peer::client), token);
        let needed = [
            (
                true,
                Resource::Calls,
                "the server has too many open calls, in all or of this client",
            ),
            (
                !method.needs_token(),
                Resource::OpenCalls,
                "the server has too many open calls without a token",
            ),
            (
                method.has_long_reply,
                Resource::LongReplies,
                "too many calls of this kind are open, in all or of this client; read their replies, or end some of them",
            ),
        ];
        let mut call = Call {
            calls: self.clone(),
            share,
            counted: Vec::with_capacity(1),
            number: self.begun.fetch_add(1, Relaxed),
            peer: peer.cloned(),
            charged: AtomicUsize::new(0),
            reserves: AtomicBool::new(false),
            handed_over: AtomicUsize::new(0),
            kept: Mutex::default(),
            refusal: OnceLock::new(),
        };
        self.calls_gauge.increment(1.0);
        for (_, what, problem) in needed.into_iter().filter(|(is_needed, ..)| *is_needed) {
            if !call.share.take(what, 1) {
                refusals("calls").increment(1);
                peer.inspect(|peer| peer.slow_down());
                return Err(Status::resource_exhausted(problem));
            }
            call.counted.push(what);
        }
        peer.inspect(|peer| peer.speed_up());
        Ok(call)
    }
}

/// Counter of refused requests.
fn refusals(reason: &'static str) -> Counter {
    counter!("minuet_server_requests_refused_total", "reason" => reason)
}

/// An open call. Dropping it ends its charges.
#[derive(Debug)]
pub(crate) struct Call {
    calls: Arc<OpenCalls>,
    share: Share,
    /// Resources of which the call takes one.
    counted: Vec<Resource>,
    number: u64,
    peer: Option<Peer>,
    /// Charged bytes of the request.
    charged: AtomicUsize,
    /// True if the handler reserves memory for its reply.
    reserves: AtomicBool,
    /// Reserved bytes of messages that the transport has been given and that have not come as a frame.
    handed_over: AtomicUsize,
    /// Values that the handler keeps until the end of the call.
    kept: Mutex<Vec<Box<dyn Any + Send>>>,
    /// Status with which the request was refused.
    refusal: OnceLock<Status>,
}

impl Call {
    /// Returns the longest time for a request.
    pub(super) fn request_time(&self) -> Duration {
        self.calls.limits.request_time
    }

    /// Returns the status with which the request was refused. It is the status of the call even if the handler does not pass
    /// the error of the request on.
    pub(super) fn refusal(&self) -> Option<&Status> {
        self.refusal.get()
    }

    /// Sets the status with which the call ends, and returns it.
    pub(super) fn end(&self, status: Status) -> Status {
        // A second refusal of the same call changes nothing.
        drop(self.refusal.set(status.clone()));
        status
    }

    fn refuse(&self, reason: &'static str, status: Status) -> Status {
        refusals(reason).increment(1);
        self.end(status)
    }

    /// Charges a message of which `bytes` have arrived. Smaller messages than one before cost nothing more.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if the server holds too many bytes of requests.
    pub(super) fn charge(&self, bytes: usize) -> Result<(), Status> {
        let charged = self.charged.load(Relaxed);
        let more = bytes.saturating_sub(FREE_BYTES).saturating_sub(charged);
        if more == 0 {
            return Ok(());
        }
        if !self.share.take(Resource::RequestBytes, more) {
            let reason = format!(
                "the requests that this server is receiving, in all or of this client, take as many of {} bytes as are allowed; \
                 try again later",
                self.calls.limits.request_bytes
            );
            return Err(self.refuse("bytes", Status::resource_exhausted(reason)));
        }
        self.calls.bytes_gauge.increment(more as f64);
        self.charged.store(charged + more, Relaxed);
        Ok(())
    }

    /// Returns the status of a request that did not arrive in time.
    pub(super) fn too_slow(&self) -> Status {
        let reason = format!("the request was not complete after {:?}", self.request_time());
        self.refuse("time", Status::deadline_exceeded(reason))
    }

    /// Returns the status of a message that is longer than its method allows.
    pub(super) fn too_long(&self, length: usize, limit: usize) -> Status {
        let reason = format!("the message has {length} bytes; this method takes at most {limit}");
        self.refuse("length", Status::out_of_range(reason))
    }
}

/// The reply of the call.
impl Call {
    /// Waits until the client and the server have room for `bytes` more of replies, and charges them.
    pub(super) async fn reserve(&self, bytes: usize) {
        self.reserves.store(true, Relaxed);
        // A larger message than a connection may hold waits until the connection holds nothing beyond its limit.
        self.share.reply_room(bytes).await;
        self.charge_reply(bytes);
    }

    /// True if the next part of the reply may be made. A handler that reserves memory has waited for it already.
    pub(super) fn has_reply_room(&self) -> bool {
        self.reserves.load(Relaxed) || self.share.has_reply_room(0)
    }

    /// Waits until [`Self::has_reply_room`].
    pub(super) async fn reply_room(self: Arc<Self>) {
        self.share.reply_room(0).await;
    }

    /// Charges `bytes` of the reply, whether or not there is room.
    pub(super) fn charge_reply(&self, bytes: usize) {
        if bytes > 0 {
            self.share.add(Resource::ReplyBytes, bytes);
            self.calls.reply_gauge.increment(bytes as f64);
            self.peer
                .iter()
                .for_each(|peer| peer.unread().add(self.number, bytes));
        }
    }

    /// Ends the charge of `bytes` of the reply.
    pub(super) fn free_reply(&self, bytes: usize) {
        if bytes > 0 {
            self.peer
                .iter()
                .for_each(|peer| peer.unread().subtract(self.number, bytes));
            self.calls.reply_gauge.decrement(bytes as f64);
            self.share.give_back(Resource::ReplyBytes, bytes);
        }
    }

    /// Leaves charged bytes to the next frame of the reply.
    pub(super) fn hand_over(&self, bytes: usize) {
        self.handed_over.fetch_add(bytes, Relaxed);
    }

    /// Returns the bytes that were left to the next frame, and are not any more.
    pub(super) fn take_handed_over(&self) -> usize {
        self.handed_over.swap(0, Relaxed)
    }

    /// Keeps a value until the end of the call.
    pub(super) fn keep(&self, value: Box<dyn Any + Send>) {
        self.kept.lock().push(value);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.free_reply(self.take_handed_over());
        let charged = self.charged.load(Relaxed);
        self.share.give_back(Resource::RequestBytes, charged);
        self.calls.bytes_gauge.decrement(charged as f64);
        for what in self.counted.drain(..) {
            self.share.give_back(what, 1);
        }
        self.calls.calls_gauge.decrement(1.0);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use tonic::Code;

    use super::*;
    use crate::{calls::replies::Replies, security::methods::Access};

    const ANY: Method = Method::new(Access::AnyToken);
    const LIMITS: CallLimits = CallLimits {
        calls: 3,
        open_calls: 1,
        long_replies: 1,
        request_bytes: 100,
        reply_bytes: 4 << 20,
        request_time: Duration::from_secs(1),
        reply_time: Duration::from_secs(1),
    };

    #[test]
    fn calls_of_a_kind_have_a_limit_of_their_own() {
        let calls = OpenCalls::new(LIMITS);
        let peer = Peer::new(None);
        let begin = |method| calls.begin(method, Some(&peer), None);
        for method in [Method::new(Access::Everyone), ANY.with_long_reply()] {
            let first = begin(method).unwrap();
            assert_eq!(begin(method).unwrap_err().code(), Code::ResourceExhausted);
            drop(first);
            drop(begin(method).unwrap());
        }
        assert_eq!(calls.accounts.held(Resource::Calls), 0);
    }

    #[test]
    fn a_call_is_charged_its_largest_message_until_it_ends() {
        let calls = OpenCalls::new(LIMITS);
        let [first, second] = [(); 2].map(|()| calls.begin(ANY, None, None).unwrap());
        first.charge(FREE_BYTES + 24).unwrap();
        first.charge(FREE_BYTES + 20).unwrap();
        assert_eq!(
            first.charge(FREE_BYTES + 60).map_err(|status| status.code()),
            Ok(()),
            "one message beyond"
        );
        assert_eq!(
            first.charge(FREE_BYTES + 61).unwrap_err().code(),
            Code::ResourceExhausted
        );
        second.charge(FREE_BYTES + 100).unwrap();
        assert_eq!(calls.accounts.held(Resource::RequestBytes), 160);
        drop(first);
        assert_eq!(calls.accounts.held(Resource::RequestBytes), 100);
        drop(second);
        assert_eq!(calls.accounts.held(Resource::RequestBytes), 0);
    }

    #[test]
    fn a_reply_is_charged_from_its_making_until_the_transport_has_sent_it() {
        let calls = OpenCalls::new(LIMITS);
        let call = Arc::new(calls.begin(ANY, None, None).unwrap());
        let held = || calls.accounts.held(Resource::ReplyBytes);
        let replies = Replies::new(call.clone());
        let mut first = replies.reserve(3000).now_or_never().unwrap();
        let second = replies.reserve(2 << 20).now_or_never().unwrap();
        assert!(replies.reserve(1).now_or_never().is_none());
        first.resize(2000);
        drop(second);
        assert_eq!(held(), 2000);
        first.hand_over();
        let frame = super::super::replies::charged(&call, vec![7; 2100].into());
        assert_eq!((held(), frame.len()), (2100, 2100));
        let part = frame.slice(5..9);
        drop((frame, replies, call));
        assert_eq!(held(), 2100, "a part is not sent");
        drop(part);
        assert_eq!(held(), 0);
    }
}
