//! A server in this process on port 0, a model repository in a temporary folder, small networks.
#![allow(dead_code, missing_docs, unused_imports)]

pub mod blocked_server;
pub mod served;

use std::time::Duration;

use bytes::Bytes;
use checkpoints::{Draft, LATEST, MODEL, Repository, Version};
use config::{Provider, RunConfig};
use games::{ConstantPlane, PlaneStack, RowForm, RowLayout};
use onnx::{Input, Metadata, TowerShape, TowerWeights};
use proto::{
    inference::{ModelInferRequest, model_infer_request::InferInputTensor},
    v1::{
        DescribeModelRequest, EvaluateReply, EvaluateRequest, ModelDescription,
        evaluator_client::EvaluatorClient,
    },
};
use tempfile::TempDir;
use tokio::{net::TcpListener, sync::mpsc, task::JoinHandle};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status, Streaming, transport::Channel};

pub use served::Served;

/// Longest wait in a test; no test depends on its length.
pub const TIMEOUT: Duration = Duration::from_secs(60);

pub fn constant(plane: u32, divisor: u32, max: u32) -> ConstantPlane {
    ConstantPlane {
        name: format!("constant {plane}"),
        plane,
        divisor,
        max,
    }
}

/// Returns a small layout with constant planes and a plane of ones between the sparse ones. Its game is `paco-sako`, the server's
/// default.
pub fn small() -> RowLayout {
    RowLayout {
        game: "paco-sako".into(),
        options: 0,
        form: RowForm::Planes(PlaneStack {
            entries: 6,
            planes: 7,
            sparse: vec![0, 2, 5],
            constants: vec![constant(6, 100, 100), constant(1, 1, 1), constant(4, 1, 1)],
            ones: vec![3],
        }),
        actions: 9,
        mirrored_actions: true,
        policy_head: games::PolicyHead::Dense,
    }
}

/// Returns a layout like that of chess: 32 pieces and an en-passant square, repetitions, colour, castling, counter; a plane of ones.
pub fn chess_like() -> RowLayout {
    RowLayout {
        game: "chess".into(),
        options: 0,
        form: RowForm::Planes(PlaneStack {
            entries: 33,
            planes: 22,
            sparse: (0..12).chain([21]).collect(),
            constants: [12, 13, 14, 16, 17, 18, 19]
                .map(|plane| constant(plane, 1, 1))
                .into_iter()
                .chain([constant(20, 100, 100)])
                .collect(),
            ones: vec![15],
        }),
        actions: 73 * 64,
        mirrored_actions: true,
        policy_head: games::PolicyHead::Planes,
    }
}

/// Returns a layout without constant planes, like that of Othello.
pub fn othello_like() -> RowLayout {
    RowLayout {
        game: "othello".into(),
        options: 0,
        form: RowForm::Planes(PlaneStack {
            entries: 64,
            planes: 3,
            sparse: vec![0, 2],
            constants: Vec::new(),
            ones: vec![1],
        }),
        actions: 65,
        mirrored_actions: false,
        policy_head: games::PolicyHead::Dense,
    }
}

/// Returns a network of random weights.
pub fn tower(layout: &RowLayout, seed: u64) -> TowerWeights {
    let shape = TowerShape {
        ..TowerShape::new(layout, 1, 8)
    };
    TowerWeights::random(&shape, seed)
}

pub fn file(weights: &TowerWeights, layout: &RowLayout, input: Input) -> Vec<u8> {
    let metadata = Metadata {
        layout: layout.clone(),
        step: 5,
    };
    onnx::build(weights, &metadata, input).unwrap()
}

/// Returns a valid request with random rows of `layout`; the legal actions are the first ones, in descending order.
pub fn request(layout: &RowLayout, id: u64, positions: usize, legal: u32) -> EvaluateRequest {
    EvaluateRequest {
        id,
        indices: onnx::random::rows(layout, positions, 0.8, id),
        legal_actions: (0..legal).rev().collect::<Vec<_>>().repeat(positions),
        legal_counts: vec![legal; positions],
        ..EvaluateRequest::default()
    }
}

/// Returns the rows of [`request`] as a request of the Open Inference Protocol with raw contents, which is answered with
/// logits.
pub fn infer_request(layout: &RowLayout, model: &str, id: u64, positions: usize) -> ModelInferRequest {
    let rows = onnx::random::rows(layout, positions, 0.8, id);
    ModelInferRequest {
        model_name: model.into(),
        inputs: vec![InferInputTensor {
            name: "indices".into(),
            datatype: "UINT32".into(),
            shape: vec![positions as i64, (rows.len() / positions) as i64],
            ..InferInputTensor::default()
        }],
        raw_input_contents: vec![rows.iter().flat_map(|number| number.to_le_bytes()).collect()],
        ..ModelInferRequest::default()
    }
}

/// Returns the expected values and priors, by direct evaluation of the weights.
pub fn truth(weights: &TowerWeights, layout: &RowLayout, request: &EvaluateRequest) -> (Vec<f32>, Vec<f32>) {
    let (mut values, mut priors) = (Vec::new(), Vec::new());
    let mut rest = request.legal_actions.as_slice();
    for (row, &count) in request
        .indices
        .chunks(layout.row_len().unwrap())
        .zip(&request.legal_counts)
    {
        let mut planes = vec![0.0; layout.stack().unwrap().tensor_len()];
        layout.stack().unwrap().expand(row, &mut planes).unwrap();
        let (logits, value) = onnx::reference::evaluate(weights, &planes);
        values.push(value);
        let (legal, others) = rest.split_at(count as usize);
        rest = others;
        let exps: Vec<f64> = legal
            .iter()
            .map(|&action| f64::from(logits[action as usize]).exp())
            .collect();
        let sum: f64 = exps.iter().sum();
        priors.extend(exps.iter().map(|exp| (exp / sum) as f32));
    }
    (values, priors)
}

/// True if a reply agrees with the weights (priors are sent in half precision).
pub fn agrees(
    reply: &EvaluateReply,
    weights: &TowerWeights,
    layout: &RowLayout,
    request: &EvaluateRequest,
) -> bool {
    let (values, priors) = truth(weights, layout, request);
    let mut found = Vec::new();
    proto::priors::decode(&reply.priors, priors.len(), &mut found).unwrap();
    let close = |left: &[f32], right: &[f32], bound: f32| {
        left.len() == right.len()
            && left
                .iter()
                .zip(right)
                .all(|(left, right)| (left - right).abs() < bound)
    };
    close(&reply.values, &values, 1e-4) && close(&found, &priors, 1e-3)
}

/// A model repository in a temporary folder.
pub struct Store {
    pub folder: TempDir,
    pub repository: Repository,
}

impl Store {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let repository = Repository::open(folder.path().to_str().unwrap()).unwrap();
        Self { folder, repository }
    }

    /// Publishes a file without moving a label.
    pub async fn publish(&self, file: Vec<u8>, layout: &RowLayout, step: u64) -> Version {
        let draft = Draft {
            game: layout.game.clone(),
            layout: serde_json::to_value(layout).unwrap(),
            actions: layout.actions,
            step,
            ..Draft::default()
        };
        let files = vec![(MODEL, Bytes::from(file))];
        self.repository.publish(draft, files).await.unwrap()
    }

    /// Publishes a file and moves `latest`.
    pub async fn publish_latest(&self, file: Vec<u8>, layout: &RowLayout, step: u64) -> Version {
        let version = self.publish(file, layout, step).await;
        self.repository.set_label(LATEST, &version).await.unwrap();
        version
    }
}

/// A running server.
pub struct Server {
    pub address: String,
    pub shutdown: CancellationToken,
    pub task: JoinHandle<anyhow::Result<()>>,
}

impl Server {
    /// Starts a server on port 0 with the plain CPU provider and a configuration changed by `change`.
    pub async fn start(store: &Store, change: impl FnOnce(&mut RunConfig)) -> Self {
        let mut config = RunConfig::default();
        config.checkpoints.store = store.folder.path().to_str().unwrap().to_owned();
        config.checkpoints.poll_ms = 5;
        config.game.name = "paco-sako".into();
        config.game.options = 0;
        config.inference.provider = Provider::Cpu;
        config.inference.max_batch = 16;
        config.inference.max_queue = 256;
        config.inference.max_request = 64;
        change(&mut config);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shutdown = CancellationToken::new();
        let task = tokio::spawn(inference_server::serve(listener, config, shutdown.clone()));
        Self {
            address,
            shutdown,
            task,
        }
    }

    /// Returns a client on a connection of its own.
    pub fn client(&self) -> EvaluatorClient<Channel> {
        EvaluatorClient::new(service::connect::channel(&self.address).unwrap())
    }

    /// Waits until `version` is served.
    pub async fn wait_for(&self, version: &Version) -> ModelDescription {
        let mut client = self.client();
        let waiting = async {
            loop {
                if let Ok(description) = client.describe_model(DescribeModelRequest::default()).await {
                    let description = description.into_inner();
                    if description.version == version.as_str() {
                        return description;
                    }
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, waiting).await.unwrap()
    }

    /// Waits until the server has loaded or refused the model of a name. Returns its description or the refusal.
    pub async fn wait_for_model(&self, name: &str) -> Result<ModelDescription, Status> {
        let mut client = self.client();
        let waiting = async {
            loop {
                let request = DescribeModelRequest { model: name.into() };
                match client.describe_model(request).await {
                    Err(status) if status.code() == Code::Unavailable => {}
                    described => return described.map(tonic::Response::into_inner),
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, waiting).await.unwrap()
    }

    /// Opens a stream.
    pub async fn stream(&self) -> Stream {
        Stream::open(&self.address).await
    }

    /// Sends one unary call.
    pub async fn evaluate(&self, request: EvaluateRequest) -> Result<EvaluateReply, Status> {
        self.client()
            .evaluate(request)
            .await
            .map(tonic::Response::into_inner)
    }

    /// Stops the server and waits for its end.
    pub async fn stop(self) {
        self.shutdown.cancel();
        tokio::time::timeout(TIMEOUT, self.task)
            .await
            .unwrap()
            .unwrap()
            .unwrap();
    }
}

/// Both ends of a stream.
pub struct Stream {
    pub requests: mpsc::Sender<EvaluateRequest>,
    pub replies: Streaming<EvaluateReply>,
}

impl Stream {
    /// Opens a stream on a connection of its own.
    pub async fn open(address: &str) -> Self {
        let (requests, receiver) = mpsc::channel(256);
        let mut client = EvaluatorClient::new(service::connect::channel(address).unwrap());
        let opened = client.evaluate_stream(ReceiverStream::new(receiver)).await;
        let replies = opened.unwrap().into_inner();
        Self { requests, replies }
    }

    pub async fn send(&self, request: EvaluateRequest) {
        self.requests.send(request).await.unwrap();
    }

    pub async fn reply(&mut self) -> EvaluateReply {
        tokio::time::timeout(TIMEOUT, self.replies.message())
            .await
            .unwrap()
            .unwrap()
            .unwrap()
    }
}

/// Returns the status code of an answer. Panics if the answer is not an error.
pub fn code(answer: Result<EvaluateReply, Status>) -> Code {
    answer.unwrap_err().code()
}
