//! An inference server without a network: evaluations are hashes of the row and the version. Equal rows get equal evaluations from
//! one version, replies come in a random order, and a test chooses the requests that fail.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use games::{Game, RowLayout, connect_four::ConnectFour};
use parking_lot::Mutex;
use proto::{
    priors,
    v1::{
        DescribeModelRequest, EvaluateReply, EvaluateRequest, ModelDescription, RequestError,
        evaluator_server::{Evaluator, EvaluatorServer},
    },
};
use tokio::{sync::mpsc, time::Instant};
use tokio_stream::{StreamExt as _, wrappers::ReceiverStream};
use tonic::{Code, Request, Response, Status, Streaming, service::Routes};

/// Treatment of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// A valid reply.
    Evaluate,
    /// An error on the stream.
    Error(Code),
    /// RESOURCE_EXHAUSTED with a hint for the retry.
    Later(Duration),
    /// A malformed reply: one value is missing.
    Malformed,
    /// No reply.
    Silence,
    /// The stream breaks.
    Break,
}

/// State of the server, shared by all streams.
pub struct Server {
    pub layout: Mutex<RowLayout>,
    pub version: Mutex<String>,
    /// Treatment of the n-th request, from 0.
    fate: Box<dyn Fn(u64) -> Fate + Send + Sync>,
    pub requests: AtomicU64,
    /// Ids of the requests and times of their arrival.
    pub arrivals: Mutex<Vec<(u64, Instant)>>,
    pub positions: AtomicU64,
    pub largest: AtomicU64,
    pub smallest: AtomicU64,
    /// Number of streams that were opened.
    pub streams: AtomicU64,
    /// Names of the requested models.
    pub models: Mutex<Vec<String>>,
}

impl Server {
    pub fn new(fate: impl Fn(u64) -> Fate + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            layout: Mutex::new(ConnectFour::layout(Default::default())),
            version: Mutex::new("first".into()),
            fate: Box::new(fate),
            requests: AtomicU64::new(0),
            arrivals: Mutex::new(Vec::new()),
            positions: AtomicU64::new(0),
            largest: AtomicU64::new(0),
            smallest: AtomicU64::new(u64::MAX),
            streams: AtomicU64::new(0),
            models: Mutex::new(Vec::new()),
        })
    }

    pub fn good() -> Arc<Self> {
        Self::new(|_| Fate::Evaluate)
    }

    pub fn routes(self: &Arc<Self>) -> Routes {
        Routes::new(EvaluatorServer::new(Service(Arc::clone(self))))
    }
}

struct Service(Arc<Server>);

#[tonic::async_trait]
impl Evaluator for Service {
    type EvaluateStreamStream = ReceiverStream<Result<EvaluateReply, Status>>;

    async fn evaluate_stream(
        &self,
        requests: Request<Streaming<EvaluateRequest>>,
    ) -> Result<Response<Self::EvaluateStreamStream>, Status> {
        let server = Arc::clone(&self.0);
        let mut requests = requests.into_inner();
        server.streams.fetch_add(1, Ordering::SeqCst);
        let (replies, outbound) = mpsc::channel(64);
        tokio::spawn(async move {
            while let Some(Ok(request)) = requests.next().await {
                let nth = server.requests.fetch_add(1, Ordering::SeqCst);
                server.arrivals.lock().push((request.id, Instant::now()));
                let positions = request.legal_counts.len() as u64;
                server.positions.fetch_add(positions, Ordering::SeqCst);
                server.largest.fetch_max(positions, Ordering::SeqCst);
                server.smallest.fetch_min(positions, Ordering::SeqCst);
                let version = server.version.lock().clone();
                let layout = server.layout.lock().clone();
                let reply = match (server.fate)(nth) {
                    Fate::Evaluate => answer(&request, &layout, version),
                    Fate::Error(code) => refusal(request.id, code, None),
                    Fate::Later(hint) => refusal(request.id, Code::ResourceExhausted, Some(hint)),
                    Fate::Malformed => {
                        let mut reply = answer(&request, &layout, version);
                        reply.values.pop();
                        reply
                    }
                    Fate::Silence => continue,
                    Fate::Break => {
                        let _ = replies.send(Err(Status::internal("as the test wishes"))).await;
                        return;
                    }
                };
                let replies = replies.clone();
                let delay = Duration::from_micros(rand::random_range(0..1500));
                tokio::spawn(async move {
                    tokio::time::sleep(delay).await;
                    let _ = replies.send(Ok(reply)).await;
                });
            }
        });
        Ok(Response::new(ReceiverStream::new(outbound)))
    }

    async fn evaluate(&self, request: Request<EvaluateRequest>) -> Result<Response<EvaluateReply>, Status> {
        let version = self.0.version.lock().clone();
        Ok(Response::new(answer(
            request.get_ref(),
            &self.0.layout.lock(),
            version,
        )))
    }

    async fn describe_model(
        &self,
        request: Request<DescribeModelRequest>,
    ) -> Result<Response<ModelDescription>, Status> {
        self.0.models.lock().push(request.into_inner().model);
        let layout = self.0.layout.lock().clone();
        Ok(Response::new(ModelDescription {
            version: self.0.version.lock().clone(),
            game: layout.game.clone(),
            layout_json: serde_json::to_string(&layout).unwrap(),
            row_length: layout.row_len().unwrap_or_default() as u32,
            actions: layout.actions,
            step: 0,
            provider: "hash".into(),
            digest: "hash".into(),
            ..Default::default()
        }))
    }
}

fn refusal(id: u64, code: Code, hint: Option<Duration>) -> EvaluateReply {
    EvaluateReply {
        id,
        error: Some(RequestError {
            code: code.into(),
            message: "as the test wishes".into(),
            position: None,
            retry_after_ms: hint.map(|hint| hint.as_millis() as u32),
        }),
        ..Default::default()
    }
}

/// Evaluates a request after validating every position, because an actor must never send invalid rows.
pub fn answer(request: &EvaluateRequest, layout: &RowLayout, version: String) -> EvaluateReply {
    let positions = request.legal_counts.len();
    let lengths = match layout.row_len() {
        Some(length) => {
            assert!(request.row_lengths.is_empty());
            vec![length as u32; positions]
        }
        None => request.row_lengths.clone(),
    };
    assert_eq!(lengths.len(), positions);
    let mut rest = request.indices.as_slice();
    let mut rows = Vec::new();
    for length in lengths {
        let (row, others) = rest.split_at(length as usize);
        rows.push(row);
        rest = others;
    }
    assert!(rest.is_empty());
    let mut legal = request.legal_actions.as_slice();
    let mut values = Vec::new();
    let mut all = Vec::new();
    for (row, &count) in rows.into_iter().zip(&request.legal_counts) {
        layout.validate(row).unwrap();
        let (own, rest) = legal.split_at(count as usize);
        legal = rest;
        let weight = |salt: u32| {
            let mut hasher = DefaultHasher::new();
            (row, salt, &version).hash(&mut hasher);
            // Exact in half precision, so that the wire does not round.
            (hasher.finish() % 64 + 1) as f32
        };
        let weights: Vec<f32> = own.iter().map(|&action| weight(action)).collect();
        let sum: f32 = weights.iter().sum();
        all.extend(weights.iter().map(|weight| weight / sum));
        values.push(weight(99) / 32.0 - 1.0);
    }
    assert!(legal.is_empty());
    EvaluateReply {
        id: request.id,
        version,
        values,
        priors: priors::encode(&all),
        error: None,
    }
}
