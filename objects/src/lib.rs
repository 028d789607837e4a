//! Object stores by their addresses: a folder, or a bucket with S3's interface.
//!
//! | module | what it is for |
//! |---|---|
//! | [`location`] | from a folder or a URL to an object store; `s3` for the remote kind |
//! | [`upload`] | writing objects of any length |

pub mod location;
#[cfg(feature = "s3")]
mod s3;
pub mod upload;

pub use location::{LocationError, Opened, open};
pub use upload::write;
