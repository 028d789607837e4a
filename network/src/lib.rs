//! Networks: loaded and run in this process, or asked through an inference server.
//!
//! | module | contents |
//! |---|---|
//! | [`name`] | names by which a person points at a network: a file, a folder, a run, a store, a server |
//! | [`client`] | the trait [`Network`], its two implementations, and batches of positions |
//! | [`batched`] | evaluates the leaves of many searches in batches, with the cache and without duplicates |
//! | [`cache`] | evaluations by exact row and legal actions, bounded in bytes |
//! | `file` | finds and verifies the ONNX file of a name |
//! | `runtime` | finds and loads the ONNX Runtime library, once in a process |
//! | `provider` | ONNX Runtime's execution providers and their settings |
//! | `session` | one model in ONNX Runtime: rows in, logits and values out |
//! | `loader` | loads a model, checks it against f32, measures providers, warms it up |
//! | `threads` | the number of threads that evaluate, by measurement |
//! | `canary` | compares a provider's outputs with those of f32 |
//! | `buckets` | the batch sizes that a model is padded to |
//! | `model` | a model that is ready to run, and what is known about it |
//! | [`shipped`] | networks that come with Minuet |
//! | `trial` | tries models of other sources out, in a process of their own |
//! | `sidecar` | descriptions of models that other programs made |
//!
//! The feature `local` (on by default) adds everything that needs ONNX Runtime. Without it the crate holds names, the
//! remote client and the cache.

#[cfg(feature = "local")]
pub mod batch;
pub mod batched;
#[cfg(feature = "local")]
pub mod buckets;
pub mod cache;
#[cfg(feature = "local")]
pub mod canary;
pub mod client;
#[cfg(feature = "local")]
pub mod file;
#[cfg(feature = "local")]
pub mod loader;
#[cfg(feature = "local")]
pub mod model;
pub mod name;
#[cfg(feature = "local")]
pub mod provider;
#[cfg(feature = "local")]
pub mod runtime;
#[cfg(feature = "local")]
pub mod session;
pub mod shipped;
#[cfg(feature = "local")]
pub mod sidecar;
pub mod softmax;
#[cfg(feature = "local")]
pub mod threads;
#[cfg(feature = "local")]
pub mod trial;

#[cfg(feature = "local")]
pub use client::LocalNetwork;
pub use client::{Description, Network, NetworkError, PositionBatch, Predictions, RemoteNetwork};
#[cfg(feature = "local")]
pub use file::{ModelError, ModelFile};
pub use name::ModelName;
