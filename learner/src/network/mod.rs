//! The networks: a residual tower over planes, after AlphaZero (Silver et al., 2018), and the fish-eye network, which
//! [`onnx::fish_eye`] defines.
//!
//! ```text
//! planes ─ conv3×3 ─ BN ─ ReLU ─ B × [ conv3×3 ─ BN ─ (GP) ─ ReLU ─ conv3×3 ─ BN ─ + skip ─ ReLU ]
//!   ├ policy, dense:  conv1×1 to 32 ─ BN ─ ReLU ─ linear to the actions
//!   ├ policy, planes: conv3×3 ─ BN ─ (GP) ─ ReLU ─ conv3×3 to the planes; means and maxima ─ linear to the actions of the board
//!   ├ value:          conv1×1 to 4 ─ BN ─ ReLU ─ linear ─ ReLU ─ linear to 1 ─ tanh, or linear to 3 ─ softmax
//!   └ territory, in training only: conv1×1 to 1, the owners of the squares; means and maxima ─ linear to 1, the score
//!
//! fish-eye, policy network ─ subtrees rolled up level by level ─ context, path and view of each part, grids of each position, its examples
//!   └ linear ─ ReLU ─ linear to the moves, for every part
//! fish-eye, value network ─ subtrees rolled up level by level ─ view of the root, grids of each position, its examples
//!   └ linear ─ ReLU ─ linear to 1 ─ sigmoid (with `model.shared`, the layers before these are those of the policy)
//! ```
//!
//! The element in brackets is optional: global pooling, in two blocks ([`onnx::network::pooled_blocks`]) and in a policy of planes.
//!
//! The layout of the rows decides which of the two networks is trained ([`NetworkShape::new`]).
//!
//! | module | contents |
//! |---|---|
//! | [`shape`] | sizes: [`NetworkShape`] |
//! | [`inputs`] | inputs on the training device |
//! | [`declarations`] | every variable: name, dimensions, first values |
//! | [`variables`] | the variables as tensors, trainable ones in two flat groups |
//! | [`layers`] | convolution, normalisation, linear |
//! | [`model`] | [`Network`]: any of them, and its outputs |
//! | `tower`, `fish_eye` | the forward pass of each, its form for export, and a tower's way back from that |

pub mod declarations;
mod fish_eye;
pub mod inputs;
pub mod layers;
pub mod model;
pub mod shape;
mod tower;
pub mod variables;

pub use layers::{Mode, Pass};
pub use model::{Folded, Network, Outputs, POLICY, TERRITORY, VALUE, ValueForm};
pub use shape::NetworkShape;
pub use variables::Variables;
