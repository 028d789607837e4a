//! Serving gRPC: the same settings everywhere, health, reflection, and draining that ends.
//!
//! What is awaited here is boxed: an async function is compiled anew in each crate that awaits it, and these hold a whole
//! HTTP/2 server.

use std::{io, net::SocketAddr, time::Duration};

use futures::future::BoxFuture;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::{service::Routes, transport::Server};
use tonic_health::{ServingStatus, server::HealthReporter};

use crate::{
    connect::{CONNECTION_WINDOW_BYTES, KEEP_ALIVE_TIMEOUT, STREAM_WINDOW_BYTES},
    listener::Door,
    security::SecurityError,
    telemetry,
};
use config::SecurityConfig;

/// Once its age is reached, a connection's open streams get this long to end.
const AGE_GRACE: Duration = Duration::from_secs(30);

/// Why a service stopped serving.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {reason}")]
    Listen {
        /// The address.
        address: String,
        /// Why.
        reason: io::Error,
    },
    /// Who may come in cannot be said, or plaintext would be spoken where others can listen.
    #[error(transparent)]
    Security(#[from] SecurityError),
    /// The descriptors given for reflection are damaged.
    #[error("cannot describe the services for reflection")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// The transport failed.
    #[error("the gRPC transport failed")]
    Transport(#[from] tonic::transport::Error),
}

/// How a service ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// All requests were answered and all streams ended.
    Completely,
    /// Some were still open when the time was up; they were cut.
    Cut,
}

/// A server builder with the settings that every service of Minuet shares.
fn server(door: &Door) -> Server {
    let server = Server::builder()
        .http2_keepalive_interval(Some(door.keep_alive))
        .http2_keepalive_timeout(Some(KEEP_ALIVE_TIMEOUT))
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(door.max_streams)
        .trace_fn(telemetry::call_span);
    match door.max_connection_age {
        None => server,
        Some(age) => server.max_connection_age(age).max_connection_age_grace(AGE_GRACE),
    }
}

/// Listens on `address` (`host:port`; port 0 takes a free one).
///
/// # Errors
/// [`ServeError::Listen`].
pub async fn listen(address: &str) -> Result<TcpListener, ServeError> {
    TcpListener::bind(address)
        .await
        .map_err(|reason| ServeError::Listen {
            address: address.into(),
            reason,
        })
}

/// What a process says about itself on `grpc.health.v1.Health`: for itself (service `""`) and for each of its services.
#[derive(Clone, Debug)]
pub struct Health {
    reporter: HealthReporter,
    names: Vec<&'static str>,
    /// The health service and nothing else.
    alone: Routes,
}

impl Health {
    /// Says SERVING or NOT_SERVING from now on, for everything here.
    pub async fn set_serving(&self, serving: bool) {
        let status = if serving {
            ServingStatus::Serving
        } else {
            ServingStatus::NotServing
        };
        for name in &self.names {
            self.reporter.set_service_status(name, status).await;
        }
    }
}

/// Health for `names` (the services' full names, e.g. `<ReplayStoreServer<Store> as NamedService>::NAME`), and
/// reflection (v1 and v1alpha) over `descriptors`, encoded file descriptor sets. Add the services to the routes.
/// Health says NOT_SERVING until it is told otherwise.
///
/// # Errors
/// [`ServeError::Reflection`] for damaged descriptors.
pub fn standard_routes<'a>(
    names: &'a [&'static str],
    descriptors: &'a [&'static [u8]],
) -> BoxFuture<'a, Result<(Routes, Health), ServeError>> {
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

/// Serves behind a door as `[security]` has it by default: plaintext on loopback, no tokens. See [`serve_behind`].
///
/// # Errors
/// As [`serve_behind`].
pub async fn serve(
    routes: Routes,
    listener: TcpListener,
    health: Health,
    shutdown: CancellationToken,
    drain: Duration,
) -> Result<Drained, ServeError> {
    let door = Door::new(&SecurityConfig::default(), |_| None)?;
    serve_behind(door, routes, listener, health, shutdown, drain).await
}

/// Serves whom `door` lets in until `shutdown`; then says NOT_SERVING, takes no new connections and gives what is open `drain`
/// to end. Long-lived streams must end themselves on `shutdown`: the transport waits for them, and cuts them after `drain`.
///
/// # Errors
/// [`ServeError::Transport`], and [`ServeError::Security`] where the door may not be opened at this address.
pub fn serve_behind(
    door: Door,
    routes: Routes,
    listener: TcpListener,
    health: Health,
    shutdown: CancellationToken,
    drain: Duration,
) -> BoxFuture<'static, Result<Drained, ServeError>> {
    Box::pin(async move {
        let address = listener.local_addr().map_err(|reason| ServeError::Listen {
            address: "the listener".into(),
            reason,
        })?;
        door.check(address)?;
        let asked_to_stop = {
            let shutdown = shutdown.clone();
            async move {
                shutdown.cancelled().await;
                health.set_serving(false).await;
            }
        };
        let serving = server(&door)
            .layer(door.guard())
            .add_routes(routes)
            .serve_with_incoming_shutdown(door.connections(listener), asked_to_stop);
        let time_is_up = async {
            shutdown.cancelled().await;
            tokio::time::sleep(drain).await;
        };
        tokio::select! {
            served = serving => served.map(|()| Drained::Completely).map_err(ServeError::from),
            () = time_is_up => Ok(Drained::Cut),
        }
    })
}

/// Serves health alone on `address`, for a role that has no service of its own, in plaintext: probes know no TLS. SERVING
/// until `shutdown`.
///
/// # Errors
/// [`ServeError::Listen`] if the address cannot be listened on; serving goes on in a task of its own.
pub fn serve_health(
    address: &str,
    shutdown: CancellationToken,
) -> BoxFuture<'_, Result<SocketAddr, ServeError>> {
    Box::pin(async move {
        let (_, health) = standard_routes(&[], &[]).await?;
        health.set_serving(true).await;
        serve_health_beside(address, health, shutdown).await
    })
}

/// Says on `address` too what `health` says, in plaintext, beside a service that probes cannot reach because of its TLS.
///
/// # Errors
/// [`ServeError::Listen`] if the address cannot be listened on; serving goes on in a task of its own.
pub fn serve_health_beside(
    address: &str,
    health: Health,
    shutdown: CancellationToken,
) -> BoxFuture<'_, Result<SocketAddr, ServeError>> {
    Box::pin(async move {
        let listener = listen(address).await?;
        let at = listener.local_addr().map_err(|reason| ServeError::Listen {
            address: address.into(),
            reason,
        })?;
        let routes = health.alone.clone();
        tokio::spawn(async move {
            let drain = Duration::from_secs(1);
            let served = serve_behind(Door::open(), routes, listener, health, shutdown, drain).await;
            if let Err(error) = served {
                tracing::error!(%error, "the health service ended");
            }
        });
        Ok(at)
    })
}
