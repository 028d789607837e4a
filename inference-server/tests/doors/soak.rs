//! 200 clients that connect, send rubbish, stall, cancel and vanish leave a server healthy: its memory is flat, nothing of
//! theirs is left in its queue, and who behaves is answered all the while.
//!
//! A short form is part of the tests; `make soak` goes on for `MINUET_SOAK_SECONDS`.

use std::{
    collections::BTreeMap,
    net::TcpListener,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use games::RowLayout;
use onnx::TowerWeights;
use proto::v1::{DescribeModelRequest, evaluator_client::EvaluatorClient};
use service::connect;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
};

use crate::{
    common::{PATIENCE, Store, agrees, request, served::published},
    rogue::Rogue,
};

const CLIENTS: u64 = 200;
/// Things that each client does in a round.
const EACH: usize = 3;
/// Memory that may be taken and kept after the first round: the allocator's leftovers, not a leak, which every round
/// would add to.
const LEFTOVERS: f64 = 48e6;

/// The server as a process of its own, so that its memory is its own.
struct Process {
    child: Child,
    address: String,
    metrics: String,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    fn start(store: &Store) -> Self {
        let [address, metrics] = [(); 2].map(|()| {
            let free = TcpListener::bind("127.0.0.1:0").unwrap();
            free.local_addr().unwrap().to_string()
        });
        let settings = [
            format!("inference.address={address}"),
            format!("inference.metrics={metrics}"),
            format!("checkpoints.store={}", store.folder.path().display()),
            "game.options=0".into(),
            "inference.provider=cpu".into(),
            "inference.max_batch=16".into(),
            "inference.max_queue=512".into(),
        ];
        let child = Command::new(env!("CARGO_BIN_EXE_minuet-inference-server"))
            .args(settings.iter().flat_map(|setting| ["--set", setting]))
            .arg("--supervised")
            .env_remove("MINUET_CONFIG")
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            child,
            address,
            metrics,
        }
    }

    /// What its metrics page says, without labels.
    async fn page(&self) -> BTreeMap<String, f64> {
        let mut stream = TcpStream::connect(&self.metrics).await.unwrap();
        let asked = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        stream.write_all(asked).await.unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).await.unwrap();
        let figures = page.lines().filter_map(|line| line.split_once(' '));
        figures
            .filter_map(|(name, figure)| Some((name.to_owned(), figure.trim().parse().ok()?)))
            .collect()
    }

    /// Waits until nothing of the clients is left, but for one connection and one stream; then its memory, in bytes.
    async fn settled(&self) -> f64 {
        let settling = async {
            loop {
                let page = self.page().await;
                let left = |name: &str| page.get(name).copied().unwrap_or_default();
                let is_settled = left("minuet_inference_queue_positions") == 0.0
                    && left("minuet_inference_streams") <= 1.0
                    && left("minuet_server_connections") <= 2.0;
                if is_settled {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, settling).await.is_err() {
            panic!("something is left: {:#?}", self.page().await);
        }
        // The figure is brought up to date every other second.
        tokio::time::sleep(Duration::from_millis(2_100)).await;
        self.page().await["process_resident_memory_bytes"]
    }
}

/// Asks, again and again, until told to stop; every answer must be right.
async fn behave(
    address: String,
    layout: RowLayout,
    weights: TowerWeights,
    answered: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
) {
    let mut client = EvaluatorClient::new(connect::channel(&address).unwrap());
    while !stop.load(Ordering::Relaxed) {
        let number = answered.load(Ordering::Relaxed);
        let asked = request(&layout, number, 1 + number as usize % 4, 3);
        let asking = client.evaluate(asked.clone());
        match tokio::time::timeout(PATIENCE, asking).await.unwrap() {
            Ok(reply) => {
                assert!(
                    agrees(&reply.into_inner(), &weights, &layout, &asked),
                    "request {number}"
                );
                answered.fetch_add(1, Ordering::Relaxed);
            }
            // Others may fill the queue: that is said at once, and asking again is what is asked for.
            Err(status) => assert_eq!(status.code(), tonic::Code::ResourceExhausted, "{status:?}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// All clients misbehave at the same time, and are gone.
async fn round(seed: u64, address: &str, layout: &RowLayout) {
    let mut rogues = JoinSet::new();
    for client in 0..CLIENTS {
        let rogue = Rogue::new(seed << 32 | client, address, layout);
        rogues.spawn(rogue.misbehave(EACH));
    }
    rogues.join_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_clients_that_misbehave_leave_no_trace() {
    let (store, layout, weights, _) = published().await;
    let server = Process::start(&store);
    let ready = async {
        let mut client = EvaluatorClient::new(connect::channel(&server.address).unwrap());
        while client
            .describe_model(DescribeModelRequest::default())
            .await
            .is_err()
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, ready).await.unwrap();

    let (answered, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let behaving = tokio::spawn(behave(
        server.address.clone(),
        layout.clone(),
        weights,
        answered.clone(),
        stop.clone(),
    ));
    let seconds = std::env::var("MINUET_SOAK_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok());
    let until = Instant::now() + Duration::from_secs(seconds.unwrap_or(0));
    round(0, &server.address, &layout).await;
    let first = server.settled().await;
    let mut seed = 1;
    loop {
        let before = answered.load(Ordering::Relaxed);
        round(seed, &server.address, &layout).await;
        let memory = server.settled().await;
        let since = answered.load(Ordering::Relaxed) - before;
        println!("round {seed}: {:.1} MB, {since} answers", memory / 1e6);
        assert!(since > 0, "who behaves was not answered in round {seed}");
        assert!(
            memory - first < LEFTOVERS,
            "{first} bytes after the first round, {memory} after {seed} more"
        );
        seed += 1;
        if seed > 2 && Instant::now() >= until {
            break;
        }
    }
    stop.store(true, Ordering::Relaxed);
    behaving.await.unwrap();
}
