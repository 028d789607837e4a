//! The trait [`Network`]: positions in, priors of their legal actions and values out.
//!
//! | module | contents |
//! |---|---|
//! | [`positions`] | a batch of positions, and the predictions for them |
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

/// Facts about an open network.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// Version of the checkpoint. It does not change while the network is open, unless a server's label moves
    /// ([`RemoteNetwork`]).
    pub version: String,
    /// Training step.
    pub step: u64,
    /// Layout of its rows.
    pub layout: RowLayout,
    /// Name of the provider that runs it, for example `openvino-bf16`.
    pub provider: String,
}

/// Error: a network did not evaluate a batch.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NetworkError {
    /// ONNX Runtime or the device failed.
    #[error("the network cannot be run: {0}")]
    Run(String),
    /// A value or a prior is not finite. Index of its position.
    #[error("the network's answer to position {0} is not finite")]
    NotFinite(usize),
    /// The inference server refused the request or cannot be reached.
    #[error("inference server {address}: {}", .status.message())]
    Server {
        /// Address of the server.
        address: String,
        /// Status of the call.
        status: Box<tonic::Status>,
    },
    /// The answer of the inference server does not fit the request.
    #[error("inference server {address} answered with {reason}")]
    Answer {
        /// Address of the server.
        address: String,
        /// Difference between the answer and the request.
        reason: String,
    },
}

/// A network that evaluates batches of positions. Threads that share one network wait for each other.
pub trait Network: Send + Sync + Debug {
    /// Returns the facts about the network.
    fn description(&self) -> &Description;

    /// Evaluates all positions of `batch` and appends to `predictions`, which must be empty, in their order.
    ///
    /// Blocks until the predictions are there, so it must not be called on the threads of an async runtime.
    ///
    /// # Errors
    /// [`NetworkError`] with the reason. The content of `predictions` is then undefined.
    fn evaluate(&self, batch: &PositionBatch, predictions: &mut Predictions) -> Result<(), NetworkError>;
}
