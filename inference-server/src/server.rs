//! [`run`], the role: connects all parts of the server.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::Context as _;
use checkpoints::{BEST, CANDIDATE, Repository};
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
    security::{methods::Method, tokens::Right},
    serve::{self, Drained},
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::server::NamedService;

use crate::{
    batching::{
        batcher::{Batcher, BatchingPolicy},
        executor::Executor,
        reply,
    },
    intake::Intake,
    kserve::KserveService,
    metrics::Metrics,
    models::{library::Library, names::ServedName, source::Source, table::Models},
    service::EvaluatorService,
};
use network::{cache::Cache, loader::Loader, name::is_label, provider::ProviderSettings, sidecar};

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
        let metrics = Arc::new(Metrics::new());
        let library = library(&config, loader, &metrics)?;
        let models = library.models.clone();
        let policy = BatchingPolicy {
            max_batch: config.inference.largest_batch(),
            max_queue: config.inference.max_queue,
        };
        let batcher = Batcher::new(policy, metrics.clone());
        // Dropped at the end, which ends the loading.
        let _loading = library.start();
        serve_models(listener, config, shutdown, models, batcher, metrics).await
    })
}

/// Serves the models of a table, which others fill.
///
/// # Errors
/// An address is in use, or the security settings do not allow it.
pub async fn serve_models(
    listener: TcpListener,
    config: RunConfig,
    shutdown: CancellationToken,
    models: Arc<Models>,
    batcher: Arc<Batcher>,
    metrics: Arc<Metrics>,
) -> anyhow::Result<()> {
    let inference = &config.inference;
    let max_message = inference.max_message_mib << 20;
    let mut connection_policy = ConnectionPolicy::new(&config.security, method)?;
    connection_policy.call_limits = call_limits(max_message);
    connection_policy.check(listener.local_addr()?)?;
    let drained = CancellationToken::new();
    let threads = match inference.threads {
        0 => service::process::cores(),
        threads => threads,
    };
    let executor =
        Executor::start(&batcher, &metrics, threads).context("cannot start the device's threads")?;
    let cache = usize::try_from(inference.cache_mib << 20)
        .ok()
        .and_then(Cache::new)
        .map(Arc::new);
    let intake = Intake::new(
        models.clone(),
        batcher.clone(),
        cache.clone(),
        inference.max_request,
        metrics.clone(),
        shutdown.clone(),
    );
    let service = EvaluatorServer::new(EvaluatorService::new(intake.clone()))
        .max_decoding_message_size(max_message)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let standard_service = GrpcInferenceServiceServer::new(KserveService::new(intake))
        .max_decoding_message_size(max_message)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let names = [
        <EvaluatorServer<EvaluatorService> as NamedService>::NAME,
        <GrpcInferenceServiceServer<KserveService> as NamedService>::NAME,
    ];
    let (routes, health) = serve::standard_routes(&names, &[proto::EVALUATION_DESCRIPTORS]).await?;
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
    if let Some(cache) = cache.clone() {
        let metrics = metrics.clone();
        tokio::spawn(drained.clone().run_until_cancelled_owned(async move {
            let mut ticks = tokio::time::interval(CACHE_INTERVAL);
            loop {
                ticks.tick().await;
                metrics.cache_entries.set(cache.contents().entries as f64);
            }
        }));
    }
    let following = tokio::spawn({
        let health = health.clone();
        async move {
            models.default_slot().first_model().await;
            health.set_serving(true).await;
        }
    });
    let batching = tokio::spawn({
        let drained = drained.clone();
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
    let loading = tokio::task::spawn_blocking(move || {
        let settings = ProviderSettings::from(&inference);
        let largest = inference.largest_batch();
        Loader::new(settings, largest, inference.provider)
    });
    let loader = loading.await.context("loading the runtime was interrupted")??;
    Ok(Arc::new(loader))
}

/// Opens the sources of models.
fn library(config: &RunConfig, loader: Arc<Loader>, metrics: &Arc<Metrics>) -> anyhow::Result<Library> {
    let sources = sources(config)?;
    let (default, others) = served_names(config, &sources)?;
    let names: Vec<String> = sources.keys().filter(|name| !name.is_empty()).cloned().collect();
    Ok(Library {
        models: Arc::new(Models::new(default, others, names)),
        sources,
        loader,
        game: (config.game.name.clone(), config.game.options),
        poll: Duration::from_millis(config.checkpoints.poll_ms),
        memory: config.inference.memory_mib << 20,
        metrics: metrics.clone(),
    })
}

/// Returns the name of the default model, and all other names that are served: that of the actors, those of
/// `inference.also_serve`, `latest` of each other source, and the labels that a rating with `rating.remote` plays with.
fn served_names(
    config: &RunConfig,
    sources: &BTreeMap<String, Source>,
) -> anyhow::Result<(ServedName, Vec<ServedName>)> {
    let named_sources: Vec<&str> = sources
        .keys()
        .map(String::as_str)
        .filter(|name| !name.is_empty())
        .collect();
    let parse = |key: &str, text: &str| {
        ServedName::parse(text, |name| named_sources.contains(&name)).with_context(|| {
            format!(
                "{key}: unknown model `{text}` (sources besides the run's own: {})",
                named_sources.join(", ")
            )
        })
    };
    let default = parse("inference.default_model", &config.inference.default_model)?;
    let mut others = vec![parse("actor.model", &config.actor.model)?];
    for text in &config.inference.also_serve {
        others.push(parse("inference.also_serve", text)?);
    }
    for source in &named_sources {
        others.push(parse("inference.sources", source)?);
    }
    if config.rating.remote {
        for label in [BEST, CANDIDATE] {
            others.push(parse("rating.remote", label)?);
        }
    }
    Ok((default, others))
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

/// Returns the rules of the method at `path`. The methods of both protocols need the right `evaluate`, unknown methods `administer`. `inference.max_message_mib` limits the requests that carry positions.
pub fn method(path: &str) -> Method {
    let with_positions = Method::needs(Right::Evaluate).with_max_message(usize::MAX);
    if let Some(name) = path.strip_prefix("/inference.GRPCInferenceService/") {
        return match name {
            "ModelInfer" => with_positions,
            "ModelStreamInfer" => with_positions.with_request_stream(),
            _ => Method::needs(Right::Evaluate),
        };
    }
    match path.strip_prefix("/minuet.v1.Evaluator/") {
        Some("Evaluate") => with_positions,
        Some("EvaluateStream") => with_positions.with_request_stream(),
        Some(_) => Method::needs(Right::Evaluate),
        None => Method::needs(Right::Administer),
    }
}
