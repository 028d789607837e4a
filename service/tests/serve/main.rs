//! Tests of serving over a real socket: health, reflection, draining with a time limit.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    missing_docs
)]

mod balance;
mod half_sent;
mod listener;
mod pki;
mod renewal;
mod requests;
mod tls;
mod tokens;
#[cfg(feature = "otlp")]
mod traces;

use std::{path::Path, sync::Arc, time::Duration};

use config::SecurityConfig;
use service::{
    connect::{
        self, Connector, Link,
        balance::{Pace, Resolve},
    },
    listener::ConnectionPolicy,
    security::methods::{Access, Method},
    serve::{self, Drained},
};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use tonic::Code;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};

const NAME: &str = "minuet.v1.Evaluator";

/// Time limit for a loaded machine; no test measures it.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Interval at which servers and clients of these tests read their files again.
const RENEWAL: Duration = Duration::from_millis(10);

/// Returns the rules of methods that every token may call.
fn any_token(_: &str) -> Method {
    Method::new(Access::AnyToken)
}

/// A server behind a policy, which answers health for `name`.
struct Behind {
    address: String,
    health: serve::Health,
    shutdown: CancellationToken,
    serving: JoinHandle<Drained>,
}

impl Drop for Behind {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// Returns the policy of plaintext on loopback.
fn plain() -> ConnectionPolicy {
    ConnectionPolicy::new(&SecurityConfig::default(), any_token).unwrap()
}

/// Starts a server behind a policy, which reads its files again all the time.
async fn behind(security: &SecurityConfig, name: &'static str) -> Behind {
    let mut policy = ConnectionPolicy::new(security, any_token).unwrap();
    policy.renewal = RENEWAL;
    serve_with_policy(policy, name).await
}

/// Returns a connector that resolves names with `resolver` and reads its files again all the time.
fn connector(security: &SecurityConfig, resolver: Arc<dyn Resolve>) -> Connector {
    let pace = Pace {
        resolve: RENEWAL,
        probe: RENEWAL,
    };
    Connector::new(security).with_resolver(resolver, pace)
}

/// Repeats calls until one succeeds, and returns how the others ended.
async fn until_ok<F: Future<Output = Result<(), Code>>>(call: impl Fn() -> F) -> Vec<Result<(), Code>> {
    until(Ok(()), call).await
}

/// Repeats calls until one ends as `expected`, and returns how the others ended.
async fn until<F: Future<Output = Result<(), Code>>>(
    expected: Result<(), Code>,
    call: impl Fn() -> F,
) -> Vec<Result<(), Code>> {
    let mut others = Vec::new();
    let calling = async {
        loop {
            let ended = call().await;
            if ended == expected {
                return;
            }
            others.push(ended);
            tokio::time::sleep(RENEWAL).await;
        }
    };
    tokio::time::timeout(TIMEOUT, calling).await.unwrap();
    others
}

/// Replaces a file in one step, so that no reader sees a part of it.
fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(&new, path).unwrap();
}

async fn serve_with_policy(policy: ConnectionPolicy, name: &'static str) -> Behind {
    let listener = serve::listen("127.0.0.1:0").await.unwrap();
    serve_on(listener, policy, name, Duration::ZERO).await
}

async fn serve_on(
    listener: TcpListener,
    policy: ConnectionPolicy,
    name: &'static str,
    drain: Duration,
) -> Behind {
    let address = listener.local_addr().unwrap().to_string();
    let (routes, health) = serve::standard_routes(&[name], &[]).await.unwrap();
    health.set_serving(true).await;
    let shutdown = CancellationToken::new();
    let serving = serve::serve_with(policy, routes, listener, health.clone(), shutdown.clone(), drain);
    Behind {
        address,
        health,
        shutdown,
        serving: tokio::spawn(async { serving.await.unwrap() }),
    }
}

/// Asks a server for the health of `name`.
async fn check(link: &Link, name: &str) -> Result<(), tonic::Status> {
    HealthClient::new(link.clone()).check(about(name)).await.map(drop)
}

fn about(service: &str) -> HealthCheckRequest {
    HealthCheckRequest {
        service: service.into(),
    }
}

/// Starts a server that lets open requests end for the time `drain`.
async fn start(drain: Duration) -> Behind {
    let listener = serve::listen("127.0.0.1:0").await.unwrap();
    serve_on(listener, plain(), NAME, drain).await
}

#[tokio::test]
async fn health_is_reported_for_the_process_and_each_service() {
    let mut server = start(Duration::from_secs(30)).await;
    let mut client = HealthClient::new(connect::channel(&server.address).unwrap());
    for (serving, expected) in [(false, ServingStatus::NotServing), (true, ServingStatus::Serving)] {
        server.health.set_serving(serving).await;
        for service in ["", NAME] {
            let status = client.check(about(service)).await.unwrap().into_inner().status();
            assert_eq!(status, expected, "{service}");
        }
    }
    let unknown = client.check(about("no.such.Service")).await.unwrap_err();
    assert_eq!(unknown.code(), tonic::Code::NotFound);
    drop(client);
    server.shutdown.cancel();
    assert_eq!((&mut server.serving).await.unwrap(), Drained::Completely);
}

#[tokio::test]
async fn an_open_stream_sees_the_shutdown_and_is_cut_at_the_time_limit() {
    let mut server = start(Duration::from_millis(200)).await;
    let mut client = HealthClient::new(connect::channel(&server.address).unwrap());
    let mut watched = client.watch(about("")).await.unwrap().into_inner();
    let first = watched.message().await.unwrap().unwrap();
    assert_eq!(first.status(), ServingStatus::Serving);
    server.shutdown.cancel();
    let second = watched.message().await.unwrap().unwrap();
    assert_eq!(second.status(), ServingStatus::NotServing);
    // The stream is still open, so without the time limit this would never end.
    assert_eq!((&mut server.serving).await.unwrap(), Drained::Cut);
}

#[tokio::test]
async fn reflection_lists_the_services() {
    let server = start(Duration::ZERO).await;
    let mut client = ServerReflectionClient::new(connect::channel(&server.address).unwrap());
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let replies = client
        .server_reflection_info(tokio_stream::once(request))
        .await
        .unwrap();
    let reply = replies.into_inner().message().await.unwrap().unwrap();
    let Some(MessageResponse::ListServicesResponse(list)) = reply.message_response else {
        panic!("{reply:?}");
    };
    let names: Vec<&str> = list.service.iter().map(|service| service.name.as_str()).collect();
    assert!(names.contains(&"grpc.health.v1.Health"), "{names:?}");
}

#[tokio::test]
async fn a_listen_error_names_the_address_in_use() {
    let first = serve::listen("127.0.0.1:0").await.unwrap();
    let address = first.local_addr().unwrap().to_string();
    let error = format!("{:#}", serve::listen(&address).await.unwrap_err());
    assert!(
        error.starts_with(&format!("cannot listen on {address}: ")),
        "{error}"
    );
}
