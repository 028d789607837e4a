//! [`BlockedServer`]: a server whose device computes a batch only after the test releases it.

use std::{
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};

use config::SecurityConfig;
use games::RowLayout;
use inference_server::{
    batching::{
        batcher::{Batcher, BatchingPolicy},
        executor::Executor,
        reply,
    },
    intake::Intake,
    kserve::KserveService,
    metrics::Metrics,
    models::{
        names::{Pointer, ServedName},
        table::Models,
    },
    server::method,
    service::EvaluatorService,
};
use network::{
    batch::{Batch, Outputs, RunError, Runner},
    buckets::Buckets,
    model::{Model, ModelInfo},
};
use proto::{
    inference::grpc_inference_service_server::GrpcInferenceServiceServer,
    v1::evaluator_server::EvaluatorServer,
};
use service::{
    listener::ConnectionPolicy,
    serve::{self, Drained, ServeError},
};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::{TIMEOUT, small};

/// Positions of the largest batch.
pub const BATCH: usize = 16;
/// Largest number of waiting positions.
pub const QUEUE: usize = 64;

/// Blocks the device until the test releases batches.
#[derive(Default)]
pub struct DeviceGate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    batches: usize,
    released: usize,
}

impl DeviceGate {
    /// Releases this number of further batches.
    pub fn release(&self, batches: usize) {
        let mut state = self.state.lock().unwrap();
        state.released = state.released.saturating_add(batches);
        self.changed.notify_all();
    }

    /// Releases all batches from now on.
    pub fn release_all(&self) {
        self.release(usize::MAX);
    }

    /// Returns the number of batches that the device has been given.
    pub fn batches(&self) -> usize {
        self.state.lock().unwrap().batches
    }

    fn wait(&self) {
        let mut state = self.state.lock().unwrap();
        state.batches += 1;
        let own = state.batches;
        let passed = self.changed.wait_while(state, |state| state.released < own);
        drop(passed.unwrap());
    }
}

struct BlockedRunner {
    gate: Arc<DeviceGate>,
    layout: RowLayout,
}

struct BlockedOutputs {
    logits: Vec<f32>,
    values: Vec<f32>,
}

impl Outputs for BlockedOutputs {
    fn logits(&self) -> &[f32] {
        &self.logits
    }

    fn values(&self) -> &[f32] {
        &self.values
    }
}

impl Runner for BlockedRunner {
    fn run(&mut self, batch: Batch) -> Result<Box<dyn Outputs>, RunError> {
        self.gate.wait();
        Ok(Box::new(BlockedOutputs {
            logits: vec![0.0; batch.size() * self.layout.actions as usize],
            values: vec![0.5; batch.size()],
        }))
    }
}

/// A server with a blocked device.
pub struct BlockedServer {
    pub address: String,
    pub layout: RowLayout,
    pub gate: Arc<DeviceGate>,
    pub batcher: Arc<Batcher>,
    pub shutdown: CancellationToken,
    serving: JoinHandle<Result<Drained, ServeError>>,
}

impl BlockedServer {
    /// Starts a server with batches of at most [`BATCH`], a queue of [`QUEUE`] positions, and no cache.
    pub async fn start() -> Self {
        let (layout, gate) = (small(), Arc::<DeviceGate>::default());
        let default = ServedName {
            source: String::new(),
            pointer: Pointer::Label("latest".into()),
        };
        let models = Arc::new(Models::new(default, [], []));
        let info = ModelInfo {
            source: String::new(),
            version: "held".into(),
            digest: String::new(),
            id: network::cache::VersionId(0),
            step: 0,
            layout: layout.clone(),
            provider: "held",
            bytes: 0,
            threads: 1,
            speeds: Vec::new(),
        };
        let runner = BlockedRunner {
            gate: gate.clone(),
            layout: layout.clone(),
        };
        let model = Model::new(info, Buckets::new(BATCH), vec![Box::new(runner)]);
        models.default_slot().replace(Arc::new(model));
        let metrics = Arc::new(Metrics::new());
        let policy = BatchingPolicy {
            max_batch: BATCH,
            max_wait: Duration::ZERO,
            max_queue: QUEUE,
        };
        let batcher = Batcher::new(policy, metrics.clone());
        let executor = Executor::start(&batcher, &metrics, 1).unwrap();
        let shutdown = CancellationToken::new();
        let intake = Intake::new(
            models,
            batcher.clone(),
            None,
            1000,
            metrics.clone(),
            shutdown.clone(),
        );
        let (routes, health) = serve::standard_routes(&[], &[]).await.unwrap();
        let routes = routes
            .add_service(EvaluatorServer::new(EvaluatorService::new(intake.clone())))
            .add_service(GrpcInferenceServiceServer::new(KserveService::new(intake, 0)));
        let forming = batcher.clone();
        tokio::spawn(async move { forming.run(executor.batches, CancellationToken::new()).await });
        tokio::spawn(async move { reply::run(executor.finished, None, &metrics).await });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let connection_policy = ConnectionPolicy::new(&SecurityConfig::default(), method).unwrap();
        let serving = serve::serve_with(
            connection_policy,
            routes,
            listener,
            health,
            shutdown.clone(),
            TIMEOUT,
        );
        Self {
            address,
            layout,
            gate,
            batcher,
            shutdown,
            serving: tokio::spawn(serving),
        }
    }

    /// Waits until the device has been given this number of batches and this number of positions waits.
    pub async fn until(&self, batches: usize, waiting: usize) {
        let reached = async {
            while (self.gate.batches(), self.batcher.waiting().positions) != (batches, waiting) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        if tokio::time::timeout(TIMEOUT, reached).await.is_err() {
            panic!(
                "{batches} batches and {waiting} positions expected, {} and {:?} found",
                self.gate.batches(),
                self.batcher.waiting()
            );
        }
    }

    /// Stops the server, which must drain completely.
    pub async fn stop(self) {
        self.shutdown.cancel();
        let ended = tokio::time::timeout(TIMEOUT, self.serving).await.unwrap();
        assert_eq!(ended.unwrap().unwrap(), Drained::Completely);
    }
}
