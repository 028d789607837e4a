//! Answers a request: finds its model, parses it, evaluates it and writes the answer, with errors as a status or in band.

use std::sync::Arc;

use proto::inference::{ModelInferRequest, ModelInferResponse, ModelStreamInferResponse};
use tokio::time::Instant;
use tonic::Status;

use super::{
    describe::{DENSE, Face},
    error::InferError,
    request::InferRequest,
};
use crate::{
    intake::Intake,
    metrics::Metrics,
    requests::{
        memory::MemoryCharge,
        refusal::Refusal,
        request::{Caller, Wants},
    },
};
use network::model::Model;

/// Bytes of logits that one answer may hold; who wants more positions at once asks for priors.
const MAX_LOGITS_BYTES: usize = 32 << 20;

/// A model that a request named.
pub(super) struct FoundModel {
    model: Arc<Model>,
    /// Canonical name of the model on this server.
    name: String,
    is_dense: bool,
}

impl FoundModel {
    pub(super) fn face<'a>(&'a self, name: &'a str) -> Face<'a> {
        Face {
            name,
            is_dense: self.is_dense,
            version: &self.model.info.version,
            layout: &self.model.info.layout,
        }
    }
}

/// A model's name as the server knows it, and whether it was asked for with planes.
pub(super) fn plain_name(name: &str, version: &str) -> Result<(String, bool), InferError> {
    let plain = name.strip_suffix(DENSE);
    let is_dense = plain.is_some();
    let plain = plain.unwrap_or(name);
    if plain.is_empty() {
        return Err(InferError::Unnamed);
    }
    let whole = if version.is_empty() || version == plain {
        plain.to_owned()
    } else {
        format!("{plain}/{version}")
    };
    Ok((whole, is_dense))
}

pub(super) async fn find(intake: &Arc<Intake>, name: &str, version: &str) -> Result<FoundModel, InferError> {
    let (whole, is_dense) = plain_name(name, version)?;
    let found = intake
        .library
        .get(&whole)
        .await
        .map_err(|refusal| match refusal {
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

/// A request that was read, and is charged with what it takes until its answer is sent.
pub(super) struct Prepared {
    question: InferRequest,
    /// The model's name as the server knows it.
    name: String,
    charge: Option<MemoryCharge>,
}

/// Reads a request, and waits until its answer may be held.
pub(super) async fn prepare(
    intake: &Arc<Intake>,
    caller: &Caller,
    request: ModelInferRequest,
) -> Result<Prepared, InferError> {
    let found = find(intake, &request.model_name, &request.model_version).await?;
    let question = read(&found.model, request, intake.max_request)?;
    let bytes = question.asked.bytes(found.model.info.layout.actions as usize);
    let charging = intake.charge(caller, bytes);
    let charge = intake.shutdown.run_until_cancelled(charging).await;
    Ok(Prepared {
        question,
        name: found.name,
        charge: charge.ok_or(Refusal::Stopping)?,
    })
}

/// Answers one request, by `deadline`. Where this is dropped, its place in the queue is freed.
pub(super) async fn infer(
    intake: &Arc<Intake>,
    caller: Caller,
    prepared: Result<Prepared, InferError>,
    deadline: Option<Instant>,
) -> Result<(ModelInferResponse, Option<MemoryCharge>), InferError> {
    let answering = async {
        let Prepared {
            mut question,
            name,
            charge,
        } = prepared?;
        let own = question.asked.deadline;
        question.asked.end_by(deadline);
        // The name may point at another version by now, but never at another layout.
        let evaluated = intake.evaluate(caller, &name, question.asked).await;
        let evaluation = evaluated.map_err(|refusal| match refusal {
            Refusal::Late if deadline.is_some_and(|deadline| own.is_none_or(|own| deadline < own)) => {
                InferError::Expired
            }
            other => InferError::Refused(other),
        })?;
        Ok((question.form.fill(evaluation), charge))
    };
    let answered = answering.await;
    answered.inspect_err(|fault: &InferError| intake.metrics.refused(fault.code()))
}

fn read(model: &Model, request: ModelInferRequest, max_request: usize) -> Result<InferRequest, InferError> {
    let layout = &model.info.layout;
    let question = InferRequest::read(request, layout, max_request)?;
    let positions = question.asked.legal_counts.len();
    let bytes = positions * layout.actions as usize * size_of::<f32>();
    if question.asked.wants == Wants::Logits && bytes > MAX_LOGITS_BYTES {
        return Err(InferError::Raw(format!(
            "{positions} positions of {} logits are more than one answer may hold ({} MiB); send fewer, or legal_actions",
            layout.actions,
            MAX_LOGITS_BYTES >> 20
        )));
    }
    Ok(question)
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
        Err(fault) => {
            let response = ModelStreamInferResponse {
                error_message: Status::from(fault).message().to_owned(),
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

/// Counts a stream for as long as it is open.
pub(super) struct Open(Arc<Metrics>);

impl Open {
    pub(super) fn new(metrics: Arc<Metrics>) -> Self {
        metrics.streams(1.0);
        Self(metrics)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.streams(-1.0);
    }
}
