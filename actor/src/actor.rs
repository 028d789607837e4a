//! Starts an actor's parts and stops them in order.
//!
//! Stopping: the workers stop where they are, and games in progress are dropped (their numbers are not used again);
//! the streams give the server a moment to finish; every finished game is written to the spool; the
//! sender has a few seconds to bring the spool to the store, and what remains is sent at the next start.

use std::{
    num::NonZero,
    sync::Arc,
    thread::{self, JoinHandle},
};

use anyhow::Context as _;
use config::{ConfigError, RunConfig};
use games::{Game, registry};
use parking_lot::Mutex;
use service::{
    connect::{AddressError, Link},
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
    log_throttle::LogThrottle,
    metrics::Metrics,
    play::{
        SlotError,
        curriculum::{Curriculum, CurriculumError},
        naming::{Naming, NamingError},
        setup::{Setup, SetupError},
        worker::{self, Shared, Worker},
    },
    report,
    sorting::Sorting,
    spool::{
        Lost, Spool, SpoolError,
        sender::{self, Sender, SenderError},
        start_writer,
    },
};

/// Runs the actor that `config` describes until `shutdown`.
///
/// # Errors
/// A configuration that cannot be played, a spool that cannot be used, an inference server or a store of another kind.
/// Servers that are away are no error.
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

/// Why an actor cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ActorError {
    /// An address in the configuration.
    #[error("{key}: {source}")]
    Address {
        /// Its key.
        key: &'static str,
        /// What is wrong with it.
        source: service::connect::AddressError,
    },
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The spool.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// The actor's identity.
    #[error(transparent)]
    Naming(#[from] NamingError),
    /// The game's configuration.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The problems' level.
    #[error(transparent)]
    Curriculum(#[from] CurriculumError),
    /// No thread can be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
    /// The inference server.
    #[error(transparent)]
    Evaluator(#[from] EvaluatorError),
    /// The replay store.
    #[error(transparent)]
    Sender(#[from] SenderError),
    /// Search and rules.
    #[error("self-play contradicts itself: {0}")]
    Play(#[from] SlotError),
    /// Games that could not be kept.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// A part of the process has panicked.
    #[error("{0} has panicked")]
    Panicked(&'static str),
}

/// An actor about to be run. Tests change how patient it is; others want its counters.
pub struct Actor {
    /// The run.
    pub config: RunConfig,
    /// What it counts.
    pub metrics: Arc<Metrics>,
    /// How long it waits for the inference server.
    pub evaluator_patience: evaluator::Patience,
    /// How long it waits for the replay store.
    pub sender_patience: sender::Patience,
}

impl Actor {
    /// The actor that `config` describes.
    pub fn new(config: RunConfig) -> Self {
        Self {
            config,
            metrics: Arc::default(),
            evaluator_patience: evaluator::Patience::default(),
            sender_patience: sender::Patience::default(),
        }
    }

    /// Plays games of `G`, whatever the configuration calls the game, until `shutdown`.
    ///
    /// # Errors
    /// [`ActorError`]
    pub async fn run<G: Game>(self, shutdown: CancellationToken) -> Result<(), ActorError> {
        let stop = shutdown.child_token();
        let parts = self.start::<G>(&stop).await?;
        parts.run(stop).await
    }

    async fn start<G: Game>(self, stop: &CancellationToken) -> Result<Parts, ActorError> {
        let Self {
            config,
            metrics,
            evaluator_patience,
            sender_patience,
        } = self;
        let threads = match config.actor.threads {
            0 => thread::available_parallelism()
                .map_or(1, NonZero::get)
                .saturating_sub(1)
                .max(1),
            threads => threads,
        };
        let address = |key| move |source| ActorError::Address { key, source };
        let connector = service::connect::Connector::new(&config.security);
        let server = connector
            .link(&config.inference.address)
            .map_err(address("inference.address"))?;
        let shards = config.replay.stores()?;
        let stores: Vec<(String, Link)> = shards
            .all()
            .iter()
            .map(|shard| Ok::<_, AddressError>((shard.name.clone(), connector.link(&shard.address)?)))
            .collect::<Result<_, _>>()
            .map_err(address("replay.address"))?;

        let limit = config.actor.max_spool_mib << 20;
        let (spool, recovered) = Spool::open(config.actor.spool.clone(), limit, shards)?;
        for damage in &recovered.damage {
            tracing::error!(%damage, "the spool is damaged; what is whole is sent");
        }
        let spool = Arc::new(spool);
        let naming = Naming::open(&config.actor.spool, &config.actor.name, config.run.seed)?;
        let setup = Setup::<G>::new(&config, naming.name(), threads * config.actor.games_per_thread)?;
        let curriculum = Curriculum::open(&config.actor.spool, &config.problems, G::LEVELS)?;
        metrics.problem_level.set(if G::LEVELS > 0 {
            curriculum.level().into()
        } else {
            0
        });
        let expected = Arc::new(Expected::of::<G>(setup.encoding, &config.actor.model));
        tracing::info!(
            name = naming.name(),
            game = G::NAME,
            threads,
            games = threads * config.actor.games_per_thread,
            unsent_games = recovered.games,
            "self-play begins"
        );

        let versions = Arc::new(Versions::default());
        let cache = Cache::new(config.actor.cache_mib << 20).map(Arc::new);
        let shared = Arc::new(Shared {
            setup,
            naming,
            curriculum,
            cache: cache.clone(),
            versions: Arc::clone(&versions),
            metrics: Arc::clone(&metrics),
            model: config.actor.model.clone(),
            games_per_thread: config.actor.games_per_thread,
            rows_per_request: config.actor.rows_per_request,
            requests_in_flight: config.actor.requests_in_flight,
            trouble: LogThrottle::new(worker::REMINDER),
            stop: stop.clone(),
        });

        let (finished, writer) = start_writer(
            Arc::clone(&spool),
            2 * threads,
            Arc::clone(&metrics),
            stop.clone(),
        )?;
        let trouble = Arc::default();
        let mut tasks = JoinSet::new();
        let mut workers = Vec::with_capacity(threads);
        for number in 0..threads {
            let (ask, asks) = mpsc::channel(config.actor.requests_in_flight);
            let (answer, answers) = mpsc::channel(config.actor.requests_in_flight);
            let evaluator = Evaluator {
                channel: server.clone(),
                expected: Arc::clone(&expected),
                versions: Arc::clone(&versions),
                metrics: Arc::clone(&metrics),
                patience: evaluator_patience.clone(),
                asks,
                answers: answer,
                shutdown: stop.clone(),
                trouble: Arc::clone(&trouble),
            };
            tasks.spawn(async move { evaluator.run().await.map_err(ActorError::from) });
            let worker = Worker::new(Arc::clone(&shared), ask, answers, finished.clone());
            let thread = thread::Builder::new()
                .name(format!("worker-{number}"))
                .spawn(move || worker.run())?;
            workers.push(thread);
        }
        // Only workers hold it now, so the writer ends after them.
        drop(finished);

        let drain = CancellationToken::new();
        let sender = tokio::spawn(send_all(
            stores,
            Arc::clone(&spool),
            Arc::clone(&metrics),
            sender_patience,
            drain.clone(),
        ));
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

/// Sends the spool's games to all stores, until `drain`.
async fn send_all(
    stores: Vec<(String, Link)>,
    spool: Arc<Spool>,
    metrics: Arc<Metrics>,
    patience: sender::Patience,
    drain: CancellationToken,
) -> Result<(), SenderError> {
    let senders = stores.iter().enumerate().map(|(number, (name, link))| {
        let whose = (number, name.clone());
        let (spool, metrics) = (Arc::clone(&spool), Arc::clone(&metrics));
        Sender::new(
            link.clone(),
            whose,
            spool,
            metrics,
            patience.clone(),
            drain.clone(),
        )
        .run()
    });
    let mut tasks: JoinSet<Result<(), SenderError>> = senders.collect();
    let sorting = Sorting {
        stores: stores.clone(),
        spool: Arc::clone(&spool),
        metrics: Arc::clone(&metrics),
        patience: patience.clone(),
        drain,
    };
    tasks.spawn(sorting.run());
    while let Some(ended) = tasks.join_next().await {
        match ended {
            Ok(sent) => sent?,
            Err(error) => {
                if let Ok(panic) = error.try_into_panic() {
                    std::panic::resume_unwind(panic);
                }
            }
        }
    }
    let left = spool.size().games;
    if left > 0 {
        tracing::info!(
            games = left,
            "finished games wait in the spool for the next start"
        );
    }
    Ok(())
}

/// What runs.
struct Parts {
    /// One for each worker's stream.
    tasks: JoinSet<Result<(), ActorError>>,
    workers: Vec<JoinHandle<Result<(), SlotError>>>,
    writer: JoinHandle<Result<(), Lost>>,
    sender: tokio::task::JoinHandle<Result<(), SenderError>>,
    drain: CancellationToken,
    report: tokio::task::JoinHandle<()>,
    reported: CancellationToken,
}

/// The first thing that went wrong.
#[derive(Default)]
struct Fault(Mutex<Option<ActorError>>);

impl Fault {
    fn note<T>(&self, result: Result<T, impl Into<ActorError>>) {
        if let Err(error) = result {
            let error = error.into();
            let mut first = self.0.lock();
            match *first {
                None => *first = Some(error),
                Some(_) => tracing::error!("{error}"),
            }
        }
    }
}

impl Parts {
    /// Waits for the end of any part or for `stop`, then stops all of them in order.
    async fn run(self, stop: CancellationToken) -> Result<(), ActorError> {
        let Self {
            mut tasks,
            workers,
            writer,
            mut sender,
            drain,
            report,
            reported,
        } = self;
        let fault = Fault::default();
        let mut sender_ended = false;
        tokio::select! {
            () = stop.cancelled() => {}
            // A stream ends by itself only with an error, or after its worker.
            ended = tasks.join_next() => if let Some(ended) = ended {
                fault.note(joined(ended, "a stream to the inference server"));
            },
            ended = &mut sender => {
                sender_ended = true;
                fault.note(joined(ended.map(|sent| sent.map_err(ActorError::from)), "the sender"));
            }
        }
        stop.cancel();
        while let Some(ended) = tasks.join_next().await {
            fault.note(joined(ended, "a stream to the inference server"));
        }
        let threads = spawn_blocking(move || {
            let worked: Vec<_> = workers.into_iter().map(JoinHandle::join).collect();
            (worked, writer.join())
        });
        match threads.await {
            Ok((worked, written)) => {
                for worker in worked {
                    let worked = worker.map_err(|_| ActorError::Panicked("a worker thread"));
                    fault.note(worked.and_then(|worked| Ok(worked?)));
                }
                let written = written.map_err(|_| ActorError::Panicked("the spool's thread"));
                fault.note(written.and_then(|written| Ok(written?)));
            }
            Err(_) => fault.note::<()>(Err(ActorError::Panicked("the end of the threads"))),
        }
        drain.cancel();
        if !sender_ended {
            fault.note(joined(
                sender.await.map(|sent| sent.map_err(ActorError::from)),
                "the sender",
            ));
        }
        reported.cancel();
        fault.note(report.await.map_err(|_| ActorError::Panicked("the report")));
        match fault.0.into_inner() {
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
