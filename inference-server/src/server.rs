//! The whole server, put together.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use checkpoints::Repository;
use proto::v1::evaluator_server::EvaluatorServer;
use service::{
    config::RunConfig,
    connect::MAX_MESSAGE_BYTES,
    serve::{self, Drained},
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::server::NamedService;

use crate::{
    backend::Backend, batcher::Batcher, buckets::Buckets, executor::Executor, follow::Follower,
    loader::Loader, metrics::Metrics, models::Models, reply, service::EvaluatorService,
};

/// Runs the role: listens on `inference.address` until `shutdown`.
///
/// # Errors
/// Where the address is taken, the runtime or the provider asked for is missing, or the checkpoint store cannot be opened.
pub async fn run(config: RunConfig, shutdown: CancellationToken) -> anyhow::Result<()> {
    let listener = serve::listen(&config.inference.address).await?;
    serve(listener, config, shutdown).await
}

/// Serves on a listener until `shutdown`, then drains.
///
/// # Errors
/// As [`run`].
pub async fn serve(
    listener: TcpListener,
    config: RunConfig,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let inference = &config.inference;
    let metrics = Arc::new(Metrics::new());
    let models = Arc::new(Models::new(&inference.default_model));
    let loader = Arc::new(loader(&config).await?);
    let repository = Repository::open(&config.checkpoints.store)?;

    let batcher = Batcher::new(
        models.clone(),
        inference.max_queue,
        Duration::from_micros(inference.max_wait_us),
        metrics.clone(),
    );
    let executor =
        Executor::start(batcher.clone(), metrics.clone()).context("cannot start the device's thread")?;
    let service = EvaluatorService::new(
        models.clone(),
        batcher.clone(),
        inference.max_request,
        metrics.clone(),
        shutdown.clone(),
    );
    let service = EvaluatorServer::new(service)
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let name = <EvaluatorServer<EvaluatorService> as NamedService>::NAME;
    let (routes, health) = serve::standard_routes(&[name], &[proto::DESCRIPTORS]).await?;

    let follower = Follower {
        repository,
        label: inference.default_model.clone(),
        poll: Duration::from_millis(config.checkpoints.poll_ms),
        game: (config.game.name.clone(), config.game.options),
        loader,
        models,
        health: health.clone(),
        metrics: metrics.clone(),
    };
    tracing::info!(
        address = %listener.local_addr()?,
        checkpoints = config.checkpoints.store,
        label = inference.default_model,
        "listening; waiting for a model"
    );
    let drained = CancellationToken::new();
    let drain = Duration::from_secs(inference.drain_seconds);
    let following = tokio::spawn(follower.run());
    let batching = tokio::spawn({
        let (batcher, drained) = (batcher.clone(), drained.clone());
        async move { batcher.run(executor.batches, drained).await }
    });
    let answering = async {
        reply::run(executor.finished, &metrics).await;
        anyhow::bail!("the device's thread ended")
    };
    let serving = async {
        let ended = serve::serve(routes.add_service(service), listener, health, shutdown, drain).await?;
        if ended == Drained::Cut {
            tracing::warn!(seconds = inference.drain_seconds, "some streams were cut");
        }
        Ok(())
    };
    let ended = tokio::select! {
        ended = serving => ended,
        failed = answering => failed,
    };
    following.abort();
    drained.cancel();
    // It ends at once: nothing but the refusal of what is left is to be done.
    let _ = batching.await;
    ended
}

async fn loader(config: &RunConfig) -> anyhow::Result<Loader> {
    let inference = config.inference.clone();
    let loading = tokio::task::spawn_blocking(move || -> anyhow::Result<Loader> {
        let environment = onnx_runtime::load(&inference.runtime)?;
        let buckets = Buckets::new(&inference.batch_sizes, inference.max_batch);
        let asked_for = Backend::asked_for(inference.provider);
        Ok(Loader::new(environment, inference.threads, buckets, asked_for)?)
    });
    loading.await.context("loading the runtime was interrupted")?
}
