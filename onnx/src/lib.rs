//! Writes ONNX files, which the learner publishes and the inference server runs, and reads their weights back.
//!
//! This crate links no runtime and no torch. It holds the file format (`onnx.proto`, vendored from ONNX 1.23.2, Apache-2.0)
//! and the graphs that Minuet needs. [`model`] documents inputs, outputs and metadata of the files.
//!
//! ```
//! use games::{PlaneStack, RowForm, RowLayout};
//! use onnx::{Input, Metadata, TowerShape, TowerWeights, build, metadata_of};
//!
//! // A game with two sparse planes, three entries per row and nine actions.
//! let stack = PlaneStack {
//!     height: 3,
//!     width: 3,
//!     entries: 3,
//!     planes: 2,
//!     sparse: vec![0, 1],
//!     constants: vec![],
//!     ones: vec![],
//! };
//! let layout = RowLayout {
//!     game: "example".into(),
//!     options: 0,
//!     form: RowForm::Planes(stack),
//!     actions: 9,
//!     mirrored_actions: false,
//!     policy_head: games::PolicyHead::Dense,
//! };
//! let weights = TowerWeights::random(&TowerShape::new(&layout, 1, 8), 42);
//! let metadata = Metadata { layout, step: 100 };
//! let file = build(&weights, &metadata, Input::Rows).expect("the weights fit the layout");
//! assert_eq!(metadata_of(&file).expect("the file has metadata"), metadata);
//!
//! // The same model in half precision takes about half the bytes.
//! let half = onnx::half::to_half(&file).expect("every weight fits half precision");
//! assert!(half.len() < file.len());
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`proto`] | the generated types of the format |
//! | [`weights`] | weights of any network, layer by layer, as plain vectors of `f32` |
//! | [`network`] | the residual tower as data: its sizes and the list of its steps |
//! | [`random`] | networks with random weights, for tests and benchmarks |
//! | [`graph`] | nodes, initialisers and names of one graph under construction |
//! | [`expansion`] | the nodes that expand index rows into planes |
//! | [`tower`] | the nodes of the tower |
//! | [`fish_eye`] | the network over clans of imps: its weights, its graph |
//! | [`half`] | conversion of a model to half precision |
//! | [`int8`] | conversion of a model's convolutions to 8-bit integers |
//! | [`sums`] | a layer that shows how a CPU adds products of bytes |
//! | [`legal`] | adds the selection of the legal actions' logits to a model |
//! | [`model`] | whole files: inputs, outputs, metadata |
//! | [`one_file`] | checks that a model of another program is one file |
//! | [`read`] | reads the weights of a tower back from its file |

pub mod expansion;
mod file;
pub mod fish_eye;
pub mod graph;
pub mod half;
pub mod int8;
pub mod legal;
pub mod model;
pub mod network;
pub mod one_file;
pub mod random;
pub mod read;
pub mod sums;
pub mod tower;
pub mod weights;

/// The types of `onnx.proto`, version 1.23.2.
// Generated code: comments are disabled (see `build.rs`), and clippy's style does not apply.
#[allow(missing_docs, clippy::all, clippy::pedantic)]
pub mod proto {
    include!(concat!(env!("OUT_DIR"), "/onnx.rs"));
}

pub use file::OnnxError;
pub use fish_eye::{FishEyeShape, FishEyeWeights};
pub use model::{Input, Metadata, build, metadata_of};
pub use network::{PolicyShape, TowerShape, TowerWeights};
pub use read::tower_of;
pub use weights::{Kind, Layer, LayerShape, Weights};
