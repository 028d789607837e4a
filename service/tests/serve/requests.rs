//! Tests of the limits of requests: size, time, and memory of all together.

use std::time::Duration;

use metrics_exporter_prometheus::PrometheusBuilder;
use service::{calls::limits::CallLimits, connect};
use tokio::task::JoinSet;
use tonic::Code;
use tonic_health::pb::health_client::HealthClient;

use crate::{Behind, NAME, TIMEOUT, about, half_sent::send, plain, serve_with_policy};

const CHECK: &str = "/grpc.health.v1.Health/Check";
const REFLECT: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

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
    let figure = |name: &str| -> f64 {
        let page = page.render();
        let line = page.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default().trim().parse().unwrap_or_default()
    };
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
    // 64 requests hold 3.25 MiB beyond what each may have for nothing, so most of them are refused.
    for _ in 0..40 {
        let ended = tokio::time::timeout(TIMEOUT, calls.join_next()).await.unwrap();
        let status = ended.unwrap().unwrap();
        assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
        assert!(status.message().contains("1048576 bytes"), "{status:?}");
        assert!(figure("minuet_server_request_bytes ") <= limit as f64);
    }
    assert!(figure("minuet_server_requests_refused_total{reason=\"bytes\"} ") >= 40.0);
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
        calls: 4,
        open_calls: 2,
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
