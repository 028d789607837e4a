//! Limits of the calls of a server: which token a call needs, how large its messages are, how long its request may take, and
//! how many calls and bytes of requests the server holds at the same time.
//!
//! | module | purpose |
//! |---|---|
//! | [`layer`] | the layer that checks each call and wraps its bodies |
//! | [`limits`] | open calls and bytes of requests of a server, and their limits |
//! | [`request`] | the body of a request, with its limits of size, memory and time |
//! | [`framing`] | the lengths of gRPC messages in a body |
//! | [`reply`] | the body of a reply |
//! | [`token_end`] | ends a call when its token is no longer accepted |
//!
//! The layer counts the bytes that a request's body yields, so data that a handler does not read stays in HTTP/2's flow-control
//! windows and is bounded by those ([`crate::serve`]).

mod framing;
pub mod layer;
pub mod limits;
pub mod reply;
pub mod request;
mod token_end;
