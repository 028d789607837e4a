//! The calls that a server has open, the bytes of requests that it holds for them, and the limits of both.
//!
//! A call is charged the largest message that it has received so far, because the buffer of a request keeps that size until the
//! call ends. Beyond a limit, calls end with RESOURCE_EXHAUSTED.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use metrics::{Counter, Gauge, counter, gauge};
use tonic::Status;

/// Bytes of a message that are not charged. Each open call has a buffer of this size anyway.
const FREE_BYTES: usize = 8 << 10;

/// Limits of a server, over all its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// Largest number of open calls.
    pub calls: usize,
    /// Largest number of open calls that need no token.
    pub open_calls: usize,
    /// Largest number of bytes of requests.
    pub request_bytes: usize,
    /// Largest time for the request of a call, and for each message of a stream of requests.
    pub request_time: Duration,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            calls: 8192,
            open_calls: 1024,
            request_bytes: 256 << 20,
            request_time: Duration::from_secs(30),
        }
    }
}

impl CallLimits {
    /// Returns the limits of a server of health alone, whose clients are probes.
    pub(crate) fn of_probes() -> Self {
        Self {
            calls: 64,
            open_calls: 64,
            request_bytes: 0,
            request_time: Duration::from_secs(10),
        }
    }
}

/// The open calls of a server.
#[derive(Debug)]
pub(crate) struct OpenCalls {
    pub(crate) limits: CallLimits,
    calls: AtomicUsize,
    open_calls: AtomicUsize,
    bytes: AtomicUsize,
    calls_gauge: Gauge,
    bytes_gauge: Gauge,
}

impl OpenCalls {
    pub(crate) fn new(limits: CallLimits) -> Arc<Self> {
        for reason in ["calls", "bytes", "time", "length"] {
            refusals(reason).increment(0);
        }
        Arc::new(Self {
            limits,
            calls: AtomicUsize::new(0),
            open_calls: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            calls_gauge: gauge!("minuet_server_calls"),
            bytes_gauge: gauge!("minuet_server_request_bytes"),
        })
    }

    /// Counts a call until the returned value is dropped. `needs_token` is false for calls that anybody may make.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if too many calls are open.
    pub(crate) fn begin(self: &Arc<Self>, needs_token: bool) -> Result<Call, Status> {
        // Counts first: a refused call is dropped, which undoes the count.
        let call = Call {
            calls: self.clone(),
            needs_token,
            charged: AtomicUsize::new(0),
            refusal: OnceLock::new(),
        };
        self.calls_gauge.increment(1.0);
        let is_full = self.calls.fetch_add(1, Relaxed) >= self.limits.calls;
        let is_open_full = !needs_token && self.open_calls.fetch_add(1, Relaxed) >= self.limits.open_calls;
        if is_full || is_open_full {
            refusals("calls").increment(1);
            return Err(Status::resource_exhausted("the server has too many open calls"));
        }
        Ok(call)
    }
}

/// Counter of refused requests.
fn refusals(reason: &'static str) -> Counter {
    counter!("minuet_server_requests_refused_total", "reason" => reason)
}

/// An open call. Dropping it ends its charge.
#[derive(Debug)]
pub(crate) struct Call {
    calls: Arc<OpenCalls>,
    needs_token: bool,
    charged: AtomicUsize,
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
        let limit = self.calls.limits.request_bytes;
        let add = |held: usize| held.checked_add(more).filter(|&held| held <= limit);
        if self.calls.bytes.fetch_update(Relaxed, Relaxed, add).is_err() {
            let reason = format!(
                "the requests that this server is receiving take {limit} bytes, as many as are allowed; try again later"
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

impl Drop for Call {
    fn drop(&mut self) {
        let charged = self.charged.load(Relaxed);
        if charged > 0 {
            self.calls.bytes.fetch_sub(charged, Relaxed);
            self.calls.bytes_gauge.decrement(charged as f64);
        }
        self.calls.calls.fetch_sub(1, Relaxed);
        if !self.needs_token {
            self.calls.open_calls.fetch_sub(1, Relaxed);
        }
        self.calls.calls_gauge.decrement(1.0);
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    const LIMITS: CallLimits = CallLimits {
        calls: 3,
        open_calls: 1,
        request_bytes: 100,
        request_time: Duration::from_secs(1),
    };

    #[test]
    fn calls_without_a_token_cannot_use_up_all_calls() {
        let calls = OpenCalls::new(LIMITS);
        let probe = calls.begin(false).unwrap();
        assert_eq!(calls.begin(false).unwrap_err().code(), Code::ResourceExhausted);
        let (first, _second) = (calls.begin(true).unwrap(), calls.begin(true).unwrap());
        assert!(calls.begin(true).is_err());
        drop(first);
        assert!(calls.begin(true).is_ok());
        drop(probe);
        assert!(calls.begin(false).is_ok());
    }

    #[test]
    fn a_call_is_charged_its_largest_message_until_it_ends() {
        let calls = OpenCalls::new(LIMITS);
        let (first, second) = (calls.begin(true).unwrap(), calls.begin(true).unwrap());
        first.charge(FREE_BYTES + 60).unwrap();
        first.charge(FREE_BYTES + 20).unwrap();
        second.charge(FREE_BYTES + 40).unwrap();
        assert_eq!(
            second.charge(FREE_BYTES + 41).unwrap_err().code(),
            Code::ResourceExhausted
        );
        assert_eq!(calls.bytes.load(Relaxed), 100);
        drop(first);
        second.charge(FREE_BYTES + 100).unwrap();
        drop(second);
        assert_eq!(calls.bytes.load(Relaxed), 0);
    }
}
