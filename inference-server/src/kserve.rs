//! `inference.GRPCInferenceService`: the Open Inference Protocol (KServe v2), for clients that were not written for Minuet.
//!
//! It is another door to the same queue: a request of this protocol is read into one of the other ([`question`]), shares
//! batches with those, and its answer is written as tensors. Models are named as everywhere ([`crate::names`]), a version
//! beside the name or in it; a name with `_dense` at its end is the same model, described with planes as its input
//! ([`describe`]).

pub mod dense;
pub mod describe;
pub mod fault;
pub mod question;
pub mod tensor;

use std::{pin::Pin, sync::Arc};

use futures::{StreamExt as _, future::ready, stream};
use proto::inference::{
    ModelConfigRequest, ModelConfigResponse, ModelInferRequest, ModelInferResponse, ModelMetadataRequest,
    ModelMetadataResponse, ModelReadyRequest, ModelReadyResponse, ModelStreamInferResponse,
    RepositoryIndexRequest, RepositoryIndexResponse, RepositoryModelLoadRequest, RepositoryModelLoadResponse,
    RepositoryModelUnloadRequest, RepositoryModelUnloadResponse, ServerLiveRequest, ServerLiveResponse,
    ServerMetadataRequest, ServerMetadataResponse, ServerReadyRequest, ServerReadyResponse,
    grpc_inference_service_server::GrpcInferenceService, repository_index_response::ModelIndex,
};
use service::door::Peer;
use tokio::time::Instant;
use tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};

use crate::{
    deadline,
    intake::Intake,
    job::{Caller, Wants},
    metrics::Metrics,
    model::Model,
    refusal::Refusal,
    stream::{End, MAX_IN_FLIGHT, last},
    unread::{Charge, Unread},
};
use describe::{DENSE, Face};
use fault::Fault;
use question::Question;

/// Extensions of the protocol that are served.
const EXTENSIONS: [&str; 4] = [
    "model_repository",
    "model_configuration",
    "schedule_policy",
    "binary_tensor_data",
];

/// Bytes of logits that one answer may hold; who wants more positions at once asks for priors.
const MAX_LOGITS_BYTES: usize = 32 << 20;

/// The service.
#[derive(Clone, Debug)]
pub struct KserveService {
    intake: Arc<Intake>,
    max_wait_us: u64,
}

impl KserveService {
    /// A service that hands its requests to `intake`; `max_wait_us` is said in the models' configuration.
    pub fn new(intake: Arc<Intake>, max_wait_us: u64) -> Self {
        Self { intake, max_wait_us }
    }

    async fn find(&self, name: &str, version: &str) -> Result<Found, Fault> {
        find(&self.intake, name, version).await
    }
}

/// A model that a request named.
struct Found {
    model: Arc<Model>,
    /// Its name as the server knows it.
    name: String,
    is_dense: bool,
}

impl Found {
    fn face<'a>(&'a self, name: &'a str) -> Face<'a> {
        Face {
            name,
            is_dense: self.is_dense,
            version: &self.model.info.version,
            layout: &self.model.info.layout,
        }
    }
}

/// A model's name as the server knows it, and whether it was asked for with planes.
fn plain_name(name: &str, version: &str) -> Result<(String, bool), Fault> {
    let plain = name.strip_suffix(DENSE);
    let is_dense = plain.is_some();
    let plain = plain.unwrap_or(name);
    if plain.is_empty() {
        return Err(Fault::Unnamed);
    }
    let whole = if version.is_empty() || version == plain {
        plain.to_owned()
    } else {
        format!("{plain}/{version}")
    };
    Ok((whole, is_dense))
}

async fn find(intake: &Arc<Intake>, name: &str, version: &str) -> Result<Found, Fault> {
    let (whole, is_dense) = plain_name(name, version)?;
    let found = intake
        .library
        .get(&whole)
        .await
        .map_err(|refusal| match refusal {
            Refusal::UnknownModel(_) => Fault::UnknownModel {
                name: name.to_owned(),
                version: version.to_owned(),
            },
            other => Fault::Refused(other),
        })?;
    Ok(Found {
        model: found.model,
        name: whole,
        is_dense,
    })
}

/// A request that was read, and is charged with what it takes until its answer is sent.
struct Prepared {
    question: Question,
    /// The model's name as the server knows it.
    name: String,
    charge: Option<Charge>,
}

/// Reads a request, and waits until its answer may be held.
async fn prepare(
    intake: &Arc<Intake>,
    caller: &Caller,
    request: ModelInferRequest,
) -> Result<Prepared, Fault> {
    let found = find(intake, &request.model_name, &request.model_version).await?;
    let question = read(&found.model, request, intake.max_request)?;
    let bytes = question.asked.bytes(found.model.info.layout.actions as usize);
    let charging = intake.charge(caller, bytes);
    let charge = intake.stopping.run_until_cancelled(charging).await;
    Ok(Prepared {
        question,
        name: found.name,
        charge: charge.ok_or(Refusal::Stopping)?,
    })
}

/// Answers one request, by `deadline`. Where this is dropped, its place in the queue is freed.
async fn infer(
    intake: &Arc<Intake>,
    caller: Caller,
    prepared: Result<Prepared, Fault>,
    deadline: Option<Instant>,
) -> Result<(ModelInferResponse, Option<Charge>), Fault> {
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
                Fault::Expired
            }
            other => Fault::Refused(other),
        })?;
        Ok((question.form.fill(evaluation), charge))
    };
    let answered = answering.await;
    answered.inspect_err(|fault: &Fault| intake.metrics.refused(fault.code()))
}

fn read(model: &Model, request: ModelInferRequest, max_request: usize) -> Result<Question, Fault> {
    let layout = &model.info.layout;
    let question = Question::read(request, layout, max_request)?;
    let positions = question.asked.legal_counts.len();
    let bytes = positions * layout.actions as usize * size_of::<f32>();
    if question.asked.wants == Wants::Logits && bytes > MAX_LOGITS_BYTES {
        return Err(Fault::Raw(format!(
            "{positions} positions of {} logits are more than one answer may hold ({} MiB); send fewer, or legal_actions",
            layout.actions,
            MAX_LOGITS_BYTES >> 20
        )));
    }
    Ok(question)
}

/// As [`infer`], for a stream: the answer to the request `id` says itself what went wrong.
async fn infer_in_band(
    intake: Arc<Intake>,
    caller: Caller,
    (id, model_name): (String, String),
    prepared: Result<Prepared, Fault>,
) -> (ModelStreamInferResponse, Option<Charge>) {
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
struct Open(Arc<Metrics>);

impl Open {
    fn new(metrics: Arc<Metrics>) -> Self {
        metrics.streams(1.0);
        Self(metrics)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.streams(-1.0);
    }
}

#[tonic::async_trait]
impl GrpcInferenceService for KserveService {
    type ModelStreamInferStream =
        Pin<Box<dyn Stream<Item = Result<ModelStreamInferResponse, Status>> + Send>>;

    async fn server_live(
        &self,
        _: Request<ServerLiveRequest>,
    ) -> Result<Response<ServerLiveResponse>, Status> {
        Ok(Response::new(ServerLiveResponse { live: true }))
    }

    async fn server_ready(
        &self,
        _: Request<ServerReadyRequest>,
    ) -> Result<Response<ServerReadyResponse>, Status> {
        let has_model = self.intake.library.models().current().is_some();
        let is_ready = has_model && !self.intake.stopping.is_cancelled();
        Ok(Response::new(ServerReadyResponse { ready: is_ready }))
    }

    async fn server_metadata(
        &self,
        _: Request<ServerMetadataRequest>,
    ) -> Result<Response<ServerMetadataResponse>, Status> {
        Ok(Response::new(ServerMetadataResponse {
            name: "minuet".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            extensions: EXTENSIONS.map(String::from).to_vec(),
        }))
    }

    async fn model_ready(
        &self,
        request: Request<ModelReadyRequest>,
    ) -> Result<Response<ModelReadyResponse>, Status> {
        let ModelReadyRequest { name, version } = request.into_inner();
        // Asking loads nothing.
        let ready = plain_name(&name, &version)
            .is_ok_and(|(whole, _)| self.intake.library.models().find(&whole).is_ok());
        Ok(Response::new(ModelReadyResponse { ready }))
    }

    async fn model_metadata(
        &self,
        request: Request<ModelMetadataRequest>,
    ) -> Result<Response<ModelMetadataResponse>, Status> {
        let ModelMetadataRequest { name, version } = request.into_inner();
        let found = self.find(&name, &version).await?;
        Ok(Response::new(found.face(&name).metadata()))
    }

    async fn model_config(
        &self,
        request: Request<ModelConfigRequest>,
    ) -> Result<Response<ModelConfigResponse>, Status> {
        let ModelConfigRequest { name, version } = request.into_inner();
        let found = self.find(&name, &version).await?;
        let config = found
            .face(&name)
            .config(self.intake.max_request, self.max_wait_us);
        Ok(Response::new(ModelConfigResponse { config: Some(config) }))
    }

    async fn model_infer(
        &self,
        request: Request<ModelInferRequest>,
    ) -> Result<Response<ModelInferResponse>, Status> {
        let caller = self.intake.caller(Peer::of(&request));
        let deadline = deadline::of(&request);
        let prepared = prepare(&self.intake, &caller, request.into_inner()).await;
        let (response, _charge) = infer(&self.intake, caller, prepared, deadline).await?;
        Ok(Response::new(response))
    }

    async fn model_stream_infer(
        &self,
        request: Request<Streaming<ModelInferRequest>>,
    ) -> Result<Response<Self::ModelStreamInferStream>, Status> {
        let intake = self.intake.clone();
        if intake.stopping.is_cancelled() {
            return Err(Refusal::Stopping.into());
        }
        let caller = intake.caller(Peer::of(&request));
        let open = Open::new(intake.metrics.clone());
        let end = End::default();
        let requests = request
            .into_inner()
            .take_until(intake.stopping.clone().cancelled_owned())
            .scan(end.clone(), |end, request: Result<ModelInferRequest, Status>| {
                // What cannot be read ends the stream; a request that is refused does not.
                ready(request.map_err(|status| *end.lock() = Some(status)).ok())
            });
        // One after the other: the next is read when this one's answer may be held.
        let prepared = requests.then({
            let (intake, caller) = (intake.clone(), caller.clone());
            move |request| {
                let (intake, caller) = (intake.clone(), caller.clone());
                let said = (request.id.clone(), request.model_name.clone());
                async move { (said, prepare(&intake, &caller, request).await) }
            }
        });
        // No more are read while as many as may be are on their way.
        let answers = prepared
            .map({
                let intake = intake.clone();
                move |(said, prepared)| infer_in_band(intake.clone(), caller.clone(), said, prepared)
            })
            .buffer_unordered(MAX_IN_FLIGHT)
            .map(|(response, charge)| (Ok(response), charge));
        let ended = stream::once(async move {
            let _counted = open;
            last(&intake, &end)
        });
        let ended = ended.filter_map(|status| ready(status.map(|status| (Err(status), None))));
        let answers = Unread::new(answers.chain(ended).boxed());
        Ok(Response::new(Box::pin(answers)))
    }

    async fn repository_index(
        &self,
        request: Request<RepositoryIndexRequest>,
    ) -> Result<Response<RepositoryIndexResponse>, Status> {
        let only_ready = request.into_inner().ready;
        let listed = self.intake.library.index().await?;
        let models = listed
            .into_iter()
            .filter(|model| model.is_loaded || !only_ready)
            .map(|model| ModelIndex {
                name: model.name,
                version: model.version,
                state: if model.is_loaded { "READY" } else { "UNAVAILABLE" }.into(),
                reason: model.reason,
            })
            .collect();
        Ok(Response::new(RepositoryIndexResponse { models }))
    }

    async fn repository_model_load(
        &self,
        request: Request<RepositoryModelLoadRequest>,
    ) -> Result<Response<RepositoryModelLoadResponse>, Status> {
        let request = request.into_inner();
        no_parameters(
            request.parameters.keys(),
            "a model is configured where it is published",
        )?;
        self.intake.library.load(&request.model_name).await?;
        Ok(Response::new(RepositoryModelLoadResponse {}))
    }

    async fn repository_model_unload(
        &self,
        request: Request<RepositoryModelUnloadRequest>,
    ) -> Result<Response<RepositoryModelUnloadResponse>, Status> {
        let request = request.into_inner();
        no_parameters(request.parameters.keys(), "no model depends on another")?;
        self.intake.library.unload(&request.model_name).await?;
        Ok(Response::new(RepositoryModelUnloadResponse {}))
    }
}

/// Refuses parameters, except for Triton's `unload_dependents`, which its client always sends and which is met by doing
/// nothing.
fn no_parameters<'a>(mut names: impl Iterator<Item = &'a String>, why: &str) -> Result<(), Status> {
    match names.find(|name| *name != "unload_dependents") {
        None => Ok(()),
        Some(name) => Err(Status::invalid_argument(format!(
            "the parameter '{name}' is not served: {why}"
        ))),
    }
}
