//! Statuses with which streams end.

use tonic::Status;

/// Returns the status with which streams end on shutdown. Clients then connect again.
pub(super) fn shutting_down() -> Status {
    Status::unavailable("the replay store is shutting down")
}
