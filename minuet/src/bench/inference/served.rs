//! The server as a process, and the streams that load it.

use std::{
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Context as _;
use checkpoints::{Draft, LATEST, MODEL, Repository};
use proto::v1::{DescribeModelRequest, EvaluateRequest, evaluator_client::EvaluatorClient};
use service::role::Role;
use tokio::{runtime::Runtime, sync::mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;

use super::{
    Arguments,
    machine::{self, Measured},
    positions::Positions,
};

/// How long the server may take to load the model.
const PATIENCE: Duration = Duration::from_secs(60);

/// The server.
pub struct Served {
    child: Child,
    address: String,
}

impl Served {
    /// Publishes the model and starts a server for it, on the core that this thread runs on.
    pub fn start(
        arguments: &Arguments,
        provider: &str,
        folder: &Path,
        model: &[u8],
        positions: &Positions,
    ) -> anyhow::Result<Self> {
        let store = folder.join("checkpoints").display().to_string();
        publish(&store, model, positions)?;
        let address = free_address()?;
        let program = std::env::current_exe()?.with_file_name(Role::InferenceServer.binary());
        let layout = &positions.layout;
        let settings = [
            format!("checkpoints.store={store}"),
            format!("game.name={}", layout.game),
            format!("game.options={}", layout.options),
            format!("inference.address={address}"),
            format!("inference.provider={provider}"),
            format!("inference.max_batch={}", arguments.batch),
        ];
        let mut command = Command::new(&program);
        for setting in settings {
            command.arg("--set").arg(setting);
        }
        let child = command
            .arg("--supervised")
            .stdin(Stdio::piped())
            .env(
                "MINUET_LOG",
                std::env::var("MINUET_LOG").unwrap_or_else(|_| "warn".into()),
            )
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { child, address })
    }

    /// Connects the streams, once the server answers.
    pub fn client(&mut self, arguments: &Arguments, positions: &Positions) -> anyhow::Result<Client> {
        // Made here, after this thread was pinned: the runtime's threads run where it does.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let provider = runtime.block_on(self.wait_until_ready())?;
        let count = Arc::new(Count::default());
        let inside = runtime.enter();
        for number in 0..usize::from(arguments.streams) {
            let channel = service::connect::channel(&self.address)?;
            let requests = (0..16)
                .map(|step| positions.request(17 * number + step))
                .collect();
            tokio::spawn(load(channel, requests, count.clone()));
        }
        drop(inside);
        Ok(Client {
            _runtime: runtime,
            provider,
            count,
            latencies: Vec::new(),
        })
    }

    async fn wait_until_ready(&mut self) -> anyhow::Result<String> {
        let mut client = EvaluatorClient::new(service::connect::channel(&self.address)?);
        let began = Instant::now();
        loop {
            match client.describe_model(DescribeModelRequest::default()).await {
                Ok(description) => return Ok(description.into_inner().provider),
                Err(status) if began.elapsed() > PATIENCE => {
                    anyhow::bail!("the server has no model after {PATIENCE:?}: {status}")
                }
                Err(_) => {}
            }
            if let Some(status) = self.child.try_wait()? {
                anyhow::bail!("the server ended with {status}; what it wrote stands above");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The streams.
pub struct Client {
    /// Held: its threads do the work, and end with it.
    _runtime: Runtime,
    provider: String,
    count: Arc<Count>,
    latencies: Vec<Duration>,
}

/// What the streams have done so far.
#[derive(Default)]
struct Count {
    positions: AtomicU64,
    latencies: parking_lot::Mutex<Vec<Duration>>,
    failure: parking_lot::Mutex<Option<String>>,
}

impl Client {
    /// What runs the model.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// What was answered within so long.
    pub fn measure(&mut self, served: &Served, seconds: f64) -> anyhow::Result<Measured> {
        self.count.latencies.lock().clear();
        let before = self.count.positions.load(Ordering::Relaxed);
        let measured = machine::measure(served.child.id(), || {
            std::thread::sleep(Duration::from_secs_f64(seconds));
            Ok(self.count.positions.load(Ordering::Relaxed) - before)
        })?;
        if let Some(failure) = self.count.failure.lock().take() {
            anyhow::bail!("a stream failed: {failure}");
        }
        self.latencies.append(&mut self.count.latencies.lock());
        Ok(measured)
    }

    /// Half of the requests, and all but one of a hundred, were answered within so many milliseconds.
    pub fn latencies(&mut self) -> (f64, f64) {
        self.latencies.sort_unstable();
        let at = |share: f64| {
            let place = (self.latencies.len() as f64 * share) as usize;
            let latency = self.latencies.get(place).copied().unwrap_or_default();
            latency.as_secs_f64() * 1e3
        };
        (at(0.5), at(0.99))
    }
}

/// One stream: a request, its answer, the next request.
async fn load(channel: Channel, requests: Vec<EvaluateRequest>, count: Arc<Count>) {
    if let Err(error) = try_load(channel, &requests, &count).await {
        *count.failure.lock() = Some(format!("{error:#}"));
    }
}

async fn try_load(channel: Channel, requests: &[EvaluateRequest], count: &Count) -> anyhow::Result<()> {
    let (sender, receiver) = mpsc::channel(1);
    let mut client = EvaluatorClient::new(channel);
    let mut requests = requests.iter().cycle();
    let mut send = async || -> anyhow::Result<u64> {
        let request = requests.next().context("no requests")?.clone();
        let positions = request.legal_counts.len() as u64;
        sender.send(request).await?;
        Ok(positions)
    };
    let mut positions = send().await?;
    let mut replies = client
        .evaluate_stream(ReceiverStream::new(receiver))
        .await?
        .into_inner();
    loop {
        let asked = Instant::now();
        let reply = replies.message().await?.context("the server ended the stream")?;
        if let Some(error) = reply.error {
            anyhow::bail!("{}", error.message);
        }
        count.positions.fetch_add(positions, Ordering::Relaxed);
        count.latencies.lock().push(asked.elapsed());
        positions = send().await?;
    }
}

fn publish(store: &str, model: &[u8], positions: &Positions) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let repository = Repository::open(store)?;
        let draft = Draft {
            game: positions.layout.game.clone(),
            layout: serde_json::to_value(&positions.layout)?,
            actions: positions.layout.actions,
            step: 1,
            ..Draft::default()
        };
        let version = repository
            .publish(draft, vec![(MODEL, model.to_vec().into())])
            .await?;
        repository.set_label(LATEST, &version).await?;
        Ok(())
    })
}

fn free_address() -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    Ok(listener.local_addr()?.to_string())
}
