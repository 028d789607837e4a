//! [`BlockedServer`]: a server whose device computes a batch only after the test releases it.

use std::sync::{Arc, Condvar, Mutex};

use config::RunConfig;
use games::RowLayout;
use inference_server::{
    batching::batcher::{Batcher, BatchingPolicy},
    metrics::Metrics,
    models::{
        names::{Pointer, ServedName},
        table::Models,
    },
    server::serve_models,
};
use network::{
    batch::{Batch, Outputs, RunError, Runner},
    buckets::Buckets,
    model::{Model, ModelInfo},
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{Server, TIMEOUT, small, until};

/// Positions of the largest batch.
pub const BATCH: usize = 16;
/// Largest number of waiting positions.
pub const QUEUE: usize = 64;

/// Blocks the device until the test releases batches.
#[derive(Default)]
pub struct DeviceGate {
    /// Batches that the device has been given, and those that were released.
    counts: Mutex<(usize, usize)>,
    changed: Condvar,
}

impl DeviceGate {
    /// Releases this number of further batches.
    pub fn release(&self, batches: usize) {
        let mut counts = self.counts.lock().unwrap();
        counts.1 = counts.1.saturating_add(batches);
        self.changed.notify_all();
    }

    /// Releases all batches from now on.
    pub fn release_all(&self) {
        self.release(usize::MAX);
    }

    /// Returns the number of batches that the device has been given.
    pub fn batches(&self) -> usize {
        self.counts.lock().unwrap().0
    }

    fn wait(&self) {
        let mut counts = self.counts.lock().unwrap();
        counts.0 += 1;
        let own = counts.0;
        let passed = self.changed.wait_while(counts, |counts| counts.1 < own);
        drop(passed.unwrap());
    }
}

struct BlockedRunner {
    gate: Arc<DeviceGate>,
    actions: usize,
}

impl Runner for BlockedRunner {
    fn run(&mut self, batch: Batch) -> Result<Outputs, RunError> {
        self.gate.wait();
        let logits = vec![0.0; batch.size() * self.actions];
        Ok(Outputs::new(logits, vec![0.5; batch.size()]))
    }
}

/// A server with a blocked device.
pub struct BlockedServer {
    pub server: Server,
    pub layout: RowLayout,
    pub gate: Arc<DeviceGate>,
    pub batcher: Arc<Batcher>,
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
            actions: layout.actions as usize,
        };
        let model = Model::new(info, Buckets::new(BATCH), vec![Box::new(runner)]);
        models.default_slot().replace(Arc::new(model));
        let metrics = Arc::new(Metrics::new());
        let policy = BatchingPolicy {
            max_batch: BATCH,
            max_queue: QUEUE,
        };
        let batcher = Batcher::new(policy, metrics.clone());
        let mut config = RunConfig::default();
        (config.inference.threads, config.inference.cache_mib) = (1, 0);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shutdown = CancellationToken::new();
        let serving = serve_models(
            listener,
            config,
            shutdown.clone(),
            models,
            batcher.clone(),
            metrics,
        );
        let server = Server {
            address,
            shutdown,
            task: tokio::spawn(serving),
        };
        Self {
            server,
            layout,
            gate,
            batcher,
        }
    }

    /// Waits until the device has been given this number of batches and this number of positions waits.
    pub async fn until(&self, batches: usize, waiting: usize) {
        let found = || (self.gate.batches(), self.batcher.waiting().positions);
        let reached = until(async || found() == (batches, waiting));
        if tokio::time::timeout(TIMEOUT / 2, reached).await.is_err() {
            panic!(
                "{batches} batches and {waiting} positions expected, {:?} found",
                found()
            );
        }
    }
}
