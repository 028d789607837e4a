//! Starts the parts of an actor and stops them in order.
//!
//! At shutdown the workers stop at once and drop their games in progress, whose numbers are never used again. The streams give
//! the inference server a moment to finish its requests. Every finished game is written to the spool. The sender has a few
//! seconds to send the spool to the replay store; the remaining games are sent after the next start.

use std::{
    sync::Arc,
    thread::{self, JoinHandle},
};

use anyhow::Context as _;
use config::RunConfig;
use games::{Game, registry};
use parking_lot::Mutex;
use service::{
    connect::{AddressError, Connector},
    log_throttle::LogThrottle,
    role::Work,
};
use tokio::{
    sync::mpsc,
    task::{JoinSet, spawn_blocking},
};
use tokio_util::sync::CancellationToken;

use crate::{
    cache::Cache,
    evaluator::{self, Evaluator, EvaluatorError, Expected, Versions},
    metrics::Metrics,
    play::{
        SlotError,
        curriculum::{Curriculum, CurriculumError},
        naming::{Naming, NamingError},
        progress::ProgressGauges,
        setup::{Setup, SetupError},
        worker::{self, Shared, Worker},
    },
    report,
    spool::{
        Lost, Spool, SpoolError,
        sender::{self, Sender, SenderError},
        start_writer,
    },
};

/// Runs the actor that `config` describes until `shutdown`.
///
/// # Errors
/// [`ActorError`] if the configuration cannot be played, the spool cannot be used, or the address of the inference server or of
/// the replay store belongs to another kind of server. A server that cannot be reached is not an error: the actor tries again.
pub fn run(config: RunConfig, shutdown: CancellationToken) -> Work {
    Box::pin(async move {
        let name = config.game.name.clone();
        let play = Play { config, shutdown };
        let running = registry::visit(&name, play).context("game.name")?;
        Ok(running.await?)
    })
}

struct Play {
    config: RunConfig,
    shutdown: CancellationToken,
}

impl registry::Visitor for Play {
    type Output = std::pin::Pin<Box<dyn Future<Output = Result<(), ActorError>> + Send>>;

    fn visit<G: Game>(self) -> Self::Output {
        Box::pin(Actor::new(self.config).run::<G>(self.shutdown))
    }
}

/// Error: the actor cannot start or cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum ActorError {
    /// An address in the configuration is invalid.
    #[error("`{key}` cannot be used")]
    Address {
        /// Key of the address in the configuration.
        key: &'static str,
        /// Reason.
        source: AddressError,
    },
    /// The spool cannot be opened.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// The actor's identity cannot be read or written.
    #[error(transparent)]
    Naming(#[from] NamingError),
    /// The game's configuration is invalid.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The file with the level of the problems cannot be used.
    #[error(transparent)]
    Curriculum(#[from] CurriculumError),
    /// The operating system cannot start a thread.
    #[error("cannot start a thread")]
    Thread(#[from] std::io::Error),
    /// The inference server refuses the actor's requests.
    #[error(transparent)]
    Evaluator(#[from] EvaluatorError),
    /// The replay store refuses the actor's games.
    #[error(transparent)]
    Sender(#[from] SenderError),
    /// The search and the rules of the game contradict each other.
    #[error("self-play contradicts itself")]
    Play(#[from] SlotError),
    /// Finished games could not be written to the spool.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// A thread or task has panicked.
    #[error("{0} has panicked")]
    Panicked(&'static str),
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
    /// [`ActorError`]
    pub async fn run<G: Game>(self, shutdown: CancellationToken) -> Result<(), ActorError> {
        // A child: the first part that fails stops the other parts, but nothing outside this actor.
        let shutdown = shutdown.child_token();
        let parts = self.start::<G>(&shutdown).await?;
        parts.run(shutdown).await
    }

    async fn start<G: Game>(self, shutdown: &CancellationToken) -> Result<Parts, ActorError> {
        let Self {
            config,
            metrics,
            evaluator_limits,
            sender_limits,
        } = self;
        let cores = service::process::cores();
        let threads = config.actor.worker_threads(cores);
        let batch = config.inference.largest_batch();
        let games = config.actor.games_on_thread(cores, batch);
        let requests_in_flight = config.actor.requests_of_thread(cores, batch);
        let address = |key| move |source| ActorError::Address { key, source };
        let connector = Connector::new(&config.security);
        let server = connector
            .link(&config.inference.address)
            .map_err(address("inference.address"))?;
        let store = config.replay.address.clone();
        let store_link = connector.link(&store).map_err(address("replay.address"))?;

        let limit = config.actor.max_spool_mib << 20;
        let (spool, recovered) = Spool::open(config.actor.spool.clone(), limit)?;
        for damage in &recovered.damage {
            tracing::error!(%damage, "the spool is damaged; its intact games are sent");
        }
        let spool = Arc::new(spool);
        let naming = Naming::open(&config.actor.spool, &config.actor.name, config.run.seed)?;
        let setup = Setup::<G>::new(&config, naming.name(), threads * games)?;
        let curriculum = Curriculum::open(&config.actor.spool, &config.problems, G::LEVELS)?;
        let progress = ProgressGauges::new::<G>(&setup.rules);
        progress.show(&curriculum);
        let expected = Arc::new(Expected::of::<G>(setup.encoding, &config.actor.model));
        tracing::info!(
            name = naming.name(),
            game = G::NAME,
            threads,
            games = threads * games,
            requests_in_flight,
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
            games_per_thread: games,
            rows_per_request: config.actor.rows_per_request,
            requests_in_flight,
            naming_errors: LogThrottle::new(worker::NAMING_LOG_INTERVAL),
            shutdown: shutdown.clone(),
        });

        let (finished, writer) = start_writer(
            Arc::clone(&spool),
            2 * threads,
            Arc::clone(&metrics),
            shutdown.clone(),
        )?;
        let outage = Arc::default();
        let mut tasks = JoinSet::new();
        let mut workers = Vec::with_capacity(threads);
        for number in 0..threads {
            let (request_sender, requests) = mpsc::channel(requests_in_flight);
            let (evaluation_sender, evaluations) = mpsc::channel(requests_in_flight);
            let evaluator = Evaluator {
                channel: server.clone(),
                expected: Arc::clone(&expected),
                versions: Arc::clone(&versions),
                metrics: Arc::clone(&metrics),
                limits: evaluator_limits.clone(),
                requests,
                evaluations: evaluation_sender,
                shutdown: shutdown.clone(),
                outage: Arc::clone(&outage),
            };
            tasks.spawn(async move { evaluator.run().await.map_err(ActorError::from) });
            let worker = Worker::new(Arc::clone(&shared), request_sender, evaluations, finished.clone());
            let thread = thread::Builder::new()
                .name(format!("worker-{number}"))
                .spawn(move || worker.run())?;
            workers.push(thread);
        }
        // Now only the workers hold senders, so the writer ends after the last worker.
        drop(finished);

        let drain = CancellationToken::new();
        let sender = Sender::new(
            store_link,
            store,
            Arc::clone(&spool),
            Arc::clone(&metrics),
            sender_limits,
            drain.clone(),
        );
        let sender = tokio::spawn(send_all(sender, Arc::clone(&spool)));
        let reported = CancellationToken::new();
        let report = tokio::spawn(report::run(metrics, cache, spool, reported.clone()));
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

/// Runs the sender to its end, and logs how many games are left for the next start.
async fn send_all(sender: Sender, spool: Arc<Spool>) -> Result<(), SenderError> {
    sender.run().await?;
    let left = spool.size().games;
    if left > 0 {
        tracing::info!(
            games = left,
            "finished games wait in the spool for the next start"
        );
    }
    Ok(())
}

/// The running threads and tasks.
struct Parts {
    /// The streams to the inference server, one for each worker.
    tasks: JoinSet<Result<(), ActorError>>,
    workers: Vec<JoinHandle<Result<(), SlotError>>>,
    writer: JoinHandle<Result<(), Lost>>,
    sender: tokio::task::JoinHandle<Result<(), SenderError>>,
    drain: CancellationToken,
    report: tokio::task::JoinHandle<()>,
    reported: CancellationToken,
}

/// Keeps the first error; later errors are logged.
#[derive(Default)]
struct FirstError(Mutex<Option<ActorError>>);

impl FirstError {
    fn note<T>(&self, result: Result<T, impl Into<ActorError>>) {
        if let Err(error) = result {
            let error = error.into();
            let mut first = self.0.lock();
            match *first {
                None => *first = Some(error),
                Some(_) => tracing::error!("{}", service::chain(&error)),
            }
        }
    }
}

impl Parts {
    /// Waits until a part ends or `shutdown` is cancelled, then stops all parts in order.
    async fn run(self, shutdown: CancellationToken) -> Result<(), ActorError> {
        let Self {
            mut tasks,
            workers,
            writer,
            mut sender,
            drain,
            report,
            reported,
        } = self;
        let first_error = FirstError::default();
        let mut sender_ended = false;
        tokio::select! {
            () = shutdown.cancelled() => {}
            // A task ends only with an error, after its worker has ended, or at the shutdown.
            ended = tasks.join_next() => if let Some(ended) = ended {
                first_error.note(joined(ended, "a stream to a server"));
            },
            ended = &mut sender => {
                sender_ended = true;
                first_error.note(joined(ended.map(|sent| sent.map_err(ActorError::from)), "the sender"));
            }
        }
        shutdown.cancel();
        while let Some(ended) = tasks.join_next().await {
            first_error.note(joined(ended, "a stream to a server"));
        }
        let threads = spawn_blocking(move || {
            let worked: Vec<_> = workers.into_iter().map(JoinHandle::join).collect();
            (worked, writer.join())
        });
        match threads.await {
            Ok((worked, written)) => {
                for worker in worked {
                    let worked = worker.map_err(|_| ActorError::Panicked("a worker thread"));
                    first_error.note(worked.and_then(|worked| Ok(worked?)));
                }
                let written = written.map_err(|_| ActorError::Panicked("the spool's thread"));
                first_error.note(written.and_then(|written| Ok(written?)));
            }
            Err(_) => first_error.note::<()>(Err(ActorError::Panicked("the end of the threads"))),
        }
        drain.cancel();
        if !sender_ended {
            first_error.note(joined(
                sender.await.map(|sent| sent.map_err(ActorError::from)),
                "the sender",
            ));
        }
        reported.cancel();
        first_error.note(report.await.map_err(|_| ActorError::Panicked("the report")));
        match first_error.0.into_inner() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

fn joined(
    ended: Result<Result<(), ActorError>, tokio::task::JoinError>,
    what: &'static str,
) -> Result<(), ActorError> {
    ended.unwrap_or(Err(ActorError::Panicked(what)))
}
