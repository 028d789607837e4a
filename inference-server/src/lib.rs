//! The inference server: rows in over gRPC, priors of the legal actions and a value out.
//!
//! A request passes through these modules, in this order:
//!
//! | module | contents |
//! |---|---|
//! | [`service`] | the gRPC service `minuet.v1.Evaluator` |
//! | [`kserve`] | the gRPC service of the Open Inference Protocol |
//! | [`intake`] | a request in the form that all protocols share: finds its model, validates it, looks in the cache, queues it |
//! | [`models`] | the models that are served: names, sources, loading, replacement |
//! | [`batching`] | requests become batches for the device, and its outputs become answers |
//!
//! [`metrics`] holds the server's metrics; [`server`] connects all parts and holds the rules of each method: rights and sizes.
//! The crate [`network`] loads and runs models.

pub mod batching;
pub mod intake;
pub mod kserve;
pub mod metrics;
pub mod models;
pub mod server;
pub mod service;
#[cfg(test)]
mod tests;

pub use server::{run, serve};
