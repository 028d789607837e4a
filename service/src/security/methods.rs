//! [`Method`]: the rules for the calls of a method, with the token that it needs.

use super::tokens::Right;

/// Largest size of a health request, in bytes.
const HEALTH_BYTES: usize = 1 << 10;
/// Largest size of a request of a method that states no other limit, in bytes.
const SMALL_BYTES: usize = 64 << 10;
/// Prefix of paths that need no token, because probes have none.
const HEALTH: &str = "/grpc.health.v1.Health/";
/// Prefix of paths that need a token with any right.
const REFLECTION: &str = "/grpc.reflection.";

/// Tokens with which a method may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// No token is needed.
    Everyone,
    /// Any known token.
    AnyToken,
    /// A token with this right.
    Right(Right),
}

/// Rules for the calls of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    pub(crate) access: Access,
    /// Largest size of one message of a request, in bytes.
    pub(crate) max_message: usize,
    /// True if a request is a stream of messages, which may be open without a time limit.
    pub(crate) has_request_stream: bool,
    /// True if a reply is a stream of large messages.
    pub(crate) has_long_reply: bool,
}

/// Returns the rules of a method by its path (`/package.Service/Method`).
pub type Methods = fn(&str) -> Method;

impl Method {
    /// Makes the rules of a method with one request message of at most 64 KiB.
    pub const fn new(access: Access) -> Self {
        Self {
            access,
            max_message: SMALL_BYTES,
            has_request_stream: false,
            has_long_reply: false,
        }
    }

    /// Makes the rules of a method that needs `right`, with one request message of at most 64 KiB.
    pub const fn needs(right: Right) -> Self {
        Self::new(Access::Right(right))
    }

    /// Sets the largest size of a request message, in bytes. The service's own limit holds as well.
    pub const fn with_max_message(mut self, bytes: usize) -> Self {
        self.max_message = bytes;
        self
    }

    /// States that a request is a stream of messages.
    pub const fn with_request_stream(mut self) -> Self {
        self.has_request_stream = true;
        self
    }

    /// States that a reply is a stream of large messages. The number of open calls of such methods is limited.
    pub const fn with_long_reply(mut self) -> Self {
        self.has_long_reply = true;
        self
    }

    pub(crate) fn needs_token(self) -> bool {
        self.access != Access::Everyone
    }

    /// Returns the rules of the method at `path`. Those of health and reflection are the same in every server.
    pub(crate) fn at(path: &str, methods: Methods) -> Self {
        if path.starts_with(HEALTH) {
            Self::new(Access::Everyone).with_max_message(HEALTH_BYTES)
        } else if path.starts_with(REFLECTION) {
            Self::new(Access::AnyToken).with_request_stream()
        } else {
            methods(path)
        }
    }
}
