//! Starts the parts of an actor and stops them in order.
//!
//! At shutdown the workers stop at once and drop their games in progress, whose numbers are never used again. The streams give
//! the inference server a moment to finish its requests. Every finished game is written to the spool. The sender has a few
//! seconds to send the spool to the replay store; the remaining games are sent after the next start.

use std::{
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::{Context as _, anyhow};
use config::RunConfig;
use games::{Game, registry};
use service::{connect::Connector, log_throttle::LogThrottle, role::Work};
use tokio::{
    sync::mpsc,
    task::{JoinSet, spawn_blocking},
};
use tokio_util::sync::CancellationToken;

use crate::{
    cache::Cache,
    evaluator::{self, Evaluator, Expected, Versions},
    metrics::{self, Metrics},
    play::{
        curriculum::{Curriculum, ProgressGauges},
        naming::Naming,
        pace::Pace,
        setup::Setup,
        worker::{self, Shared, Worker},
    },
    spool::{
        Spool,
        sender::{self, Sender},
        start_writer,
    },
};

/// Shortest time between two log lines about a server that does not answer.
const OUTAGE_LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Runs the actor that `config` describes until `shutdown`.
///
/// # Errors
/// The configuration cannot be played, the spool cannot be used, or the address of the inference server or of the replay store
/// belongs to another kind of server. A server that cannot be reached is not an error: the actor tries again.
pub fn run(config: RunConfig, shutdown: CancellationToken) -> Work {
    Box::pin(async move {
        let name = config.game.name.clone();
        let play = Play { config, shutdown };
        registry::visit(&name, play).context("game.name")?.await
    })
}

struct Play {
    config: RunConfig,
    shutdown: CancellationToken,
}

impl registry::Visitor for Play {
    type Output = std::pin::Pin<Box<dyn Future<Output = anyhow::Result<()>> + Send>>;

    fn visit<G: Game>(self) -> Self::Output {
        Box::pin(Actor::new(self.config).run::<G>(self.shutdown))
    }
}

/// An actor that is ready to run. Tests shorten its waiting times and read its counters.
pub struct Actor {
    /// Configuration of the run.
    pub config: RunConfig,
    /// Counters and levels.
    pub metrics: Arc<Metrics>,
    /// Waiting times for the inference server.
    pub evaluator_limits: evaluator::EvaluatorLimits,
    /// Waiting times for the replay store.
    pub sender_limits: sender::SenderLimits,
}

impl Actor {
    /// Returns the actor that `config` describes.
    pub fn new(config: RunConfig) -> Self {
        Self {
            config,
            metrics: Arc::new(Metrics::new()),
            evaluator_limits: evaluator::EvaluatorLimits::default(),
            sender_limits: sender::SenderLimits::default(),
        }
    }

    /// Plays games of `G` until `shutdown`. The name of the game in the configuration is ignored.
    ///
    /// # Errors
    /// As [`run`].
    pub async fn run<G: Game>(self, shutdown: CancellationToken) -> anyhow::Result<()> {
        // A child: the first part that fails stops the other parts, but nothing outside this actor.
        let shutdown = shutdown.child_token();
        let parts = self.start::<G>(&shutdown).await?;
        parts.run(shutdown).await
    }

    async fn start<G: Game>(self, shutdown: &CancellationToken) -> anyhow::Result<Parts> {
        let (config, metrics) = (self.config, self.metrics);
        let cores = service::process::cores();
        let threads = config.actor.worker_threads(cores);
        let connector = Connector::new(&config.security);
        let server = connector
            .link(&config.inference.address)
            .context("`inference.address` cannot be used")?;
        let store = config.replay.address.clone();
        let store_link = connector
            .link(&store)
            .context("`replay.address` cannot be used")?;

        let limit = config.actor.max_spool_mib << 20;
        let (spool, recovered) = Spool::open(config.actor.spool.clone(), limit)?;
        for damage in &recovered.damage {
            tracing::error!(%damage, "the spool is damaged; its intact games are sent");
        }
        let spool = Arc::new(spool);
        let naming = Naming::open(&config.actor.spool, &config.actor.name, config.run.seed)?;
        let pace = Arc::new(Pace::open(&config.actor.spool, &config));
        let games = threads * pace.games();
        let setup = Setup::<G>::new(&config, &naming.name, games)?;
        let curriculum = Curriculum::open(&config.actor.spool, &config.problems, G::LEVELS)?;
        let progress = ProgressGauges::new::<G>(&setup.rules);
        progress.show(&curriculum);
        let expected = Arc::new(Expected::of::<G>(setup.encoding, &config.actor.model));
        tracing::info!(
            name = naming.name,
            game = G::name(),
            threads,
            games,
            requests_in_flight = pace.requests(),
            unsent_games = recovered.games,
            "self-play begins"
        );

        let versions = Arc::new(Versions::default());
        let cache = Cache::new(config.actor.cache_mib << 20).map(Arc::new);
        let shared = Arc::new(Shared {
            setup,
            naming,
            curriculum,
            progress,
            cache: cache.clone(),
            versions: Arc::clone(&versions),
            metrics: Arc::clone(&metrics),
            model: config.actor.model.clone(),
            pace: Arc::clone(&pace),
            rows_per_request: config.actor.rows_per_request,
            naming_errors: LogThrottle::new(worker::NAMING_LOG_INTERVAL),
            failures: Default::default(),
            shutdown: shutdown.clone(),
        });

        let (finished, writer) = start_writer(
            Arc::clone(&spool),
            2 * threads,
            Arc::clone(&metrics),
            shutdown.clone(),
        )?;
        let outage = Arc::new(LogThrottle::new(OUTAGE_LOG_INTERVAL));
        let mut tasks = JoinSet::new();
        let mut workers = Vec::with_capacity(threads);
        for number in 0..threads {
            let (request_sender, requests) = mpsc::channel(pace.most_requests());
            let (evaluation_sender, evaluations) = mpsc::channel(pace.most_requests());
            let evaluator = Evaluator {
                channel: server.clone(),
                expected: Arc::clone(&expected),
                versions: Arc::clone(&versions),
                metrics: Arc::clone(&metrics),
                limits: self.evaluator_limits.clone(),
                requests,
                evaluations: evaluation_sender,
                shutdown: shutdown.clone(),
                outage: Arc::clone(&outage),
            };
            tasks.spawn(evaluator.run());
            let worker = Worker::new(Arc::clone(&shared), request_sender, evaluations, finished.clone());
            let thread = thread::Builder::new()
                .name(format!("worker-{number}"))
                .spawn(move || worker.run())
                .context("cannot start a thread")?;
            workers.push(thread);
        }
        // Now only the workers hold senders, so the writer ends after the last worker.
        drop(finished);

        let drain = CancellationToken::new();
        let sender = Sender {
            channel: store_link,
            store,
            spool: Arc::clone(&spool),
            metrics: Arc::clone(&metrics),
            limits: self.sender_limits,
            drain: drain.clone(),
            trouble: LogThrottle::new(OUTAGE_LOG_INTERVAL),
        };
        let sender = tokio::spawn(sender.run());
        tokio::spawn(pace.control(Arc::clone(&metrics), shutdown.clone()));
        let reported = CancellationToken::new();
        let report = tokio::spawn(metrics::report(metrics, cache, spool, reported.clone()));
        Ok(Parts {
            tasks,
            workers,
            writer,
            sender,
            drain,
            report,
            reported,
        })
    }
}

/// The running threads and tasks.
struct Parts {
    /// The streams to the inference server, one for each worker.
    tasks: JoinSet<anyhow::Result<()>>,
    workers: Vec<JoinHandle<anyhow::Result<()>>>,
    writer: JoinHandle<anyhow::Result<()>>,
    sender: tokio::task::JoinHandle<anyhow::Result<()>>,
    drain: CancellationToken,
    report: tokio::task::JoinHandle<()>,
    reported: CancellationToken,
}

/// Keeps the first error; later errors are logged.
#[derive(Default)]
struct FirstError(Option<anyhow::Error>);

impl FirstError {
    /// Notes how a part has ended: with a result, or with a panic.
    fn note<P>(&mut self, ended: Result<anyhow::Result<()>, P>, part: &str) {
        let error = match ended {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error,
            Err(_) => anyhow!("{part} has panicked"),
        };
        match &self.0 {
            None => self.0 = Some(error),
            Some(_) => tracing::error!("{error:#}"),
        }
    }
}

impl Parts {
    /// Waits until a part ends or `shutdown` is cancelled, then stops all parts in order.
    async fn run(mut self, shutdown: CancellationToken) -> anyhow::Result<()> {
        const STREAM: &str = "a stream to a server";
        const SENDER: &str = "the sender";
        let mut first_error = FirstError::default();
        let mut sender_ended = false;
        tokio::select! {
            () = shutdown.cancelled() => {}
            // A task ends only with an error, after its worker has ended, or at the shutdown.
            ended = self.tasks.join_next() => if let Some(ended) = ended {
                first_error.note(ended, STREAM);
            },
            ended = &mut self.sender => {
                sender_ended = true;
                first_error.note(ended, SENDER);
            }
        }
        shutdown.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            first_error.note(ended, STREAM);
        }
        let (workers, writer) = (self.workers, self.writer);
        let threads = spawn_blocking(move || {
            let worked: Vec<_> = workers.into_iter().map(JoinHandle::join).collect();
            (worked, writer.join())
        });
        let (worked, written) = threads.await.context("the end of the threads has panicked")?;
        for worker in worked {
            let worked = worker.map(|worked| worked.context("self-play contradicts itself"));
            first_error.note(worked, "a worker thread");
        }
        first_error.note(written, "the spool's thread");
        self.drain.cancel();
        if !sender_ended {
            first_error.note(self.sender.await, SENDER);
        }
        self.reported.cancel();
        first_error.note(self.report.await.map(anyhow::Ok), "the report");
        match first_error.0 {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}
