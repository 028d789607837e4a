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

use games::RowLayout;
use onnx::TowerWeights;
use proto::v1::evaluator_client::EvaluatorClient;
use service::connect;
use tokio::task::JoinSet;

use crate::{
    common::{PATIENCE, agrees, request, served::published},
    process::Process,
    rogue::Rogue,
};

const CLIENTS: u64 = 200;
/// Things that each client does in a round.
const EACH: usize = 3;
/// Memory that may be taken and kept after the first round: the allocator's leftovers, not a leak, which every round
/// would add to.
const LEFTOVERS: f64 = 48e6;

/// Waits until nothing of the clients is left in the server, but for one connection and one stream; then its memory, in bytes.
async fn settled(server: &Process) -> f64 {
    let settling = async {
        loop {
            let page = server.page().await;
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
    let server = Process::start(&store, &[]);
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
    round(0, &server.address, &layout).await;
    let first = settled(&server).await;
    let mut seed = 1;
    loop {
        let before = answered.load(Ordering::Relaxed);
        round(seed, &server.address, &layout).await;
        let memory = settled(&server).await;
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
