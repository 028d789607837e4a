//! Limits of the calls of a server: which token a call needs, how large its messages are, how long its request may take, and
//! how many calls and bytes of requests and replies the server holds at the same time, in all and for each client.
//!
//! | module | purpose |
//! |---|---|
//! | [`layer`] | the layer that checks each call and wraps its bodies |
//! | [`limits`] | open calls and bytes of requests and replies of a server, and their limits |
//! | [`shares`] | what one connection, address or token takes of each limit |
//! | [`replies`] | memory of replies, which handlers of large replies reserve |
//! | [`bodies`] | the bodies of a request, with its limits of size, memory and time, and of a reply |
//! | [`framing`] | the lengths of gRPC messages in a body |
//!
//! The layer counts the bytes that a request's body yields, so data that a handler does not read stays in HTTP/2's flow-control
//! windows and is bounded by those ([`crate::serve`]).

pub mod bodies;
mod framing;
pub mod layer;
pub mod limits;
pub mod replies;
pub(crate) mod shares;
