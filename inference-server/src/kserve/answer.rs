//! Answers a request: finds its model, parses it, evaluates it and writes the answer, with errors as a status or in band.

use std::sync::Arc;

use proto::inference::{ModelInferRequest, ModelInferResponse, ModelStreamInferResponse};
use tokio::time::Instant;
use tonic::Status;

use super::{
    describe::FoundModel,
    error::{invalid, refused},
    request::InferRequest,
};
use crate::{
    intake::{
        Intake,
        memory::MemoryCharge,
        refusal::Refusal,
        request::{Caller, Wants},
    },
    metrics::Metrics,
};
use network::model::Model;

/// Largest size of the logits in one answer, in bytes. Requests for priors have no such limit.
const MAX_LOGITS_BYTES: usize = 32 << 20;

/// A parsed request, whose memory is charged until its answer is sent.
pub(super) struct Prepared {
    parsed: InferRequest,
    /// Canonical name of the model.
    name: String,
    charge: Option<MemoryCharge>,
}

/// Parses a request, and waits until the memory for its answer may be charged.
pub(super) async fn prepare(
    intake: &Arc<Intake>,
    caller: &Caller,
    request: ModelInferRequest,
) -> Result<Prepared, Status> {
    let found = FoundModel::find(intake, &request.model_name, &request.model_version)?;
    let parsed = read(&found.model, request, intake.max_request)?;
    let bytes = parsed.request.bytes(found.model.info.layout.actions as usize);
    // A server that stops answers what has arrived, but does not wait for a client that reads no answers.
    let charge = tokio::select! {
        biased;
        charge = intake.charge(caller, bytes) => charge,
        () = intake.shutdown.cancelled() => return Err(refused(&Refusal::Stopping)),
    };
    Ok(Prepared {
        parsed,
        name: found.name,
        charge,
    })
}

/// Answers one request by `deadline`. Dropping the future removes the request from the queue.
pub(super) async fn infer(
    intake: &Arc<Intake>,
    caller: Caller,
    prepared: Result<Prepared, Status>,
    deadline: Option<Instant>,
) -> Result<(ModelInferResponse, Option<MemoryCharge>), Status> {
    let answering = async {
        let Prepared {
            mut parsed,
            name,
            charge,
        } = prepared?;
        let own = parsed.request.deadline;
        parsed.request.end_by(deadline);
        // The name may point at another version now, but never at another layout.
        let evaluated = intake.evaluate(caller, &name, parsed.request).await;
        let evaluation = evaluated.map_err(|refusal| match refusal {
            // The deadline of the call, not that in the request's parameter.
            Refusal::Late if deadline.is_some_and(|deadline| own.is_none_or(|own| deadline < own)) => {
                Status::deadline_exceeded("the call's deadline passed before the request was computed")
            }
            other => refused(&other),
        })?;
        Ok((parsed.form.fill(evaluation), charge))
    };
    let answered = answering.await;
    answered.inspect_err(|error: &Status| intake.metrics.refused(error.code()))
}

fn read(model: &Model, request: ModelInferRequest, max_request: usize) -> Result<InferRequest, Status> {
    let layout = &model.info.layout;
    let parsed = InferRequest::read(request, layout, max_request)?;
    let positions = parsed.request.legal_counts.len();
    let bytes = positions * layout.actions as usize * size_of::<f32>();
    if parsed.request.wants == Wants::Logits && bytes > MAX_LOGITS_BYTES {
        return Err(invalid(format!(
            "the logits of {positions} positions, {} each, exceed the limit of one answer ({} MiB); send fewer positions, or legal_actions",
            layout.actions,
            MAX_LOGITS_BYTES >> 20
        )));
    }
    Ok(parsed)
}

/// Answers one request of a stream like [`infer`]; the answer to the request `id` contains the error, if any.
pub(super) async fn infer_in_band(
    intake: Arc<Intake>,
    caller: Caller,
    (id, model_name): (String, String),
    prepared: Result<Prepared, Status>,
) -> (ModelStreamInferResponse, Option<MemoryCharge>) {
    let (error_message, response, charge) = match infer(&intake, caller, prepared, None).await {
        Ok((response, charge)) => (String::new(), response, charge),
        Err(error) => {
            let response = ModelInferResponse {
                id,
                model_name,
                ..ModelInferResponse::default()
            };
            (error.message().to_owned(), response, None)
        }
    };
    let response = ModelStreamInferResponse {
        error_message,
        infer_response: Some(response),
    };
    (response, charge)
}

/// Counts a stream as open until dropped.
pub(super) struct OpenStream(Arc<Metrics>);

impl OpenStream {
    pub(super) fn new(metrics: Arc<Metrics>) -> Self {
        metrics.streams.increment(1.0);
        Self(metrics)
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.streams.decrement(1.0);
    }
}
