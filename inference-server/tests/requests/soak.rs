//! Soak test: 200 clients send random bytes, stall, cancel and disconnect. The server's memory must stay flat, its queue must be empty
//! afterwards, and a well-behaved client must be answered meanwhile.
//!
//! A short form is part of the tests; `make soak` runs it for `MINUET_SOAK_SECONDS`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    common::{Store, agrees, chess, clients, file, infer_request, published, request, tower, until, within},
    process::Process,
    rogue::RogueClient,
};
use games::RowLayout;
use inference_server::intake::memory::CONNECTION_BYTES;
use onnx::{Input, TowerWeights};
use proto::inference::ModelStreamInferResponse;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinSet,
};

const CLIENTS: u64 = 200;
/// Number of actions of each client in a round.
const EACH: usize = 3;
/// Rounds in which the allocator and the runtime take what they keep.
const WARM_UP: usize = 12;
/// Rounds after those, at least. Holes in the heap take some two megabytes before a leak makes the process grow, so a leak of 100 KB
/// in each round needs that many to be seen.
const MEASURED: usize = 60;
/// Largest growth of the memory in a round, in bytes. Measured: at most 2 KB without a leak, at least 56 KB with one of 109 KB.
const GROWTH: f64 = 30e3;

/// Returns the growth of the memory in a round, in bytes: from the median of the first third of the rounds to that of the second, or
/// from the second to the third, whichever is less. A leak raises both. Without one most rounds leave the very same memory, some leave a
/// megabyte or two until the next one, and a single step up stays in one of the two.
fn growth(memory: &[f64]) -> f64 {
    let third = memory.len() / 3;
    let median = |number: usize| {
        let mut rounds = memory[number * third..(number + 1) * third].to_vec();
        rounds.sort_by(f64::total_cmp);
        rounds[third / 2]
    };
    let [first, second, last] = [0, 1, 2].map(median);
    (second - first).min(last - second) / third as f64
}

#[test]
fn a_leak_of_100_kb_in_each_round_is_found_and_noise_is_not() {
    let mut draws = ChaCha8Rng::seed_from_u64(1);
    for rounds in [MEASURED, 200] {
        for _ in 0..100 {
            // Some rounds leave more memory until the next one, and once the heap takes a step.
            let step = draws.random_range(0..rounds);
            let flat: Vec<f64> = (0..rounds)
                .map(|round| {
                    let left = f64::from(draws.random_bool(0.1)) * draws.random_range(0.0..2.5e6);
                    58.4e6 + left + if round < step { 0.0 } else { 1.3e6 }
                })
                .collect();
            assert!(growth(&flat) < GROWTH, "{flat:?}");
            let leaking: Vec<f64> = (0..)
                .zip(&flat)
                .map(|(round, flat)| flat + 1e5 * f64::from(round))
                .collect();
            assert!(growth(&leaking) > GROWTH, "{leaking:?}");
        }
    }
}

/// Waits until the server has only one connection, one stream and an empty queue. Returns its memory in bytes.
async fn settled_memory(server: &Process) -> f64 {
    until(async || {
        let page = server.page().await;
        let left = |name: &str| page.get(name).copied().unwrap_or_default();
        left("minuet_inference_queue_positions") == 0.0
            && left("minuet_inference_streams") <= 1.0
            && left("minuet_inference_unread_bytes") <= 64e3
            && left("minuet_server_connections") <= 2.0
    })
    .await;
    server.memory()
}

/// Sends requests until `stop`; every answer must be correct.
async fn behave(
    address: String,
    layout: RowLayout,
    weights: TowerWeights,
    answered: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
) {
    let (mut client, _) = clients(&address);
    while !stop.load(Ordering::Relaxed) {
        let number = answered.load(Ordering::Relaxed);
        let asked = request(&layout, number, 1 + number as usize % 4, 3);
        match within(client.evaluate(asked.clone())).await {
            Ok(reply) => {
                assert!(
                    agrees(&reply.into_inner(), &weights, &layout, &asked),
                    "request {number}"
                );
                answered.fetch_add(1, Ordering::Relaxed);
            }
            // The other clients may fill the queue; then the request is refused at once and sent again.
            Err(status) => assert_eq!(status.code(), tonic::Code::ResourceExhausted, "{status:?}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Lets all clients misbehave at the same time, then disconnect.
async fn round(seed: u64, address: &str, layout: &RowLayout) {
    let mut rogues = JoinSet::new();
    for client in 0..CLIENTS {
        let rogue = RogueClient::new(seed << 32 | client, address, layout);
        rogues.spawn(rogue.misbehave(EACH));
    }
    rogues.join_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_clients_that_misbehave_leave_no_trace() {
    let (store, layout, weights, _) = published().await;
    // A small cache, because filling a large one would look like a leak.
    let server = Process::start(&store, &["--set", "inference.cache_mib=1"]);
    server.ready().await;

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
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(0));
    let mut memory: Vec<f64> = Vec::new();
    while memory.len() < WARM_UP + MEASURED || Instant::now() < end {
        let before = answered.load(Ordering::Relaxed);
        round(memory.len() as u64, &server.address, &layout).await;
        memory.push(settled_memory(&server).await);
        // The well-behaved client is answered in every round, however short the round is.
        until(async || answered.load(Ordering::Relaxed) > before).await;
        let since = answered.load(Ordering::Relaxed) - before;
        println!(
            "round {}: {:.2} MB, {since} answers",
            memory.len(),
            memory[memory.len() - 1] / 1e6
        );
    }
    let grown = growth(&memory[WARM_UP..]);
    println!("{:.1} KB more in a round", grown / 1e3);
    assert!(grown < GROWTH, "{grown} bytes more in each round: {memory:?}");
    stop.store(true, Ordering::Relaxed);
    behaving.await.unwrap();
}

/// A client that requests half a gigabyte of logits on one stream and reads none.
struct NeverReads {
    runtime: Option<Runtime>,
    _replies: tonic::Streaming<ModelStreamInferResponse>,
}

impl NeverReads {
    fn start(address: &str, layout: &RowLayout) -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let asked = infer_request(layout, "chess", 1, 400);
        let asked = tokio_stream::iter(std::iter::repeat_n(asked, 64));
        let replies = runtime.block_on(async {
            let (_, mut client) = clients(address);
            client.model_stream_infer(asked).await.unwrap().into_inner()
        });
        Self {
            runtime: Some(runtime),
            _replies: replies,
        }
    }
}

impl Drop for NeverReads {
    /// Ends the connection, as the death of the client's process does.
    fn drop(&mut self) {
        self.runtime.take().unwrap().shutdown_background();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_are_never_read_take_little_memory() {
    let (store, layout, weights, _) = published().await;
    let (chess, large) = (Store::new(), chess());
    let file = file(&tower(&large, 1), &large, Input::Rows);
    chess.publish_latest(file, &large, 1).await;
    let source = format!("inference.sources=[\"chess={}\"]", chess.folder.path().display());
    let server = Process::start(&store, &["--set", &source, "--set", "inference.max_queue=65536"]);
    server.ready().await;
    server.has_tried("chess").await;
    let unread = async || server.page().await["minuet_inference_unread_bytes"];
    let before = server.memory();
    let client_that_reads_nothing =
        tokio::task::block_in_place(|| NeverReads::start(&server.address, &large));

    // An answer has 7.5 MB: no further one fits.
    let full = CONNECTION_BYTES as f64;
    until(async || unread().await >= full - 8e6).await;
    let (mut client, _) = clients(&server.address);
    for number in 0..50 {
        let asked = request(&layout, number, 4, 3);
        let reply = within(client.evaluate(asked.clone())).await;
        assert!(agrees(&reply.unwrap().into_inner(), &weights, &layout, &asked));
        assert!(unread().await <= full);
    }
    // Twice the limit, because an answer is copied once to be sent.
    let grown = server.memory() - before;
    println!("{:.1} MB more", grown / 1e6);
    assert!(grown < 4.0 * full, "{grown} bytes");
    drop(client_that_reads_nothing);
    until(async || unread().await == 0.0).await;
    drop(client);
    server.stop().await;
}
