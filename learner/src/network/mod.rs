//! The network: a residual tower with a policy and a value head, after AlphaZero (Silver et al., 2018).
//!
//! ```text
//! planes ─ conv3×3 ─ BN ─ ReLU ─ B × [ conv3×3 ─ BN ─ ReLU ─ conv3×3 ─ BN ─ (SE) ─ + skip ─ ReLU ]
//!   ├ policy, dense:  conv1×1 to 32 ─ BN ─ ReLU ─ linear to the actions
//!   ├ policy, planes: conv3×3 ─ BN ─ ReLU ─ conv3×3 to actions/64 planes
//!   └ value:          conv1×1 to 4 ─ BN ─ ReLU ─ linear ─ ReLU ─ linear to 1 ─ tanh
//! ```
//!
//! | module | what it is for |
//! |---|---|
//! | [`shape`] | sizes: [`NetworkShape`] |
//! | [`declarations`] | every variable: name, sides, first values |
//! | [`variables`] | the variables as tensors, trainable ones in two flat runs |
//! | [`layers`] | convolution, normalisation, linear, gate |
//! | [`tower`] | [`Network`]: the forward pass |

pub mod declarations;
pub mod layers;
pub mod shape;
pub mod tower;
pub mod variables;

pub use layers::{Mode, Pass};
pub use shape::{NetworkShape, PolicyShape};
pub use tower::{Network, Outputs};
pub use variables::Variables;
