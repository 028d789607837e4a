//! The inference server: rows in over gRPC, priors of the legal actions and a value out.
//!
//! The way of a request, which is also the order to read in:
//!
//! | module | what it is for |
//! |---|---|
//! | [`service`] | the gRPC service |
//! | [`kserve`] | the gRPC service that clients of the Open Inference Protocol know |
//! | [`stream`] | an actor's stream, with its own back-pressure |
//! | [`unread`] | memory of answers that wait to be read |
//! | [`deadline`] | how long a call's client waits |
//! | [`intake`] | where requests of every protocol come in: finds their model, validates, queues |
//! | [`validate`] | every number is checked against the model's own layout |
//! | [`refusal`] | why a request is not answered |
//! | [`cache`] | what models said before |
//! | [`job`] | a request on its way |
//! | [`queue`] | what is in a batch: fair between clients, whole requests |
//! | [`batcher`] | when a batch is taken |
//! | [`pace`] | how fast the device is |
//! | [`executor`] | the device's thread |
//! | [`reply`] | logits become priors |
//! | [`span`] | what a collector of spans is told of a batch |
//!
//! Where models come from:
//!
//! | module | what it is for |
//! |---|---|
//! | [`names`] | how requests name models |
//! | [`models`], [`slot`], [`model`] | which model answers |
//! | [`library`] | loads what requests name, within a budget of memory |
//! | [`source`] | stores and files that models are in |
//! | [`sidecar`] | models made elsewhere |
//! | [`follow`] | follows a label |
//! | [`loader`] | loads, checks and warms; measures providers |
//! | [`canary`] | does a provider agree with f32? |
//! | [`backend`] | the providers |
//! | [`clans`] | models of the generator game |
//! | [`session`] | a model in ONNX Runtime |
//! | [`binding`] | a batch in memory that the device reaches by itself |
//! | [`onnx_runtime`] | finds and loads ONNX Runtime (a crate of its own) |
//! | [`runner`] | what executes batches |
//! | [`buckets`] | the sizes of batches |
//!
//! [`rights`] says which right a call needs, [`metrics`] is what the server says about itself, [`server`] puts all together.

pub mod backend;
pub mod batcher;
pub mod binding;
pub mod buckets;
pub mod cache;
pub mod canary;
pub mod clans;
pub mod deadline;
pub mod executor;
pub mod follow;
pub mod intake;
pub mod job;
pub mod kserve;
pub mod library;
pub mod loader;
pub mod metrics;
pub mod model;
pub mod models;
pub mod names;
pub mod pace;
pub mod queue;
pub mod refusal;
pub mod reply;
pub mod rights;
pub mod runner;
pub mod server;
pub mod service;
pub mod session;
pub mod sidecar;
pub mod slot;
pub mod source;
mod span;
pub mod stream;
#[cfg(test)]
mod testing;
pub mod unread;
pub mod validate;

pub use server::{run, serve};
