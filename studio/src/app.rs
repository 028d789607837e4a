//! State that all pages share ([`App`]).

use std::{
    ops::Deref,
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
};

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

/// The shared state.
#[derive(Debug)]
pub struct Shared {
    /// Run that is shown; a placeholder with the usual settings without a run.
    pub run: Run,
    /// True if a run is shown.
    pub has_run: bool,
    /// True if people sign in, so that pages offer to sign out.
    pub has_sessions: AtomicBool,
    /// Token that is cancelled when the studio stops. Every stream of events must end then.
    pub ending: CancellationToken,
    /// Tables where people play.
    pub tables: Arc<Tables>,
    /// Stored games of the run.
    pub store: Store,
    /// State of the run, which the overview shows.
    pub watched: Watched,
    /// Answers of the run's checkpoints about probe positions.
    pub answers: Arc<Answers>,
    /// Figures of runs that are compared.
    pub compared: Runs,
    /// Open searches, whose trees are shown.
    pub explorers: Explorers,
    streams: Arc<Semaphore>,
}

impl Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl App {
    /// Creates the state. Open streams end when `ending` is cancelled. Without a run, only the pages that need none are served.
    pub fn new(run: impl Into<Option<Run>>, ending: CancellationToken) -> Self {
        let run = run.into();
        let tables = Arc::new(Tables::new(run.clone(), Limits::default()));
        let has_run = run.is_some();
        let run = run.unwrap_or_else(|| Run {
            folder: PathBuf::new(),
            name: "no run".into(),
            config: RunConfig::default(),
            is_elsewhere: false,
        });
        Self(Arc::new(Shared {
            store: Store::new(&run),
            watched: Watched::new(&run),
            answers: Arc::new(Answers::new(&run)),
            compared: Runs::default(),
            explorers: Explorers::default(),
            streams: Arc::new(Semaphore::new(STREAMS)),
            tables,
            run,
            has_run,
            has_sessions: AtomicBool::new(false),
            ending,
        }))
    }

    /// Permission for one open stream, which is held while the stream is open; `None` if too many are open.
    pub fn stream_permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.streams).try_acquire_owned().ok()
    }
}
