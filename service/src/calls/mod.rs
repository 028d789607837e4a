//! Limits of the calls of a server: which token a call needs, how large its messages are, how long its request may take, and
//! how many calls and bytes of requests the server holds at the same time.
//!
//! | module | purpose |
//! |---|---|
//! | [`layer`] | the layer that checks each call and wraps its bodies |
//! | [`limits`] | open calls and bytes of requests of a server, and their limits |
//! | [`bodies`] | the bodies of a request, with its limits of size, memory and time, and of a reply |
//! | [`framing`] | the lengths of gRPC messages in a body |
//!
//! The layer counts the bytes that a request's body yields, so data that a handler does not read stays in HTTP/2's flow-control
//! windows and is bounded by those ([`crate::serve`]).

pub mod bodies;
mod framing;
pub mod layer;
pub mod limits;
