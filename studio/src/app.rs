//! State that all pages share ([`App`]), and the list of routes.

use std::{path::Path, sync::Arc};

use axum::{Router, response::Redirect, routing::get};
use config::RunConfig;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::{
    assets,
    failure::Failure,
    learn::{self, answers::Answers},
    matches,
    overview::{self, state::Watched},
    play::{self, tables::Tables},
    records, report,
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
    streams: Arc<Semaphore>,
}

/// The run that is shown.
#[derive(Clone, Debug)]
pub struct Run {
    /// Folder of the run, absolute.
    pub folder: std::path::PathBuf,
    /// Name for people: the last part of the folder's path.
    pub name: String,
    /// Configuration of the run.
    pub config: RunConfig,
}

/// Error: a folder is not that of a run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no such folder.
    #[error("there is no folder {}; `minuet up` makes a run, and --run names it", folder.display())]
    Missing {
        /// The folder.
        folder: std::path::PathBuf,
    },
    /// The folder has no configuration that can be used.
    #[error("{} is not the folder of a run", folder.display())]
    Config {
        /// The folder.
        folder: std::path::PathBuf,
        /// Cause.
        source: config::ConfigError,
    },
}

impl Run {
    /// Reads the configuration of the run in `folder`.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn open(folder: &Path) -> Result<Self, RunError> {
        let path = std::fs::canonicalize(folder).map_err(|_| RunError::Missing {
            folder: folder.into(),
        })?;
        let config = config::load(&path.join("run.toml")).map_err(|source| RunError::Config {
            folder: path.clone(),
            source,
        })?;
        let name = path.file_name().map_or_else(
            || config.game.name.clone(),
            |name| name.to_string_lossy().into_owned(),
        );
        Ok(Self {
            folder: path,
            name,
            config,
        })
    }
}

impl App {
    /// Creates the state. Open streams end when `ending` is cancelled. Without a run, only the pages that need none are served.
    pub fn new(run: impl Into<Option<Run>>, ending: CancellationToken) -> Self {
        let run = run.into();
        let absent = Run {
            folder: std::path::PathBuf::new(),
            name: "no run".into(),
            config: RunConfig::default(),
        };
        Self(Arc::new(Shared {
            store: Store::new(run.as_ref().unwrap_or(&absent)),
            watched: Watched::new(run.as_ref().unwrap_or(&absent)),
            answers: Arc::new(Answers::new(run.as_ref().unwrap_or(&absent))),
            streams: Arc::new(Semaphore::new(STREAMS)),
            tables: Arc::new(Tables::new(run.clone(), play::tables::Limits::default())),
            run,
            absent,
            ending,
        }))
    }

    /// Run that is shown; a stand-in with the usual settings if there is none.
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

    /// Permission for one open stream, which is held while the stream is open; `None` if too many are open.
    pub fn stream_permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.streams).try_acquire_owned().ok()
    }

    /// Token that is cancelled when the studio stops. Every stream of events must end then.
    pub fn ending(&self) -> &CancellationToken {
        &self.0.ending
    }
}

/// All routes.
pub fn routes(app: App) -> Router {
    let of_run = match app.has_run() {
        true => Router::new()
            .merge(overview::routes())
            .merge(records::routes())
            .merge(learn::routes())
            .merge(matches::routes())
            .merge(report::routes()),
        false => Router::new().route("/", get(async || Redirect::to("/play"))),
    };
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .merge(assets::routes())
        .merge(of_run)
        .merge(play::routes())
        .fallback(async || Failure::NoSuchPage)
        .with_state(app)
}
