//! A request and its answer in the form that all protocols share.
//!
//! | module | contents |
//! |---|---|
//! | [`request`] | a request, and the client that sent it |
//! | [`response`] | the answer: its forms, how it is put together, where it is sent |
//! | [`refusal`] | the reasons for which a request is rejected |
//! | [`memory`] | limits on the memory of answers that clients have not read yet |

pub mod memory;
pub mod refusal;
pub mod request;
pub mod response;
