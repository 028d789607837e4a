//! A network that predictions: positions in, priors of their legal actions and values out.
//!
//! | module | what it is for |
//! |---|---|
//! | [`positions`] | positions on their way to a network, and what it says about them |
//! | [`local`] | a network in this process |
//! | [`remote`] | a network behind an inference server |

#[cfg(feature = "local")]
pub mod local;
pub mod positions;
pub mod remote;

use std::fmt::Debug;

use games::RowLayout;

#[cfg(feature = "local")]
pub use local::LocalNetwork;
pub use positions::{PositionBatch, Predictions};
pub use remote::RemoteNetwork;

/// What a network says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// The checkpoint's version. It does not change while the network is open.
    pub version: String,
    /// Training step.
    pub step: u64,
    /// What its rows mean.
    pub layout: RowLayout,
    /// What runs it, e.g. `openvino-bf16`.
    pub provider: String,
}

/// A network that did not answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NetworkError {
    /// ONNX Runtime or the device failed.
    #[error("the network cannot be run: {0}")]
    Run(String),
    /// It answered with something that is no number.
    #[error("the network's answer to position {0} is not finite")]
    NotFinite(usize),
    /// The inference server refused or was lost.
    #[error("inference server {address}: {}", .status.message())]
    Server {
        /// Where it is.
        address: String,
        /// What it said.
        status: Box<tonic::Status>,
    },
    /// The inference server answered with something else.
    #[error("inference server {address} answered with {reason}")]
    Answer {
        /// Where it is.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// A network. Threads may share one; they wait for each other then.
pub trait Network: Send + Sync + Debug {
    /// What it says of itself.
    fn description(&self) -> &Description;

    /// Predictions all batch, in their order. `predictions` is empty.
    ///
    /// Blocks until the predictions are there: not for use on a runtime's own threads.
    ///
    /// # Errors
    /// [`NetworkError`]; what `predictions` holds then means nothing.
    fn evaluate(&self, batch: &PositionBatch, predictions: &mut Predictions) -> Result<(), NetworkError>;
}
