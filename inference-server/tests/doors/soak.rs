//! 200 clients that connect, send rubbish, stall, cancel and vanish leave a server healthy: its memory is flat, nothing of
//! theirs is left in its queue, and who behaves is answered all the while.
//!
//! A short form is part of the tests; `make soak` goes on for `MINUET_SOAK_SECONDS`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    common::{PATIENCE, Store, agrees, chess_like, file, question, request, served::published, tower},
    process::Process,
    rogue::Rogue,
};
use games::RowLayout;
use inference_server::requests::memory::CONNECTION_BYTES;
use onnx::{Input, TowerWeights};
use proto::{
    inference::{ModelStreamInferResponse, grpc_inference_service_client::GrpcInferenceServiceClient},
    v1::evaluator_client::EvaluatorClient,
};
use service::connect;
use tokio::task::JoinSet;

const CLIENTS: u64 = 200;
/// Things that each client does in a round.
const EACH: usize = 3;
/// Rounds in which the allocator and the runtime take what they keep.
const WARM_UP: usize = 3;
/// Rounds after those, at least.
const MEASURED: usize = 6;
/// A leak adds to the memory in every round, so in most rounds memory grows by less than this, in bytes: that is 1.7 KB for
/// each misdeed. What the allocator takes it takes once.
const GROWTH: f64 = 1e6;
/// And never by more than this in all.
const LEFTOVERS: f64 = 48e6;

/// Waits until nothing of the clients is left in the server, but for one connection and one stream; then its memory, in bytes.
async fn settled(server: &Process) -> f64 {
    let settling = async {
        loop {
            let page = server.page().await;
            let left = |name: &str| page.get(name).copied().unwrap_or_default();
            let is_settled = left("minuet_inference_queue_positions") == 0.0
                && left("minuet_inference_streams") <= 1.0
                && left("minuet_inference_unread_bytes") <= 64e3
                && left("minuet_server_connections") <= 2.0;
            if is_settled {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    if tokio::time::timeout(PATIENCE, settling).await.is_err() {
        panic!("something is left: {:#?}", server.page().await);
    }
    // The figure is brought up to date every other second.
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    server.page().await["process_resident_memory_bytes"]
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
    // A cache that is full soon: filling it is no leak.
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
    let until = Instant::now() + Duration::from_secs(seconds.unwrap_or(0));
    let mut memory: Vec<f64> = Vec::new();
    while memory.len() <= WARM_UP + MEASURED || Instant::now() < until {
        let before = answered.load(Ordering::Relaxed);
        round(memory.len() as u64, &server.address, &layout).await;
        memory.push(settled(&server).await);
        let since = answered.load(Ordering::Relaxed) - before;
        println!(
            "round {}: {:.2} MB, {since} answers",
            memory.len(),
            memory[memory.len() - 1] / 1e6
        );
        assert!(
            since > 0,
            "who behaves was not answered in round {}",
            memory.len()
        );
    }
    let measured = &memory[WARM_UP..];
    let mut growth: Vec<f64> = measured.windows(2).map(|pair| pair[1] - pair[0]).collect();
    growth.sort_by(f64::total_cmp);
    assert!(growth[growth.len() / 2] < GROWTH, "memory by rounds: {memory:?}");
    assert!(
        measured[measured.len() - 1] - measured[0] < LEFTOVERS,
        "memory by rounds: {memory:?}"
    );
    stop.store(true, Ordering::Relaxed);
    behaving.await.unwrap();
}

/// Asks for half a gigabyte of logits on one connection and reads none of them. What it asks is less than HTTP/2's window, so
/// all of it is sent, and dropping the stream is seen at the other end.
async fn never_reads(address: &str, layout: &RowLayout) -> tonic::Streaming<ModelStreamInferResponse> {
    let asked = question(layout, "chess", 1, 400);
    let mut client = GrpcInferenceServiceClient::new(connect::channel(address).unwrap());
    let asked = tokio_stream::iter(std::iter::repeat_n(asked, 64));
    client.model_stream_infer(asked).await.unwrap().into_inner()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_for_much_and_never_reads_is_given_little_memory() {
    let (store, layout, weights, _) = published().await;
    let (chess, large) = (Store::new(), chess_like());
    let file = file(&tower(&large, 1), &large, Input::Rows);
    chess.publish_latest(file, &large, 1).await;
    let source = format!("inference.sources=[\"chess={}\"]", chess.folder.path().display());
    let server = Process::start(&store, &["--set", &source, "--set", "inference.max_queue=65536"]);
    server.ready().await;
    let memory = async || server.page().await["process_resident_memory_bytes"];
    let unread = async || server.page().await["minuet_inference_unread_bytes"];
    let before = memory().await;
    let replies = never_reads(&server.address, &large).await;

    // An answer is 7.5 MB: no further one fits.
    let full = CONNECTION_BYTES as f64;
    let filling = async {
        while unread().await < full - 8e6 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, filling).await.unwrap();
    let mut client = EvaluatorClient::new(connect::channel(&server.address).unwrap());
    for number in 0..50 {
        let asked = request(&layout, number, 4, 3);
        let reply = tokio::time::timeout(PATIENCE, client.evaluate(asked.clone()))
            .await
            .unwrap();
        assert!(agrees(&reply.unwrap().into_inner(), &weights, &layout, &asked));
        assert!(unread().await <= full);
    }
    // The figure is brought up to date every other second. Twice the limit: an answer is written down once more to be sent.
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    let grown = memory().await - before;
    println!("{:.1} MB more", grown / 1e6);
    assert!(grown < 4.0 * full, "{grown} bytes");
    drop(replies);
    let freed = async {
        while unread().await > 0.0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, freed).await.unwrap();
    drop(client);
    server.stop().await;
}
