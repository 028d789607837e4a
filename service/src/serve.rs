//! Serving gRPC with the settings that all services share: health, reflection, and draining with a time limit.
//!
//! These functions return boxed futures. An async function is compiled again in each crate that awaits it, and these contain a
//! whole HTTP/2 server.

use std::{net::SocketAddr, time::Duration};

use anyhow::Context as _;
use futures::future::BoxFuture;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::{service::Routes, transport::Server};
use tonic_health::{ServingStatus, server::HealthReporter};

use crate::{connect::KEEP_ALIVE_TIMEOUT, listener::ConnectionPolicy, telemetry};

/// Time that the open streams of a connection get to end after the connection has reached its age limit.
const AGE_GRACE: Duration = Duration::from_secs(30);

/// HTTP/2 flow-control window of the requests of one stream, in bytes. The server holds at most this much of a request that no
/// handler reads.
const STREAM_WINDOW_BYTES: u32 = 512 << 10;

/// HTTP/2 flow-control window of the requests of one connection, in bytes.
const CONNECTION_WINDOW_BYTES: u32 = 2 << 20;

/// Largest size of the headers of a call, in bytes.
const HEADERS_BYTES: u32 = 8 << 10;

/// Time that requests in flight get when a process is asked to stop.
pub const DRAIN: Duration = Duration::from_secs(10);

/// Result of draining a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// All requests were answered and all streams ended.
    Completely,
    /// Some requests were still open at the time limit and were cut.
    Cut,
}

/// Returns a server builder with the settings that every service of Minuet shares.
fn server(policy: &ConnectionPolicy) -> Server {
    let server = Server::builder()
        .http2_keepalive_interval(Some(crate::connect::KEEP_ALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEP_ALIVE_TIMEOUT))
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(policy.max_streams)
        .http2_max_header_list_size(HEADERS_BYTES)
        .trace_fn(telemetry::call_span);
    match policy.max_connection_age {
        None => server,
        Some(age) => server.max_connection_age(age).max_connection_age_grace(AGE_GRACE),
    }
}

/// Listens on `address` (`host:port`; port 0 takes a free one).
///
/// # Errors
/// The address cannot be listened on.
pub async fn listen(address: &str) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address).await;
    listener.with_context(|| format!("cannot listen on {address}"))
}

/// Health of a process on `grpc.health.v1.Health`: of the process (service `""`) and of each of its services.
#[derive(Clone, Debug)]
pub struct Health {
    reporter: HealthReporter,
    names: Vec<&'static str>,
    /// Routes of the health service alone.
    alone: Routes,
}

impl Health {
    /// Sets the status of the process and all its services to SERVING or NOT_SERVING.
    pub async fn set_serving(&self, serving: bool) {
        let status = match serving {
            true => ServingStatus::Serving,
            false => ServingStatus::NotServing,
        };
        for name in &self.names {
            self.reporter.set_service_status(name, status).await;
        }
    }
}

/// Returns routes with health for `names` (the services' full names, e.g. `<ReplayStoreServer<Store> as
/// NamedService>::NAME`), and reflection (v1 and v1alpha) over `descriptors`, encoded file descriptor sets. Add the services
/// to the routes. Health is NOT_SERVING until [`Health::set_serving`].
///
/// # Errors
/// The descriptors are damaged.
pub fn standard_routes<'a>(
    names: &'a [&'static str],
    descriptors: &'a [&'static [u8]],
) -> BoxFuture<'a, anyhow::Result<(Routes, Health)>> {
    Box::pin(async move {
        let (reporter, health_service) = tonic_health::server::health_reporter();
        let mut all_names = vec![""];
        all_names.extend_from_slice(names);
        let health = Health {
            reporter,
            names: all_names,
            alone: Routes::new(health_service.clone()),
        };
        health.set_serving(false).await;
        let reflection = || {
            descriptors.iter().fold(
                tonic_reflection::server::Builder::configure()
                    .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET),
                |builder, set| builder.register_encoded_file_descriptor_set(set),
            )
        };
        let routes = Routes::new(health_service)
            .add_service(reflection().build_v1()?)
            .add_service(reflection().build_v1alpha()?);
        Ok((routes, health))
    })
}

/// Serves the connections that `policy` accepts until `shutdown`. Then health is NOT_SERVING, no connection is accepted, and
/// open requests get the time `drain` to end. Long-lived streams must end themselves on `shutdown`: the transport waits for
/// them, and cuts them after `drain`.
///
/// # Errors
/// The transport fails, or the policy does not allow this address.
pub fn serve_with(
    policy: ConnectionPolicy,
    routes: Routes,
    listener: TcpListener,
    health: Health,
    shutdown: CancellationToken,
    drain: Duration,
) -> BoxFuture<'static, anyhow::Result<Drained>> {
    Box::pin(async move {
        policy.check(listener.local_addr()?)?;
        let stop_serving = {
            let shutdown = shutdown.clone();
            async move {
                shutdown.cancelled().await;
                health.set_serving(false).await;
            }
        };
        let serving = server(&policy)
            .layer(policy.layer())
            .add_routes(routes)
            .serve_with_incoming_shutdown(policy.connections(listener), stop_serving);
        let time_is_up = async {
            shutdown.cancelled().await;
            tokio::time::sleep(drain).await;
        };
        tokio::select! {
            served = serving => served.map(|()| Drained::Completely).context("the gRPC transport failed"),
            () = time_is_up => Ok(Drained::Cut),
        }
    })
}

/// Serves health alone on `address`, for a role without a service. The connection is plaintext, because probes do not speak
/// TLS. Health is SERVING until `shutdown`.
///
/// # Errors
/// The address cannot be listened on. Serving continues in a task of its own.
pub fn serve_health(address: &str, shutdown: CancellationToken) -> BoxFuture<'_, anyhow::Result<SocketAddr>> {
    Box::pin(async move {
        let (_, health) = standard_routes(&[], &[]).await?;
        health.set_serving(true).await;
        serve_health_beside(address, health, shutdown).await
    })
}

/// Serves `health` on a second, plaintext `address`, for probes that cannot reach the service because of its TLS.
///
/// # Errors
/// The address cannot be listened on. Serving continues in a task of its own.
pub fn serve_health_beside(
    address: &str,
    health: Health,
    shutdown: CancellationToken,
) -> BoxFuture<'_, anyhow::Result<SocketAddr>> {
    Box::pin(async move {
        let listener = listen(address).await?;
        let at = listener.local_addr()?;
        let (policy, routes) = (ConnectionPolicy::plaintext()?, health.alone.clone());
        tokio::spawn(async move {
            let drain = Duration::from_secs(1);
            if let Err(error) = serve_with(policy, routes, listener, health, shutdown, drain).await {
                tracing::error!(error = %format!("{error:#}"), "the health service ended");
            }
        });
        Ok(at)
    })
}
