//! A server in this process on port 0, a model repository in a temporary folder, small networks.
#![allow(dead_code, missing_docs, unused_imports)]

pub mod blocked_server;
#[path = "../../../onnx/tests/reference/mod.rs"]
pub mod reference;

use std::time::Duration;

use bytes::Bytes;
use checkpoints::{Draft, LATEST, MODEL, Repository, Version};
use config::{Provider, RunConfig};
use games::{
    ConstantPlane, Game as _, PlaneStack, PolicyHead, RowForm, RowLayout, chess::Chess, othello::Othello,
};
use onnx::{
    Input, Metadata, TowerShape, TowerWeights,
    graph::Graph,
    proto::{ModelProto, OperatorSetIdProto},
};
use prost::Message as _;
use proto::{
    inference::{
        ModelInferRequest, grpc_inference_service_client::GrpcInferenceServiceClient,
        model_infer_request::InferInputTensor,
    },
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

/// Longest wait in a test; no test depends on its length.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits for `future` at most [`TIMEOUT`].
pub async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(TIMEOUT, future).await.unwrap()
}

/// Waits until `is_reached` returns true.
pub async fn until(mut is_reached: impl AsyncFnMut() -> bool) {
    within(async {
        while !is_reached().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// Returns a client of each protocol on connections of their own.
pub fn clients(address: &str) -> (EvaluatorClient<Channel>, GrpcInferenceServiceClient<Channel>) {
    let [own, standard] = [(); 2].map(|()| service::connect::channel(address).unwrap());
    (
        EvaluatorClient::new(own),
        GrpcInferenceServiceClient::new(standard),
    )
}

/// Waits for the next message of a stream.
pub async fn next<T>(replies: &mut Streaming<T>) -> T {
    within(replies.message()).await.unwrap().unwrap()
}

/// Waits until the server at `address` has loaded or refused the model of a name. Returns its description or the refusal.
pub async fn described(address: &str, name: &str) -> Result<ModelDescription, Status> {
    let (mut client, _) = clients(address);
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
    within(waiting).await
}

fn constant(plane: u32, divisor: u32, max: u32) -> ConstantPlane {
    ConstantPlane {
        name: format!("constant {plane}"),
        plane,
        divisor,
        max,
    }
}

/// Returns a small layout with a dense policy of nine actions.
pub fn small() -> RowLayout {
    sized([4, 16], 0, 0)
}

/// Heights and widths of boards, up to the largest.
pub const SIDES: [[u32; 2]; 6] = [[1, 9], [5, 7], [7, 6], [9, 9], [19, 19], [32, 32]];

/// Returns layouts over boards of all [`SIDES`], each with a dense policy, a policy of two planes, and one of a plane and two actions of
/// the whole board.
pub fn of_any_size() -> impl Iterator<Item = RowLayout> {
    let heads = [(0, 0), (2, 0), (1, 2)];
    SIDES
        .into_iter()
        .flat_map(move |sides| heads.map(|(planes, globals)| sized(sides, planes, globals)))
}

/// Returns a layout with constant planes and a plane of ones between the sparse ones. Its game is `paco-sako`, the server's default. The
/// policy has this many planes, and actions of the whole board; without planes it is dense, with nine actions.
fn sized([height, width]: [u32; 2], planes: u32, globals: u32) -> RowLayout {
    let stack = PlaneStack {
        height,
        width,
        entries: 6,
        planes: 7,
        sparse: vec![0, 2, 5],
        constants: vec![constant(6, 100, 100), constant(1, 1, 1), constant(4, 1, 1)],
        ones: vec![3],
    };
    let squares = height * width;
    let (policy_head, actions) = match planes {
        0 => (PolicyHead::Dense, 9),
        _ => (PolicyHead::Planes, planes * squares + globals),
    };
    RowLayout {
        game: "paco-sako".into(),
        options: 0,
        form: RowForm::Planes(stack),
        actions,
        mirrored_actions: true,
        policy_head,
    }
}

pub fn chess() -> RowLayout {
    Chess::layout(Default::default())
}

/// Returns the layout of Othello, which has no constant planes.
pub fn othello() -> RowLayout {
    Othello::layout(Default::default())
}

/// Returns a network of random weights.
pub fn tower(layout: &RowLayout, seed: u64) -> TowerWeights {
    TowerWeights::random(&TowerShape::new(layout, 1, 8), seed)
}

pub fn file(weights: &TowerWeights, layout: &RowLayout, input: Input) -> Vec<u8> {
    let metadata = Metadata {
        layout: layout.clone(),
        step: 5,
    };
    onnx::build(weights, &metadata, input).unwrap()
}

/// Returns the file of a graph.
pub fn model_of(graph: Graph, ir_version: i64, opset: i64) -> Vec<u8> {
    let model = ModelProto {
        ir_version: Some(ir_version),
        opset_import: vec![OperatorSetIdProto {
            domain: Some(String::new()),
            version: Some(opset),
        }],
        graph: Some(graph.finish()),
        ..ModelProto::default()
    };
    model.encode_to_vec()
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
        let (logits, value) = reference::tower::evaluate(weights, &planes);
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
        clients(&self.address).0
    }

    /// Waits until `version` is served.
    pub async fn wait_for(&self, version: &Version) -> ModelDescription {
        let mut description = ModelDescription::default();
        until(async || {
            description = described(&self.address, "").await.unwrap_or_default();
            description.version == version.as_str()
        })
        .await;
        description
    }

    /// Waits until the server has loaded or refused the model of a name. Returns its description or the refusal.
    pub async fn wait_for_model(&self, name: &str) -> Result<ModelDescription, Status> {
        described(&self.address, name).await
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
        within(self.task).await.unwrap().unwrap();
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
        let (mut client, _) = clients(address);
        let opened = client.evaluate_stream(ReceiverStream::new(receiver)).await;
        let replies = opened.unwrap().into_inner();
        Self { requests, replies }
    }

    pub async fn send(&self, request: EvaluateRequest) {
        self.requests.send(request).await.unwrap();
    }

    pub async fn reply(&mut self) -> EvaluateReply {
        next(&mut self.replies).await
    }
}

/// Returns the status code of an answer. Panics if the answer is not an error.
pub fn code(answer: Result<EvaluateReply, Status>) -> Code {
    answer.unwrap_err().code()
}

/// A server for the layout of [`small`] and the weights of [`tower`] with seed 1, published as `latest`.
pub struct Served {
    pub store: Store,
    pub layout: RowLayout,
    pub weights: TowerWeights,
    pub version: Version,
    pub server: Server,
}

impl Served {
    /// Starts the server with the settings of [`Server::start`].
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// Starts the server with a configuration changed by `change`.
    pub async fn start_with(change: impl FnOnce(&mut RunConfig)) -> Self {
        let (store, layout, weights, version) = published().await;
        let server = Server::start(&store, change).await;
        server.wait_for(&version).await;
        Self {
            store,
            layout,
            weights,
            version,
            server,
        }
    }
}

/// Publishes the network without a server.
pub async fn published() -> (Store, RowLayout, TowerWeights, Version) {
    let (store, layout) = (Store::new(), small());
    let weights = tower(&layout, 1);
    let rows = file(&weights, &layout, Input::Rows);
    let version = store.publish_latest(rows, &layout, 5).await;
    (store, layout, weights, version)
}
