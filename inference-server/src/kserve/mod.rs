//! `inference.GRPCInferenceService`: the Open Inference Protocol (KServe v2), for clients that were not written for Minuet.
//!
//! A request of this protocol is parsed to an [`EvaluationRequest`](crate::intake::request::EvaluationRequest) (`request`), so it
//! shares queue and batches with requests of `minuet.v1.Evaluator`, and its answer is written as tensors. Models have the names of
//! [`crate::models::names`], with the version in the name or in a field of its own. The suffix `_dense` selects a description of
//! the model with planes as its input (`describe`).

mod answer;
mod dense;
mod describe;
mod error;
mod request;
mod tensor;

use std::{pin::Pin, sync::Arc};

use futures::{StreamExt as _, future::ready, stream};
use proto::inference::{
    ModelConfigRequest, ModelConfigResponse, ModelInferRequest, ModelInferResponse, ModelMetadataRequest,
    ModelMetadataResponse, ModelReadyRequest, ModelReadyResponse, ModelStreamInferResponse,
    RepositoryIndexRequest, RepositoryIndexResponse, ServerLiveRequest, ServerLiveResponse,
    ServerMetadataRequest, ServerMetadataResponse, ServerReadyRequest, ServerReadyResponse,
    grpc_inference_service_server::GrpcInferenceService, repository_index_response::ModelIndex,
};
use service::{calls::replies::Replies, listener::Peer};
use tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};

use crate::intake::{
    Intake,
    memory::ChargedStream,
    refusal::Refusal,
    request::deadline_of,
    stream::{End, MAX_IN_FLIGHT, last},
};
use answer::{OpenStream, infer, infer_in_band, prepare};
use describe::FoundModel;

/// Extensions of the protocol that are served.
const EXTENSIONS: [&str; 4] = [
    "model_repository",
    "model_configuration",
    "schedule_policy",
    "binary_tensor_data",
];

/// The service.
#[derive(Clone, Debug)]
pub struct KserveService {
    intake: Arc<Intake>,
}

impl KserveService {
    /// Creates a service that sends its requests to `intake`.
    pub fn new(intake: Arc<Intake>) -> Self {
        Self { intake }
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
        let has_model = self.intake.models.default_slot().current().is_some();
        let is_ready = has_model && !self.intake.shutdown.is_cancelled();
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
        let ready = FoundModel::find(&self.intake, &name, &version).is_ok();
        Ok(Response::new(ModelReadyResponse { ready }))
    }

    async fn model_metadata(
        &self,
        request: Request<ModelMetadataRequest>,
    ) -> Result<Response<ModelMetadataResponse>, Status> {
        let ModelMetadataRequest { name, version } = request.into_inner();
        let found = FoundModel::find(&self.intake, &name, &version)?;
        Ok(Response::new(found.metadata()))
    }

    async fn model_config(
        &self,
        request: Request<ModelConfigRequest>,
    ) -> Result<Response<ModelConfigResponse>, Status> {
        let ModelConfigRequest { name, version } = request.into_inner();
        let found = FoundModel::find(&self.intake, &name, &version)?;
        let config = found.config(self.intake.max_request);
        Ok(Response::new(ModelConfigResponse { config: Some(config) }))
    }

    async fn model_infer(
        &self,
        request: Request<ModelInferRequest>,
    ) -> Result<Response<ModelInferResponse>, Status> {
        let caller = self.intake.caller(Peer::of(&request));
        let (deadline, replies) = (deadline_of(&request), Replies::of(&request));
        let prepared = prepare(&self.intake, &caller, request.into_inner()).await;
        let (response, charge) = infer(&self.intake, caller, prepared, deadline).await?;
        replies.keep(charge);
        Ok(Response::new(response))
    }

    async fn model_stream_infer(
        &self,
        request: Request<Streaming<ModelInferRequest>>,
    ) -> Result<Response<Self::ModelStreamInferStream>, Status> {
        let intake = self.intake.clone();
        if intake.shutdown.is_cancelled() {
            return Err(Refusal::Stopping.into());
        }
        let caller = intake.caller(Peer::of(&request));
        let open = OpenStream::new(intake.metrics.clone());
        let end = End::default();
        let requests = request
            .into_inner()
            .take_until(intake.shutdown.clone().cancelled_owned())
            .scan(end.clone(), |end, request: Result<ModelInferRequest, Status>| {
                // A message that cannot be read ends the stream; a refused request does not.
                ready(request.map_err(|status| *end.lock() = Some(status)).ok())
            });
        // In order: the next request is read after the memory for this answer is charged.
        let prepared = requests.then({
            let (intake, caller) = (intake.clone(), caller.clone());
            move |request| {
                let (intake, caller) = (intake.clone(), caller.clone());
                let names = (request.id.clone(), request.model_name.clone());
                async move { (names, prepare(&intake, &caller, request).await) }
            }
        });
        // Reading stops while the largest number of requests is in flight.
        let answers = prepared
            .map({
                let intake = intake.clone();
                move |(names, prepared)| infer_in_band(intake.clone(), caller.clone(), names, prepared)
            })
            .buffer_unordered(MAX_IN_FLIGHT)
            .map(|(response, charge)| (Ok(response), charge));
        let ended = stream::once(async move {
            let _counted = open;
            last(&intake, &end)
        });
        let ended = ended.filter_map(|status| ready(status.map(|status| (Err(status), None))));
        let answers = ChargedStream::new(answers.chain(ended).boxed());
        Ok(Response::new(Box::pin(answers)))
    }

    async fn repository_index(
        &self,
        request: Request<RepositoryIndexRequest>,
    ) -> Result<Response<RepositoryIndexResponse>, Status> {
        let only_ready = request.into_inner().ready;
        let listed = self.intake.models.slots().into_iter().map(|slot| {
            let model = slot.current();
            ModelIndex {
                name: slot.text.clone(),
                state: if model.is_some() { "READY" } else { "UNAVAILABLE" }.into(),
                version: model.map_or_else(String::new, |model| model.info.version.clone()),
                reason: slot.failure().unwrap_or_default(),
            }
        });
        let models = listed.filter(|model| model.state == "READY" || !only_ready);
        Ok(Response::new(RepositoryIndexResponse {
            models: models.collect(),
        }))
    }
}
