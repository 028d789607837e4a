//! A server that can be killed like a process, at any moment and with all its connections.

use std::{fmt, net::SocketAddr, time::Duration};

use service::{
    listener::ConnectionPolicy,
    security::methods::{Access, Method},
};
use tokio::{
    net::{TcpListener, TcpSocket},
    runtime::Runtime,
};
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

/// A gRPC server in a runtime of its own.
pub struct Process {
    address: SocketAddr,
    runtime: Option<Runtime>,
}

impl Process {
    /// Serves `routes` on a free port.
    pub async fn start(routes: Routes) -> Self {
        Self::listen("127.0.0.1:0".parse().unwrap(), routes).await
    }

    /// Serves `routes` where a killed server was.
    pub async fn start_at(reserved: ReservedAddress, routes: Routes) -> Self {
        Self::listen(reserved.address, routes).await
    }

    async fn listen(address: SocketAddr, routes: Routes) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let serving = runtime.spawn(async move {
            let listener = TcpListener::bind(address).await.unwrap();
            let address = listener.local_addr().unwrap();
            tokio::spawn(async move {
                let (_, health) = service::serve::standard_routes(&[], &[]).await.unwrap();
                let never = CancellationToken::new();
                let security = config::SecurityConfig::default();
                let method = |_: &str| Method::new(Access::AnyToken);
                let policy = ConnectionPolicy::new(&security, method).unwrap();
                service::serve::serve_with(policy, routes, listener, health, never, Duration::ZERO)
                    .await
                    .unwrap();
            });
            address
        });
        Self {
            address: serving.await.unwrap(),
            runtime: Some(runtime),
        }
    }

    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Kills the server. Connections to its address are refused afterwards.
    pub async fn kill(mut self) -> ReservedAddress {
        let runtime = self.runtime.take().unwrap();
        tokio::task::spawn_blocking(move || runtime.shutdown_timeout(Duration::from_secs(10)))
            .await
            .unwrap();
        ReservedAddress::new(self.address)
    }
}

/// The address of a killed server, on which nobody listens. The port is reserved: another test cannot take it, and a client that
/// tries to connect again and again cannot be given it as its own port, which would connect the client to itself.
pub struct ReservedAddress {
    address: SocketAddr,
    _bound: TcpSocket,
}

impl ReservedAddress {
    fn new(address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        // A listener may take the port together with this socket, which does not listen.
        socket.set_reuseaddr(true).unwrap();
        socket.bind(address).unwrap();
        Self {
            address,
            _bound: socket,
        }
    }
}

impl fmt::Display for ReservedAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(out)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
