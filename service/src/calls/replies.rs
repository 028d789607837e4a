//! Memory of replies. [`Replies`] lets a handler reserve memory before it makes a large message of a reply.
//!
//! All frames of replies are charged until the socket has taken them, whether or not the handler reserved memory. A reply whose
//! handler reserves nothing is not made further while there is no room. Where a client reads nothing of a reply for
//! [`CallLimits::reply_time`](super::limits::CallLimits), its connection is closed, which frees all its memory.

use std::sync::Arc;

use futures::stream::{BoxStream, Stream, StreamExt as _};
use tonic::{Request, codegen::Bytes};

use super::limits::Call;

/// The memory of the replies of one call. Without a [`CallLayer`](super::layer::CallLayer), it is not limited.
#[derive(Clone, Debug, Default)]
pub struct Replies(Option<Arc<Call>>);

impl Replies {
    pub(super) fn new(call: Arc<Call>) -> Self {
        Self(Some(call))
    }

    /// Returns the memory of the replies to a request.
    pub fn of<T>(request: &Request<T>) -> Self {
        request.extensions().get().cloned().unwrap_or_default()
    }

    /// Waits until a message of about `bytes` may be made. Drop the future if the client has gone.
    pub async fn reserve(&self, bytes: usize) -> Reserved {
        if let Some(call) = &self.0 {
            call.reserve(bytes).await;
        }
        Reserved(Charge {
            call: self.0.clone(),
            bytes,
        })
    }

    /// Keeps `value`, for example a charge of another kind, until the reply has been sent or the call has ended.
    pub fn keep(&self, value: impl Send + 'static) {
        if let Some(call) = &self.0 {
            call.keep(Box::new(value));
        }
    }
}

/// Returns a stream of messages that leaves the memory of each message to the reply.
pub fn handing_over<T: Send + 'static>(
    messages: impl Stream<Item = (T, Reserved)> + Send + 'static,
) -> BoxStream<'static, T> {
    let messages = messages.map(|(message, reserved)| {
        reserved.hand_over();
        message
    });
    messages.boxed()
}

/// Memory reserved for one message of a reply. Dropping it frees the memory. The default reserves nothing.
#[derive(Debug, Default)]
pub struct Reserved(Charge);

impl Reserved {
    /// Sets the size to that of the message, in bytes. Does not wait.
    pub fn resize(&mut self, bytes: usize) {
        self.0.resize(bytes);
    }

    /// Takes `bytes` out of this memory for one of several messages. Does not wait if there is less.
    pub fn split(&mut self, bytes: usize) -> Self {
        let mut part = Self(Charge {
            call: self.0.call.clone(),
            bytes: 0,
        });
        part.resize(bytes);
        self.resize(self.0.bytes.saturating_sub(bytes));
        part
    }

    /// Leaves the memory to the reply. Call this when the message is given to the transport, which frees the memory when the message
    /// has been sent.
    pub fn hand_over(mut self) {
        // The charge has no call any more, so its drop frees nothing.
        if let Some(call) = self.0.call.take() {
            call.hand_over(self.0.bytes);
        }
    }
}

/// Charged bytes of a reply.
#[derive(Debug, Default)]
pub(super) struct Charge {
    call: Option<Arc<Call>>,
    bytes: usize,
}

impl Charge {
    fn resize(&mut self, bytes: usize) {
        if let Some(call) = &self.call {
            call.charge_reply(bytes.saturating_sub(self.bytes));
            call.free_reply(self.bytes.saturating_sub(bytes));
        }
        self.bytes = bytes;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.resize(0);
    }
}

/// Bytes of a reply that the transport holds.
struct Sent {
    bytes: Bytes,
    _charge: Charge,
}

impl AsRef<[u8]> for Sent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Charges `bytes`, which the transport holds until they are sent, with the memory that was handed over for them.
pub(super) fn charged(call: &Arc<Call>, bytes: Bytes) -> Bytes {
    if bytes.is_empty() {
        return bytes;
    }
    let mut charge = Charge {
        call: Some(call.clone()),
        bytes: call.take_handed_over(),
    };
    charge.resize(bytes.len());
    Bytes::from_owner(Sent {
        bytes,
        _charge: charge,
    })
}
