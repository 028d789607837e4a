//! `minuet.v1.Evaluator`: requests are validated here and queued; answers come back through [`crate::stream`].

use std::{
    hash::{BuildHasher as _, RandomState},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use proto::v1::{
    DescribeModelRequest, EvaluateReply, EvaluateRequest, ModelDescription, evaluator_server::Evaluator,
};
use tokio::sync::oneshot;
use tokio_stream::Stream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use crate::{
    batcher::Batcher,
    job::{ClientId, Job, ReplyTo},
    metrics::Metrics,
    models::Models,
    refusal::Refusal,
    stream, validate,
};

/// The service.
#[derive(Clone, Debug)]
pub struct EvaluatorService {
    shared: Arc<Shared>,
}

/// What all calls share.
#[derive(Debug)]
pub(crate) struct Shared {
    models: Arc<Models>,
    batcher: Arc<Batcher>,
    max_request: usize,
    pub(crate) metrics: Arc<Metrics>,
    /// Cancelled when the process is asked to stop: nothing new is taken then.
    pub(crate) stopping: CancellationToken,
    next_stream: AtomicU64,
    hasher: RandomState,
}

impl EvaluatorService {
    /// A service over `batcher`, taking requests of at most `max_request` positions until `stopping`.
    pub fn new(
        models: Arc<Models>,
        batcher: Arc<Batcher>,
        max_request: usize,
        metrics: Arc<Metrics>,
        stopping: CancellationToken,
    ) -> Self {
        let shared = Arc::new(Shared {
            models,
            batcher,
            max_request,
            metrics,
            stopping,
            next_stream: AtomicU64::new(0),
            hasher: RandomState::new(),
        });
        Self { shared }
    }
}

impl Shared {
    /// Validates and queues a request; `reply_to` is answered later.
    ///
    /// # Errors
    /// [`Refusal`]; nothing is queued then, and `reply_to` is not used.
    pub(crate) fn submit(
        &self,
        client: ClientId,
        request: EvaluateRequest,
        reply_to: ReplyTo,
    ) -> Result<(), Refusal> {
        let queued = self.queue(client, request, reply_to);
        if let Err(refusal) = &queued {
            self.metrics.refused(refusal);
        }
        queued
    }

    fn queue(&self, client: ClientId, request: EvaluateRequest, reply_to: ReplyTo) -> Result<(), Refusal> {
        if self.stopping.is_cancelled() {
            return Err(Refusal::Stopping);
        }
        let named = self.models.find(&request.model)?;
        let layout = &named.model.info.layout;
        validate::check(&request, layout, self.max_request)?;
        let row_len = layout.row_len();
        let exact = named.is_exact.then_some(named.model);
        let job = Job::new(client, exact, request, row_len, reply_to);
        self.batcher.push(Arc::new(job))
    }

    /// A stream is a client of its own.
    fn stream_client(&self) -> ClientId {
        // Even numbers are streams, odd ones connections.
        ClientId(self.next_stream.fetch_add(1, Ordering::Relaxed) << 1)
    }

    /// All unary calls of a connection are one client.
    fn call_client<T>(&self, request: &Request<T>) -> ClientId {
        ClientId(self.hasher.hash_one(request.remote_addr()) | 1)
    }
}

#[tonic::async_trait]
impl Evaluator for EvaluatorService {
    type EvaluateStreamStream = Pin<Box<dyn Stream<Item = Result<EvaluateReply, Status>> + Send>>;

    async fn evaluate_stream(
        &self,
        request: Request<Streaming<EvaluateRequest>>,
    ) -> Result<Response<Self::EvaluateStreamStream>, Status> {
        if self.shared.stopping.is_cancelled() {
            return Err(Refusal::Stopping.into());
        }
        let client = self.shared.stream_client();
        let replies = stream::open(self.shared.clone(), client, request.into_inner());
        Ok(Response::new(Box::pin(replies)))
    }

    async fn evaluate(&self, request: Request<EvaluateRequest>) -> Result<Response<EvaluateReply>, Status> {
        let client = self.shared.call_client(&request);
        let (sender, answer) = oneshot::channel();
        self.shared
            .submit(client, request.into_inner(), ReplyTo::call(sender))?;
        let reply = answer.await.map_err(|_| Refusal::Stopping)??;
        Ok(Response::new(reply))
    }

    async fn describe_model(
        &self,
        request: Request<DescribeModelRequest>,
    ) -> Result<Response<ModelDescription>, Status> {
        let named = self.shared.models.find(&request.into_inner().model)?;
        let info = &named.model.info;
        let layout_json =
            serde_json::to_string(&info.layout).map_err(|error| Status::internal(error.to_string()))?;
        Ok(Response::new(ModelDescription {
            version: info.version.clone(),
            game: info.layout.game.clone(),
            layout_json,
            row_length: info.layout.row_len() as u32,
            actions: info.layout.actions,
            step: info.step,
            provider: info.provider.to_owned(),
        }))
    }
}
