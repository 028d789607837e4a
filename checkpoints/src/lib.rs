//! The model repository: checkpoints are published, watched, fetched and verified here.
//!
//! | module | what it is for |
//! |---|---|
//! | [`version`] | names: [`Version`]s and labels |
//! | [`manifest`] | what is known about a checkpoint: [`Manifest`], [`Draft`] |
//! | [`repository`] | [`Repository`]: label, resolve, fetch, list |
//! | [`mod@publish`] | files first, manifest last |
//! | [`watch`] | following a label |
//! | [`lease`] | one publisher at a time: [`Lease`], its token |
//! | [`prune`] | removing what is no longer needed |
//! | `swap` | replacing an object only while it is what was read |
//! | [`error`] | what can go wrong |
//!
//! # Layout of a store
//! ```text
//! versions/000000001500-9f3c0a1b/model.onnx            the network for the inference server
//! versions/000000001500-9f3c0a1b/weights.safetensors   the network for the learner
//! versions/000000001500-9f3c0a1b/optimizer.safetensors its optimiser's state
//! versions/000000001500-9f3c0a1b/manifest.json         written last: makes the version visible
//! labels/latest.json                                   which version a label points at, and the highest publisher's token
//! leases/latest.json                                   who may publish and move the label
//! lock                                                 in a folder only: processes take turns with labels and leases
//! ```
//! A version is visible once its manifest is, and the manifest is put if absent after all files are there, so a reader
//! never sees half a checkpoint. A visible version never changes. A label moves by one atomic, conditional overwrite after that.
//!
//! # Lines
//! Several learners may share a store, each under a label of its own: the label's lease makes it the only publisher of that *line*.
//! A manifest carries the name of its line. Resuming, pruning and listing look at one line only; a version's name and the files
//! are found in one place whatever the line. The run's own line is [`LATEST`].

pub mod error;
pub mod lease;
pub mod manifest;
pub mod prune;
pub mod publish;
pub mod repository;
mod swap;
pub mod version;
pub mod watch;

pub use error::Error;
pub use lease::{Lease, LeaseTimes};
pub use manifest::{Draft, FileEntry, Manifest};
pub use prune::Pruned;
pub use repository::Repository;
pub use version::Version;

/// The file every checkpoint has: the network as ONNX. Its digest is part of the version's name.
pub const MODEL: &str = "model.onnx";
/// The learner's file of weights and running statistics.
pub const WEIGHTS: &str = "weights.safetensors";
/// The learner's file of optimiser state.
pub const OPTIMIZER: &str = "optimizer.safetensors";
/// The label of the newest checkpoint.
pub const LATEST: &str = "latest";
/// The label of the strongest checkpoint that was rated.
pub const BEST: &str = "best";
/// The label of the checkpoint that plays against the best one now, which keeps it from being pruned.
pub const CANDIDATE: &str = "candidate";
