//! Answers a request: finds its model, parses it, evaluates it and writes the answer, with errors as a status or in band.

use std::sync::Arc;

use proto::inference::{ModelInferRequest, ModelInferResponse, ModelStreamInferResponse};
use tokio::time::Instant;
use tonic::Status;

use super::{
    describe::{DENSE, DescribedModel},
    error::InferError,
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

/// A model that a request named.
pub(super) struct FoundModel {
    model: Arc<Model>,
    /// Canonical name of the model on this server.
    name: String,
    is_dense: bool,
}

impl FoundModel {
    pub(super) fn description<'a>(&'a self, name: &'a str) -> DescribedModel<'a> {
        DescribedModel {
            name,
            is_dense: self.is_dense,
            version: &self.model.info.version,
            layout: &self.model.info.layout,
        }
    }
}

/// Returns the canonical name of a model, and true if the client requests the description with planes.
pub(super) fn plain_name(name: &str, version: &str) -> Result<(String, bool), InferError> {
    let plain = name.strip_suffix(DENSE);
    let is_dense = plain.is_some();
    let plain = plain.unwrap_or(name);
    if plain.is_empty() {
        return Err(InferError::Invalid("the request does not name a model".into()));
    }
    let whole = if version.is_empty() || version == plain {
        plain.to_owned()
    } else {
        format!("{plain}/{version}")
    };
    Ok((whole, is_dense))
}

pub(super) fn find(intake: &Intake, name: &str, version: &str) -> Result<FoundModel, InferError> {
    let (whole, is_dense) = plain_name(name, version)?;
    let found = intake.models.find(&whole).map_err(|refusal| match refusal {
        Refusal::UnknownModel(_) => InferError::UnknownModel {
            name: name.to_owned(),
            version: version.to_owned(),
        },
        other => InferError::Refused(other),
    })?;
    Ok(FoundModel {
        model: found.model,
        name: whole,
        is_dense,
    })
}

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
) -> Result<Prepared, InferError> {
    let found = find(intake, &request.model_name, &request.model_version)?;
    let parsed = read(&found.model, request, intake.max_request)?;
    let bytes = parsed.request.bytes(found.model.info.layout.actions as usize);
    let charging = intake.charge(caller, bytes);
    let charge = intake.shutdown.run_until_cancelled(charging).await;
    Ok(Prepared {
        parsed,
        name: found.name,
        charge: charge.ok_or(Refusal::Stopping)?,
    })
}

/// Answers one request by `deadline`. Dropping the future removes the request from the queue.
pub(super) async fn infer(
    intake: &Arc<Intake>,
    caller: Caller,
    prepared: Result<Prepared, InferError>,
    deadline: Option<Instant>,
) -> Result<(ModelInferResponse, Option<MemoryCharge>), InferError> {
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
            Refusal::Late if deadline.is_some_and(|deadline| own.is_none_or(|own| deadline < own)) => {
                InferError::Expired
            }
            other => InferError::Refused(other),
        })?;
        Ok((parsed.form.fill(evaluation), charge))
    };
    let answered = answering.await;
    answered.inspect_err(|error: &InferError| intake.metrics.refused(error.code()))
}

fn read(model: &Model, request: ModelInferRequest, max_request: usize) -> Result<InferRequest, InferError> {
    let layout = &model.info.layout;
    let parsed = InferRequest::read(request, layout, max_request)?;
    let positions = parsed.request.legal_counts.len();
    let bytes = positions * layout.actions as usize * size_of::<f32>();
    if parsed.request.wants == Wants::Logits && bytes > MAX_LOGITS_BYTES {
        return Err(InferError::Invalid(format!(
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
    prepared: Result<Prepared, InferError>,
) -> (ModelStreamInferResponse, Option<MemoryCharge>) {
    match infer(&intake, caller, prepared, None).await {
        Ok((response, charge)) => {
            let response = ModelStreamInferResponse {
                error_message: String::new(),
                infer_response: Some(response),
            };
            (response, charge)
        }
        Err(error) => {
            let response = ModelStreamInferResponse {
                error_message: Status::from(error).message().to_owned(),
                infer_response: Some(ModelInferResponse {
                    id,
                    model_name,
                    ..ModelInferResponse::default()
                }),
            };
            (response, None)
        }
    }
}

/// Counts a stream as open until dropped.
pub(super) struct OpenStream(Arc<Metrics>);

impl OpenStream {
    pub(super) fn new(metrics: Arc<Metrics>) -> Self {
        metrics.streams(1.0);
        Self(metrics)
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.streams(-1.0);
    }
}
