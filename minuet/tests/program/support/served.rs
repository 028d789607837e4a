//! Published networks, and an inference server in this process that serves one.

use std::time::Duration;

use checkpoints::{Draft, LATEST, MODEL, Repository, Version};
use config::{Provider, RunConfig};
use games::RowLayout;
use onnx::{Input, Metadata, TowerWeights};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

/// A running server.
pub struct Served {
    pub address: String,
    pub version: Version,
    shutdown: CancellationToken,
    serving: JoinHandle<anyhow::Result<()>>,
}

impl Served {
    /// Publishes the weights in the store of `config`, and serves them once they are loaded.
    pub async fn start(mut config: RunConfig, layout: &RowLayout, weights: &TowerWeights) -> Self {
        let metadata = Metadata {
            layout: layout.clone(),
            step: 7,
        };
        let model = onnx::build(weights, &metadata, Input::Rows).unwrap();
        let repository = Repository::open(&config.checkpoints.store).unwrap();
        let version = publish(&repository, &metadata, model).await;
        config.inference.provider = Provider::Cpu;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shutdown = CancellationToken::new();
        let serving = tokio::spawn(inference_server::serve(listener, config, shutdown.clone()));
        // Until the model is loaded, calls are answered UNAVAILABLE.
        let mut client =
            proto::v1::evaluator_client::EvaluatorClient::new(service::connect::channel(&address).unwrap());
        while client
            .describe_model(proto::v1::DescribeModelRequest::default())
            .await
            .is_err()
        {
            assert!(!serving.is_finished(), "the server ended");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Self {
            address,
            version,
            shutdown,
            serving,
        }
    }

    /// Ends the server.
    pub async fn stop(self) {
        self.shutdown.cancel();
        self.serving.await.unwrap().unwrap();
    }
}

/// Publishes a model, and moves the label `latest` to it.
pub async fn publish(repository: &Repository, metadata: &Metadata, model: Vec<u8>) -> Version {
    let layout = &metadata.layout;
    let draft = Draft {
        game: layout.game.clone(),
        layout: serde_json::to_value(layout).unwrap(),
        actions: layout.actions,
        step: metadata.step,
        ..Draft::default()
    };
    let files = vec![(MODEL, model.into())];
    let version = repository.publish(draft, files).await.unwrap();
    repository.set_label(LATEST, &version).await.unwrap();
    version
}
