//! The learner: trains the network (a tower or a fish-eye network) on the replay store's games and publishes proven checkpoints.
//!
//! | module | contents |
//! |---|---|
//! | [`learner`] | [`run`]: the role |
//! | [`worker`] | the training thread |
//! | [`metrics`] | the metrics page |
//! | [`data`] | batches: fetched, checked, packed and moved to the device |
//! | [`network`] | the network |
//! | [`training`] | training steps: loss, optimiser, validation, metrics |
//! | [`publishing`] | checkpoints: written, proven, published, resumed |
//! | [`torch`] | errors and helpers for libtorch; tensors as files |
//!
//! Folders depend on one another in one direction: `torch` ← `data` ← `network` ← `training` ← `publishing`.
//!
//! One thread makes all torch calls, because torch keeps a pool of helper threads for each thread that calls it. Other threads
//! do the network requests, which are async.

pub mod data;
pub mod learner;
pub mod metrics;
pub mod network;
pub mod publishing;
pub mod torch;
pub mod training;
pub mod worker;

pub use learner::run;
