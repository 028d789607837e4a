//! [`Served`]: a small network that is published and served, the usual setup of a test.

use checkpoints::Version;
use config::RunConfig;
use games::RowLayout;
use onnx::{Input, TowerWeights};

use super::{Server, Store, file, small, tower};

/// A server for the layout of [`small`] and the weights of [`tower`] with seed 1, published as `latest`.
pub struct Served {
    pub store: Store,
    pub layout: RowLayout,
    pub weights: TowerWeights,
    pub version: Version,
    pub server: Server,
}

impl Served {
    /// Starts the server with the settings of [`Server::start`].
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// Starts the server with a configuration changed by `change`.
    pub async fn start_with(change: impl FnOnce(&mut RunConfig)) -> Self {
        let (store, layout, weights, version) = published().await;
        let server = Server::start(&store, change).await;
        server.wait_for(&version).await;
        Self {
            store,
            layout,
            weights,
            version,
            server,
        }
    }
}

/// Publishes the network without a server.
pub async fn published() -> (Store, RowLayout, TowerWeights, Version) {
    let (store, layout) = (Store::new(), small());
    let weights = tower(&layout, 1);
    let rows = file(&weights, &layout, Input::Rows);
    let version = store.publish_latest(rows, &layout, 5).await;
    (store, layout, weights, version)
}
