//! State that all pages share ([`App`]).

use std::{path::PathBuf, sync::Arc};

use config::RunConfig;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::{
    compare::runs::Runs,
    explore::explorer::Explorers,
    learn::answers::Answers,
    overview::state::Watched,
    play::tables::{Limits, Tables},
    run::Run,
    store::Store,
};

/// Most streams of events that are open at once.
const STREAMS: usize = 64;

/// State of the studio. Clones share it.
#[derive(Clone, Debug)]
pub struct App(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    run: Option<Run>,
    absent: Run,
    ending: CancellationToken,
    tables: Arc<Tables>,
    store: Store,
    watched: Watched,
    answers: Arc<Answers>,
    compared: Arc<Runs>,
    explorers: Explorers,
    streams: Arc<Semaphore>,
}

impl App {
    /// Creates the state. Open streams end when `ending` is cancelled. Without a run, only the pages that need none are served.
    pub fn new(run: impl Into<Option<Run>>, ending: CancellationToken) -> Self {
        let run = run.into();
        let absent = Run {
            folder: PathBuf::new(),
            name: "no run".into(),
            config: RunConfig::default(),
            is_elsewhere: false,
        };
        Self(Arc::new(Shared {
            store: Store::new(run.as_ref().unwrap_or(&absent)),
            watched: Watched::new(run.as_ref().unwrap_or(&absent)),
            answers: Arc::new(Answers::new(run.as_ref().unwrap_or(&absent))),
            compared: Arc::default(),
            explorers: Explorers::default(),
            streams: Arc::new(Semaphore::new(STREAMS)),
            tables: Arc::new(Tables::new(run.clone(), Limits::default())),
            run,
            absent,
            ending,
        }))
    }

    /// Run that is shown; a placeholder with the usual settings without a run.
    pub fn run(&self) -> &Run {
        self.0.run.as_ref().unwrap_or(&self.0.absent)
    }

    /// True if a run is shown.
    pub fn has_run(&self) -> bool {
        self.0.run.is_some()
    }

    /// Tables where people play.
    pub fn tables(&self) -> &Arc<Tables> {
        &self.0.tables
    }

    /// Stored games of the run.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// State of the run, which the overview shows.
    pub fn watched(&self) -> &Watched {
        &self.0.watched
    }

    /// Answers of the run's checkpoints about probe positions.
    pub fn answers(&self) -> &Arc<Answers> {
        &self.0.answers
    }

    /// Figures of runs that are compared.
    pub fn compared(&self) -> &Arc<Runs> {
        &self.0.compared
    }

    /// Open searches, whose trees are shown.
    pub fn explorers(&self) -> &Explorers {
        &self.0.explorers
    }

    /// Permission for one open stream, which is held while the stream is open; `None` if too many are open.
    pub fn stream_permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.streams).try_acquire_owned().ok()
    }

    /// Token that is cancelled when the studio stops. Every stream of events must end then.
    pub fn ending(&self) -> &CancellationToken {
        &self.0.ending
    }
}
