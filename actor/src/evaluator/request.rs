//! Requests of workers to the evaluator.

use std::sync::Arc;

use proto::v1::EvaluateRequest;

/// A request of a worker, with the stamp that orders it among the requests of all workers.
#[derive(Clone, Debug)]
pub struct StampedRequest {
    /// The message. Ids ascend within a worker. Shared, because the request is kept until it is answered.
    pub request: Arc<EvaluateRequest>,
    /// Stamp by [`Versions::stamp`](super::Versions::stamp).
    pub stamp: u64,
}
