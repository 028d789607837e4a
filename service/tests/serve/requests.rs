//! Tests of the limits of requests and replies: size, time, number, memory, and the share of one client.

use std::time::Duration;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use service::{calls::limits::CallLimits, connect, listener::ConnectionPolicy};
use tokio::task::JoinSet;
use tonic::{Code, transport::Endpoint};
use tonic_health::pb::health_client::HealthClient;

use crate::{Behind, NAME, TIMEOUT, about, half_sent::send, plain, serve_with_policy};

const CHECK: &str = "/grpc.health.v1.Health/Check";
const REFLECT: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

/// Returns the value of a metric without labels, 0 if there is none.
fn figure(page: &PrometheusHandle, name: &str) -> f64 {
    let page = page.render();
    let line = page.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_default().trim().parse().unwrap_or_default()
}

async fn limited(limits: CallLimits) -> Behind {
    let mut policy = plain();
    policy.call_limits = limits;
    serve_with_policy(policy, NAME).await
}

#[tokio::test]
async fn a_health_request_has_at_most_a_kibibyte_and_a_time_limit() {
    let server = limited(CallLimits {
        request_time: Duration::from_millis(300),
        ..CallLimits::default()
    })
    .await;
    let channel = connect::channel(&server.address).unwrap();
    let ends = async |length, sent| {
        let ending = send(channel.clone(), CHECK, length, sent);
        let ended = tokio::time::timeout(TIMEOUT, ending).await.unwrap();
        (ended.code(), ended.message().to_owned())
    };
    // Refused by its header, whatever follows.
    let (code, reason) = ends(4 << 20, 0).await;
    assert_eq!(code, Code::OutOfRange, "{reason}");
    assert!(
        reason.contains("4194304 bytes") && reason.contains("at most 1024"),
        "{reason}"
    );
    let (code, reason) = ends(1000, 500).await;
    assert_eq!(code, Code::DeadlineExceeded, "{reason}");
    // Complete, but without its end: the call still waits for it.
    let (code, _) = ends(0, 0).await;
    assert_eq!(code, Code::DeadlineExceeded);
    let reflecting = send(channel.clone(), REFLECT, 1000, 500);
    let ended = tokio::time::timeout(TIMEOUT, reflecting).await.unwrap();
    assert_eq!(ended.code(), Code::DeadlineExceeded, "{ended:?}");
    let mut client = HealthClient::new(channel.clone());
    client.check(about(NAME)).await.unwrap();
}

#[tokio::test]
async fn half_sent_requests_share_a_limit_of_bytes() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let page = recorder.handle();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let figure = |name: &str| figure(&page, name);
    let limit = 1 << 20;
    let server = limited(CallLimits {
        request_bytes: limit,
        request_time: 10 * TIMEOUT,
        ..CallLimits::default()
    })
    .await;
    let mut calls = JoinSet::new();
    for _ in 0..64 {
        let channel = connect::channel(&server.address).unwrap();
        calls.spawn(send(channel, REFLECT, 64 << 10, 60 << 10));
    }
    // 64 requests hold 3.25 MiB beyond what each may have for nothing. The address has half of the limit, so most of them are refused.
    for _ in 0..50 {
        let ended = tokio::time::timeout(TIMEOUT, calls.join_next()).await.unwrap();
        let status = ended.unwrap().unwrap();
        assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
        assert!(status.message().contains("1048576 bytes"), "{status:?}");
        let most = limit / 2 + (60 << 10);
        assert!(figure("minuet_server_request_bytes ") <= most as f64);
    }
    assert!(figure("minuet_server_requests_refused_total{reason=\"bytes\"} ") >= 50.0);
    assert!(figure("minuet_server_request_bytes ") > 0.0);
    calls.shutdown().await;
    let freed = async {
        while figure("minuet_server_request_bytes ") + figure("minuet_server_calls ") > 0.0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, freed).await.unwrap();
}

#[tokio::test]
async fn calls_beyond_the_limit_are_refused() {
    let server = limited(CallLimits {
        open_calls: 8,
        ..CallLimits::default()
    })
    .await;
    let mut client = HealthClient::new(connect::channel(&server.address).unwrap());
    let first = client.watch(about(NAME)).await.unwrap();
    let _second = client.watch(about(NAME)).await.unwrap();
    let refused = client.check(about(NAME)).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    drop(first);
    let again = async {
        while client.check(about(NAME)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, again).await.unwrap();
}

/// One client cannot take the calls of all: an address has half of them, and each connection a few of its own.
#[tokio::test]
async fn a_client_is_served_while_another_of_its_address_holds_all_calls_that_it_can() {
    let server = limited(CallLimits {
        calls: 64,
        open_calls: 32,
        request_time: 10 * TIMEOUT,
        ..CallLimits::default()
    })
    .await;
    let mut held = JoinSet::new();
    let mut watching = Vec::new();
    for _ in 0..8 {
        let channel = connect::channel(&server.address).unwrap();
        for _ in 0..10 {
            held.spawn(send(channel.clone(), REFLECT, 1000, 500));
        }
        let mut client = HealthClient::new(channel);
        for _ in 0..10 {
            watching.push(client.watch(about(NAME)).await);
        }
    }
    let ended = tokio::time::timeout(TIMEOUT, held.join_next()).await.unwrap();
    assert_eq!(ended.unwrap().unwrap().code(), Code::ResourceExhausted);
    assert!(watching.iter().any(Result::is_err));
    for _ in 0..20 {
        let mut client = HealthClient::new(connect::channel(&server.address).unwrap());
        client.check(about(NAME)).await.unwrap();
    }
}

/// A closed window leaves a reply of a few bytes unsent as well as one of many.
#[tokio::test]
async fn a_connection_of_which_a_reply_is_not_read_is_closed_and_its_memory_is_free() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let page = recorder.handle();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let server = limited(CallLimits {
        reply_time: Duration::from_millis(200),
        ..CallLimits::default()
    })
    .await;
    let mut other = HealthClient::new(connect::channel(&server.address).unwrap());
    let mut read = other.watch(about(NAME)).await.unwrap().into_inner();
    read.message().await.unwrap().unwrap();
    let endpoint = Endpoint::new(format!("http://{}", server.address)).unwrap();
    let narrow = endpoint.initial_stream_window_size(1).connect().await.unwrap();
    let mut unread = HealthClient::new(narrow);
    let mut stream = unread.watch(about(NAME)).await.unwrap().into_inner();
    assert!(figure(&page, "minuet_server_reply_bytes ") > 0.0);
    let closed = async {
        while figure(&page, "minuet_server_unread_connections_closed_total ") < 1.0
            || figure(&page, "minuet_server_reply_bytes ") > 0.0
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, closed).await.unwrap();
    assert!(stream.message().await.is_err());
    // A stream whose replies are read stays open, however long nothing comes.
    server.health.set_serving(false).await;
    read.message().await.unwrap().unwrap();
}

#[tokio::test]
async fn a_probe_is_answered_while_another_client_watches_on_all_connections() {
    let server = serve_with_policy(ConnectionPolicy::plaintext().unwrap(), NAME).await;
    let mut watching = Vec::new();
    for _ in 0..100 {
        let mut client = HealthClient::new(connect::channel(&server.address).unwrap());
        watching.push(client.watch(about(NAME)).await.unwrap());
    }
    let mut probe = HealthClient::new(connect::channel(&server.address).unwrap());
    probe.check(about(NAME)).await.unwrap();
}
