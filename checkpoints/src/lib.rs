//! The model repository: publishes, watches, fetches and verifies checkpoints in an object store.
//!
//! | module | contents |
//! |---|---|
//! | [`version`] | [`Version`]: names of checkpoints |
//! | [`manifest`] | [`Manifest`], [`Draft`]: descriptions of checkpoints |
//! | [`repository`] | [`Repository`]: labels, resolving, fetching, listing |
//! | [`mod@publish`] | publishing: files first, manifest last |
//! | [`watch`] | watching a label |
//! | [`lease`] | [`Lease`]: one publisher at a time, with fencing tokens |
//! | [`milestones`] | labels of checkpoints that are kept permanently |
//! | [`damage`] | finding damaged files of a store, and repairing labels and leases |
//! | [`prune`] | removing old checkpoints and leftovers |
//! | `swap` | compare-and-swap of small objects, and the test of a store before a run needs it |
//! | [`error`] | [`Error`] |
//!
//! ```
//! use checkpoints::{Draft, LATEST, MODEL, Repository};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let repository = Repository::open(&folder.path().to_string_lossy())?;
//!
//! // The learner publishes a checkpoint and moves the label.
//! let draft = Draft { game: "chess".into(), step: 1500, ..Draft::default() };
//! let version = repository.publish(draft, vec![(MODEL, "network".into())]).await?;
//! repository.set_label(LATEST, &version).await?;
//!
//! // The inference server resolves the label and fetches the verified model file.
//! let manifest = repository.resolve(LATEST).await?;
//! assert_eq!((manifest.draft.step, &manifest.version), (1500, &version));
//! assert_eq!(repository.fetch(&manifest, MODEL).await?, "network");
//! # Ok(())
//! # }
//! ```
//!
//! # Layout of a store
//! ```text
//! versions/000000001500-9f3c0a1b/model.onnx            the network for the inference server
//! versions/000000001500-9f3c0a1b/weights.safetensors   the network for the learner
//! versions/000000001500-9f3c0a1b/optimizer.safetensors its optimiser's state
//! versions/000000001500-9f3c0a1b/manifest.json         written last: makes the version visible
//! labels/latest.json                                   the version that the label points at, and the highest fencing token
//! leases/latest.json                                   the process that may publish and move the label
//! damaged/                                             files that a repair has set aside
//! lock                                                 in folders only: serialises the writes of labels and leases
//! ```
//! A version is visible once its manifest exists. The manifest is written after all files, by a put that fails if one
//! exists already, so that a reader never sees half a checkpoint. A visible version never changes. Labels move after that,
//! by one atomic conditional overwrite.

pub mod damage;
pub mod error;
pub mod lease;
pub mod manifest;
pub mod milestones;
pub mod prune;
pub mod publish;
pub mod repository;
mod swap;
pub mod version;
pub mod watch;

pub use damage::Fault;
pub use error::Error;
pub use lease::{Lease, LeaseTimes};
pub use manifest::{Draft, FileEntry, Manifest};
pub use prune::{Keep, Pruned};
pub use repository::Repository;
pub use version::{NameError, Version};

/// Name of the file that every checkpoint has: the network as ONNX. The version's name contains a part of its SHA-256.
pub const MODEL: &str = "model.onnx";
/// Name of the learner's file of weights and running statistics.
pub const WEIGHTS: &str = "weights.safetensors";
/// Name of the learner's file of optimiser state.
pub const OPTIMIZER: &str = "optimizer.safetensors";
/// Label of the newest checkpoint.
pub const LATEST: &str = "latest";
/// Label of the strongest rated checkpoint.
pub const BEST: &str = "best";
/// Label of the checkpoint that plays against the best one now; the label protects it from pruning.
pub const CANDIDATE: &str = "candidate";
