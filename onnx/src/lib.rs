//! Writes ONNX files: what the learner publishes and the inference server runs.
//!
//! No runtime and no torch here, only the file format (`onnx.proto`, vendored from ONNX 1.23.2, Apache-2.0)
//! and the graphs Minuet needs. The contract of the graphs stands in [`model`].
//!
//! | module | what it is for |
//! |---|---|
//! | [`proto`] | the generated types of the format |
//! | [`weights`] | [`TowerWeights`]: a residual tower as plain vectors of `f32` |
//! | [`random`] | a tower of random weights, for tests and benchmarks |
//! | [`graph`] | nodes, initialisers and names of one graph under construction |
//! | [`expansion`] | the nodes that turn index rows into planes |
//! | [`tower`] | the nodes of the tower |
//! | [`fish_eye`] | the network over clans of imps: its weights, its graph, its definition |
//! | [`half`] | the same model in half precision |
//! | [`legal`] | a model that picks the legal actions' logits itself |
//! | [`model`] | the whole file: inputs, outputs, metadata |
//! | [`reference`](mod@reference) | a plain evaluation of a tower, to check runtimes and exports against |

pub mod expansion;
pub mod fish_eye;
pub mod graph;
pub mod half;
pub mod legal;
pub mod model;
pub mod random;
pub mod reference;
pub mod tower;
pub mod weights;

/// The types of `onnx.proto`, version 1.23.2.
#[allow(missing_docs, clippy::all, clippy::pedantic)]
pub mod proto {
    include!(concat!(env!("OUT_DIR"), "/onnx.rs"));
}

pub use fish_eye::{FishEyeShape, FishEyeWeights};
pub use model::{Input, Metadata, build, metadata_of};
pub use random::TowerShape;
pub use weights::{
    Block, Conv, GlobalPooling, Linear, PolicyHead, SqueezeExcitation, TowerError, TowerWeights, ValueHead,
};
