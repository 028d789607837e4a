//! The wait before another attempt.

use service::backoff::Backoff;
use tokio_util::sync::CancellationToken;

use super::error::RatingError;

/// Waits before the next attempt. Returns false at shutdown.
pub(super) async fn wait(error: &RatingError, backoff: &mut Backoff, shutdown: &CancellationToken) -> bool {
    if (backoff.attempts() + 1).is_power_of_two() {
        tracing::warn!(error = %service::chain(error), "cannot rate; trying again");
    }
    backoff.wait(shutdown).await
}
