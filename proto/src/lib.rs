//! Every wire contract of Minuet: the `.proto` files' generated types, and the few encodings they leave open.
//!
//! Nothing outside this crate knows how a message is laid out in bytes.

pub mod bounded;
pub mod priors;

/// `minuet.v1`: the evaluation service and the replay store.
#[allow(missing_docs, clippy::all, clippy::pedantic)]
pub mod v1 {
    tonic::include_proto!("minuet.v1");
}

/// The Open Inference Protocol (KServe v2), as public clients speak it.
#[allow(missing_docs, clippy::all, clippy::pedantic)]
pub mod inference {
    tonic::include_proto!("inference");
}

/// The file descriptor set of every service here, for gRPC reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
