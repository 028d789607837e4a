//! Requests that are never finished: the memory of the server stays within its limit, and other clients are answered.

use std::time::Duration;

use service::{calls::limits::CallLimits, connect};
use tokio::task::JoinSet;
use tonic::Code;

use crate::{
    common::{agrees, clients, published, request, within},
    half_sent::send,
    process::Process,
};

const CHECK: &str = "/grpc.health.v1.Health/Check";
const EVALUATE: &str = "/minuet.v1.Evaluator/Evaluate";
const CONNECTIONS: usize = 8;

/// Sends `count` requests of which half arrives, over a few connections. Returns those that have not ended.
async fn send_halves(
    server: &Process,
    path: &'static str,
    count: usize,
    bytes: u32,
) -> JoinSet<tonic::Status> {
    let mut calls = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let channel = connect::channel(&server.address).unwrap();
        for _ in 0..count / CONNECTIONS {
            let channel = channel.clone();
            calls.spawn(async move { send(channel, path, bytes, bytes as usize / 2).await });
        }
    }
    calls
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_sent_requests_take_no_more_memory_than_the_limit() {
    let (store, layout, weights, _) = published().await;
    let server = Process::start(&store, &[]);
    server.ready().await;
    let peak = async || {
        // The figure is brought up to date every other second.
        tokio::time::sleep(Duration::from_millis(2_100)).await;
        server.page().await["process_peak_resident_memory_bytes"]
    };
    let before = peak().await;
    // Health needs no token: a request of more than a kibibyte is refused at its header.
    let mut calls = send_halves(&server, CHECK, 48, 8 << 20).await;
    while let Some(ended) = within(calls.join_next()).await {
        assert_eq!(ended.unwrap().code(), Code::OutOfRange);
    }
    let grown = peak().await - before;
    assert!(grown < 24e6, "{grown} bytes for health requests");

    // 768 MiB in all.
    let limit = CallLimits::default().request_bytes as f64;
    let mut calls = send_halves(&server, EVALUATE, 96, 16 << 20).await;
    let ended = within(calls.join_next()).await;
    let status = ended.unwrap().unwrap();
    assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
    let (mut client, _) = clients(&server.address);
    let asked = request(&layout, 1, 4, 3);
    let reply = within(client.evaluate(asked.clone())).await;
    assert!(agrees(&reply.unwrap().into_inner(), &weights, &layout, &asked));
    let grown = peak().await - before;
    println!("{:.0} MB more", grown / 1e6);
    assert!(grown < 1.25 * limit, "{grown} bytes");
    assert!(server.page().await["minuet_server_request_bytes"] <= limit);
    drop((calls, client));
    server.stop().await;
}
