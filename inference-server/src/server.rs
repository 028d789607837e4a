//! [`run`], the role: connects all parts of the server.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use checkpoints::Repository;
use config::{InferenceConfig, RunConfig};
use proto::{
    inference::grpc_inference_service_server::GrpcInferenceServiceServer,
    v1::evaluator_server::EvaluatorServer,
};
use service::{
    calls::limits::CallLimits,
    connect::MAX_MESSAGE_BYTES,
    listener::ConnectionPolicy,
    role::Work,
    serve::{self, Drained},
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::server::NamedService;

use crate::{
    batching::{
        batcher::{Batcher, BatchingPolicy},
        cache::EvaluationCache,
        executor::Executor,
        reply,
    },
    intake::Intake,
    kserve::KserveService,
    methods::method,
    metrics::Metrics,
    models::{
        library::{Library, LibraryParts},
        names::ServedName,
        source::Source,
        table::Models,
    },
    service::EvaluatorService,
};
use network::{
    buckets::Buckets,
    loader::Loader,
    name::is_label,
    provider::{Provider, Settings},
    sidecar,
};

/// Interval at which the cache's size is reported.
const CACHE_INTERVAL: Duration = Duration::from_secs(2);

/// Runs the role: listens on `inference.address` until `shutdown`.
///
/// # Errors
/// The address is in use, ONNX Runtime or the configured provider is missing, or the checkpoint store cannot be opened.
pub fn run(config: RunConfig, shutdown: CancellationToken) -> Work {
    Box::pin(async move {
        let listener = serve::listen(config.inference.listen_address()).await?;
        serve(listener, config, shutdown).await
    })
}

/// Serves on a listener until `shutdown`, then drains.
///
/// # Errors
/// The errors of [`run`].
pub fn serve(listener: TcpListener, config: RunConfig, shutdown: CancellationToken) -> Work {
    Box::pin(async move {
        let loader = loader(config.inference.clone()).await?;
        serve_with(listener, config, shutdown, loader).await
    })
}

/// Serves models that `loader` makes, like [`serve`].
///
/// # Errors
/// The errors of [`run`].
pub fn serve_with(
    listener: TcpListener,
    config: RunConfig,
    shutdown: CancellationToken,
    loader: Arc<Loader>,
) -> Work {
    Box::pin(async move {
        let inference = &config.inference;
        let connection_policy = ConnectionPolicy::new(&config.security, method)?
            .with_call_limits(call_limits(inference.max_message_mib << 20));
        connection_policy.check(listener.local_addr()?)?;
        let metrics = Arc::new(Metrics::new());
        let library = library(&config, loader, &metrics)?;
        let policy = BatchingPolicy {
            max_batch: inference.largest_batch(),
            max_wait: Duration::from_micros(inference.max_wait_us),
            max_queue: inference.max_queue,
        };
        let drained = CancellationToken::new();
        let batcher = Batcher::new(policy, metrics.clone());
        let threads = match inference.threads {
            0 => service::process::cores(),
            threads => threads,
        };
        let executor =
            Executor::start(&batcher, &metrics, threads).context("cannot start the device's threads")?;
        let cache = usize::try_from(inference.cache_mib << 20)
            .ok()
            .and_then(EvaluationCache::new)
            .map(Arc::new);
        let intake = Intake::new(
            library.clone(),
            batcher.clone(),
            cache.clone(),
            inference.max_request,
            metrics.clone(),
            shutdown.clone(),
        );
        let max_message = inference.max_message_mib << 20;
        let service = EvaluatorServer::new(EvaluatorService::new(intake.clone()))
            .max_decoding_message_size(max_message)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        let standard_service =
            GrpcInferenceServiceServer::new(KserveService::new(intake, inference.max_wait_us))
                .max_decoding_message_size(max_message)
                .max_encoding_message_size(MAX_MESSAGE_BYTES);
        let names = [
            <EvaluatorServer<EvaluatorService> as NamedService>::NAME,
            <GrpcInferenceServiceServer<KserveService> as NamedService>::NAME,
        ];
        let (routes, health) = serve::standard_routes(&names, &[proto::DESCRIPTORS]).await?;
        let routes = routes.add_service(service).add_service(standard_service);
        if !inference.health.is_empty() {
            serve::serve_health_beside(&inference.health, health.clone(), shutdown.clone()).await?;
        }
        tracing::info!(
            address = %listener.local_addr()?,
            checkpoints = config.checkpoints.store,
            model = inference.default_model,
            "listening; waiting for a model"
        );
        library.start();
        if let Some(cache) = cache.clone() {
            let metrics = metrics.clone();
            tokio::spawn(drained.clone().run_until_cancelled_owned(async move {
                let mut ticks = tokio::time::interval(CACHE_INTERVAL);
                loop {
                    ticks.tick().await;
                    metrics.cache(cache.contents());
                }
            }));
        }
        let following = tokio::spawn({
            let (library, health) = (library.clone(), health.clone());
            async move {
                library.first_model().await;
                health.set_serving(true).await;
            }
        });
        let batching = tokio::spawn({
            let (batcher, drained) = (batcher.clone(), drained.clone());
            async move { batcher.run(executor.batches, drained).await }
        });
        // The task runs on the runtime's workers, which also serve the connections that the answers go to.
        let mut answering = tokio::spawn(async move { reply::run(executor.finished, cache, &metrics).await });
        let serving = async {
            let ended = serve::serve_with(
                connection_policy,
                routes,
                listener,
                health,
                shutdown,
                serve::DRAIN,
            )
            .await?;
            if ended == Drained::Cut {
                tracing::warn!(after = ?serve::DRAIN, "some streams were cut");
            }
            Ok(())
        };
        let ended = tokio::select! {
            ended = serving => ended,
            _ = &mut answering => Err(anyhow::anyhow!("the device's thread ended")),
        };
        answering.abort();
        following.abort();
        drained.cancel();
        // The task ends at once, because only the remaining requests must be refused.
        let _ = batching.await;
        ended
    })
}

/// Returns the limits of calls: room for several requests of the largest size.
fn call_limits(max_message: usize) -> CallLimits {
    let limits = CallLimits::default();
    CallLimits {
        request_bytes: limits.request_bytes.max(4 * max_message),
        ..limits
    }
}

/// Loads ONNX Runtime and makes the loader that the configuration asks for.
async fn loader(inference: InferenceConfig) -> anyhow::Result<Arc<Loader>> {
    let loading = tokio::task::spawn_blocking(move || -> anyhow::Result<Loader> {
        let environment = network::runtime::load(&inference.runtime)?;
        let buckets = Buckets::new(inference.largest_batch());
        let asked_for = Provider::configured(inference.provider);
        Ok(Loader::new(
            environment,
            Settings::from(&inference),
            buckets,
            asked_for,
        )?)
    });
    Ok(Arc::new(
        loading.await.context("loading the runtime was interrupted")??,
    ))
}

/// Opens the sources of models.
fn library(config: &RunConfig, loader: Arc<Loader>, metrics: &Arc<Metrics>) -> anyhow::Result<Arc<Library>> {
    let inference = &config.inference;
    let sources = sources(config)?;
    let names: BTreeSet<String> = sources.keys().filter(|name| !name.is_empty()).cloned().collect();
    let default =
        ServedName::parse(&inference.default_model, |name| names.contains(name)).with_context(|| {
            let there = names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            format!(
                "inference.default_model: `{}` names no model (sources beside the run's own: {there})",
                inference.default_model
            )
        })?;
    Ok(Library::new(LibraryParts {
        models: Arc::new(Models::new(default, names)),
        sources,
        loader,
        game: (config.game.name.clone(), config.game.options),
        poll: Duration::from_millis(config.checkpoints.poll_ms),
        budget: inference.memory_mib << 20,
        on_demand: inference.load_on_demand,
        metrics: metrics.clone(),
    }))
}

/// Opens the run's own store, other stores, and files of other programs.
fn sources(config: &RunConfig) -> anyhow::Result<BTreeMap<String, Source>> {
    let own = Source::Store(Repository::open(&config.checkpoints.store)?);
    let mut sources = BTreeMap::from([(String::new(), own)]);
    let mut add = |name: &str, source: Source| {
        anyhow::ensure!(
            is_label(name),
            "inference.sources: `{name}` is not a valid name of a source"
        );
        let before = sources.insert(name.to_owned(), source);
        anyhow::ensure!(before.is_none(), "two sources are called `{name}`");
        Ok(())
    };
    for (name, location) in config.inference.named_sources() {
        let store = Repository::open(location).with_context(|| format!("inference.sources: {name}"))?;
        add(name, Source::Store(store))?;
    }
    let folder = &config.inference.models;
    if !folder.as_os_str().is_empty() {
        for (name, description) in sidecar::list(folder).context("inference.models")? {
            add(&name, Source::File(description))?;
        }
    }
    Ok(sources)
}
