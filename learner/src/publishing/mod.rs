//! Checkpoints: written, proven, published, and read again after a restart.
//!
//! | module | contents |
//! |---|---|
//! | [`lease`] | the lease that lets one learner at a time publish |
//! | [`snapshot`] | the training state as files |
//! | [`export`] | the network as an ONNX file, and the proof that ONNX Runtime and libtorch agree on it |
//! | [`publish`] | publishes a checkpoint in the model repository |
//! | [`retention`] | the old checkpoints that are kept |
//! | [`resume`] | the checkpoint from which training continues |

pub mod export;
pub mod lease;
pub mod publish;
pub mod resume;
pub mod retention;
pub mod snapshot;

use service::backoff::Backoff;
use tokio_util::sync::CancellationToken;

/// True if the model store does not answer, and may answer later.
fn is_transient(error: &anyhow::Error) -> bool {
    error.downcast_ref().is_some_and(checkpoints::Error::is_transient)
}

/// Repeats `work` while the model store does not answer. Returns a transient error only after `shutdown`. `failure` is the beginning of
/// log lines.
async fn until_answered<T, F: Future<Output = anyhow::Result<T>>>(
    failure: &str,
    shutdown: &CancellationToken,
    work: impl Fn() -> F,
) -> anyhow::Result<T> {
    let mut backoff = Backoff::for_connections();
    loop {
        let error = match work().await {
            Err(error) if is_transient(&error) => error,
            done => return done,
        };
        // Logged at attempts 1, 2, 4, 8, …
        if (backoff.attempts() + 1).is_power_of_two() {
            tracing::warn!(error = %service::chain(&*error), "{failure}; trying again");
        }
        if !backoff.wait(shutdown).await {
            return Err(error);
        }
    }
}
