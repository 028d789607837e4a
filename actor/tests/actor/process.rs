//! A server that can be killed like a process, at any moment and with all its connections.

use std::{net::SocketAddr, time::Duration};

use tokio::{net::TcpListener, runtime::Runtime};
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
        Self::start_at("127.0.0.1:0".parse().unwrap(), routes).await
    }

    /// Serves `routes` on the given address.
    pub async fn start_at(address: SocketAddr, routes: Routes) -> Self {
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
                service::serve::serve(routes, listener, health, never, Duration::ZERO)
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

    /// Kills the server. The address is free afterwards.
    pub async fn kill(mut self) -> SocketAddr {
        let runtime = self.runtime.take().unwrap();
        tokio::task::spawn_blocking(move || runtime.shutdown_timeout(Duration::from_secs(10)))
            .await
            .unwrap();
        self.address
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
