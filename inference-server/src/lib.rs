//! The inference server: rows in over gRPC, priors of the legal actions and a value out.
//!
//! The way of a request, which is also the order to read in:
//!
//! | module | what it is for |
//! |---|---|
//! | [`service`] | the gRPC service: validates, queues |
//! | [`stream`] | an actor's stream, with its own back-pressure |
//! | [`validate`] | every number is checked against the model's own layout |
//! | [`refusal`] | why a request is not answered |
//! | [`job`] | a request on its way |
//! | [`queue`] | what is in a batch: fair between clients, whole requests |
//! | [`batcher`] | when a batch is taken |
//! | [`executor`] | the device's thread |
//! | [`reply`] | logits become priors |
//!
//! Where models come from:
//!
//! | module | what it is for |
//! |---|---|
//! | [`follow`] | follows the model repository |
//! | [`loader`] | loads, checks and warms; measures providers |
//! | [`canary`] | does a provider agree with f32? |
//! | [`backend`] | the providers |
//! | [`session`] | a model in ONNX Runtime |
//! | [`onnx_runtime`] | finds and loads ONNX Runtime (a crate of its own) |
//! | [`models`], [`model`] | which model answers |
//! | [`runner`] | what executes batches |
//! | [`buckets`] | the sizes of batches |
//!
//! [`metrics`] is what the server says about itself, [`server`] puts all together.

pub mod backend;
pub mod batcher;
pub mod buckets;
pub mod canary;
pub mod executor;
pub mod follow;
pub mod job;
pub mod loader;
pub mod metrics;
pub mod model;
pub mod models;
pub mod queue;
pub mod refusal;
pub mod reply;
pub mod runner;
pub mod server;
pub mod service;
pub mod session;
pub mod stream;
#[cfg(test)]
mod testing;
pub mod validate;

pub use server::{run, serve};
