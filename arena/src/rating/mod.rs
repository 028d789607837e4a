//! The rating role: plays new checkpoints against the best one, and moves the label `best` to a better one.
//!
//! | module | what it is for |
//! |---|---|
//! | [`duel`] | one match between two checkpoints, ended by a sequential test |
//! | [`results`] | all matches, and the ratings that follow from them |
//! | [`report`] | metrics, TensorBoard |
//! | [`error`] | what can go wrong |
//!
//! The newest checkpoint (`latest`) is the next candidate whenever a match is over, so rating never lags behind training by more than a
//! match; what was published in between is passed over. The label `candidate` keeps it from being pruned, and says which match
//! goes on after a restart. `best` is moved by compare-and-swap from the checkpoint that was played against: where
//! somebody else has moved it meanwhile, the match ends and its games count for the ratings only.
//!
//! What is kept lies in the folder `rating.folder`:
//!
//! | path | what it is |
//! |---|---|
//! | `metrics.jsonl` | a line for each match that is over, with the ratings after it |
//! | `matches/<candidate>-vs-<best>-<settings>/` | every match's games, as `minuet arena` keeps them |
//! | `tensorboard/` | Elo over training steps |
//! | `lock` | held by the one process that rates here |

pub mod duel;
pub mod error;
pub mod report;
pub mod results;

use std::{
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use checkpoints::{BEST, CANDIDATE, LATEST, Repository, Version};
use games::{
    Game,
    catalogue::{self, Visitor},
};
use parking_lot::Mutex;
use service::{
    backoff::Backoff,
    config::{ConfigError, RunConfig},
    role::Work,
};
use tokio_util::sync::CancellationToken;

use crate::{
    matches::conduct::Ended,
    model_name::ModelName,
    player::Networks,
    statistics::{Rated, Sprt, Verdict},
};
use duel::{Contender, Duel, Finished, Live};
use report::{Reporter, Whose};
use results::{Line, Outcome, Ratings, Results};

pub use error::RatingError;

const LOCK: &str = "lock";
/// Folder of the matches' folders.
pub const MATCHES: &str = "matches";
/// How often the ratings are computed while a match is played.
const SHOW: Duration = Duration::from_secs(5);

/// Rates until `shutdown`. A match that is interrupted goes on with the next start.
///
/// # Errors
/// [`RatingError`] where the run has nothing that could be rated, or its files cannot be used. The model store or the inference
/// server being away is no error.
pub fn run(config: RunConfig, shutdown: CancellationToken) -> Work {
    Box::pin(async move {
        report::register();
        check_game(&config.game.name)?;
        let sprt = duel::sprt(&config.rating)?;
        let _lock = take(&config.rating.folder)?;
        let folder = &config.rating.folder;
        let rater = Rater {
            repository: Repository::open(&config.checkpoints.store)?,
            results: Results::open(folder)?,
            reporter: Reporter::open(folder).map_err(|source| RatingError::Io {
                path: folder.clone(),
                source,
            })?,
            networks: Arc::new(Mutex::new(duel::networks(&config))),
            sprt,
            config: Arc::new(config),
            shutdown,
            told: None,
        };
        Ok(rater.work().await?)
    })
}

/// Checks that a game has somebody to play against.
///
/// # Errors
/// [`RatingError::Config`].
pub fn check_game(name: &str) -> Result<(), RatingError> {
    struct Players;

    impl Visitor for Players {
        type Output = u8;

        fn visit<G: Game>(self) -> u8 {
            G::PLAYERS
        }
    }

    match catalogue::visit(name, Players).map_err(RatingError::of_game)? {
        1 => Err(RatingError::Config(ConfigError::Game(format!(
            "`rating.enabled`: {name} has one player, so checkpoints cannot play each other; `minuet bench {name}` measures them"
        )))),
        _ => Ok(()),
    }
}

/// Takes the folder for this process; it is given back when the file is closed.
fn take(folder: &Path) -> Result<File, RatingError> {
    let path = folder.join(LOCK);
    let io = |source| RatingError::Io {
        path: path.clone(),
        source,
    };
    fs::create_dir_all(folder).map_err(io)?;
    let file = File::create(&path).map_err(io)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(RatingError::Taken(folder.into())),
        Err(TryLockError::Error(source)) => Err(io(source)),
    }
}

/// Who plays whom.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pairing {
    candidate: Version,
    best: Version,
}

struct Rater {
    config: Arc<RunConfig>,
    repository: Repository,
    results: Results,
    reporter: Reporter,
    networks: Arc<Mutex<Networks>>,
    sprt: Sprt,
    shutdown: CancellationToken,
    /// The best checkpoint whose rating was told.
    told: Option<Version>,
}

/// What a match has come to, for those who look from outside.
#[derive(Debug, Default)]
struct Seen {
    live: Mutex<Option<Live>>,
    games: AtomicU64,
    stop: AtomicBool,
}

impl Seen {
    fn tell(&self, live: &Live) {
        let before = self.games.swap(live.games(), Ordering::Relaxed);
        report::playing(live.games().saturating_sub(before), live.log_likelihood_ratio);
        *self.live.lock() = Some(live.clone());
    }
}

impl Rater {
    async fn work(mut self) -> Result<(), RatingError> {
        let poll = Duration::from_millis(self.config.checkpoints.poll_ms);
        let shutdown = self.shutdown.clone();
        let mut backoff = Backoff::for_connections();
        loop {
            let next = tokio::select! {
                biased;
                () = shutdown.cancelled() => return Ok(()),
                next = self.next() => next,
            };
            let done = match next {
                Ok(Some(pairing)) => self.rate(&pairing).await.map(|()| true),
                Ok(None) => Ok(false),
                Err(error) => Err(error),
            };
            match done {
                Ok(true) => backoff.reset(),
                Ok(false) => {
                    backoff.reset();
                    tokio::select! {
                        () = shutdown.cancelled() => return Ok(()),
                        () = tokio::time::sleep(poll) => {}
                    }
                }
                Err(error) if error.is_passing() => {
                    if (backoff.attempts() + 1).is_power_of_two() {
                        tracing::warn!(%error, "cannot rate; trying again");
                    }
                    if !backoff.wait(&shutdown).await {
                        return Ok(());
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The match to be played now; `None` while there is nothing new.
    async fn next(&mut self) -> Result<Option<Pairing>, RatingError> {
        let Some(best) = self.best().await? else {
            return Ok(None);
        };
        if self.told.as_ref() != Some(&best) {
            let ratings = Ratings::of(self.results.lines(), None);
            // Before any match the best one is the first one.
            let first = self.results.lines().is_empty().then(Rated::default);
            report::rated(Whose::Best, &best, ratings.rated(&best).or(first));
            self.told = Some(best.clone());
        }
        if let Some(candidate) = self.repository.label(CANDIDATE).await?
            && self.is_interrupted(&candidate, &best)
        {
            return Ok(Some(Pairing { candidate, best }));
        }
        match self.repository.label(LATEST).await? {
            Some(candidate) if candidate != best && !self.results.has(&candidate, &best) => {
                self.repository.set_label(CANDIDATE, &candidate).await?;
                Ok(Some(Pairing { candidate, best }))
            }
            _ => Ok(None),
        }
    }

    /// The best checkpoint; the oldest one where none was ever called so, and `None` where there is none at all.
    async fn best(&self) -> Result<Option<Version>, RatingError> {
        if let Some(best) = self.repository.label(BEST).await? {
            return Ok(Some(best));
        }
        let Some(first) = self.repository.list().await?.into_iter().next() else {
            return Ok(None);
        };
        let version = first.version;
        if self.repository.swap_label(BEST, None, &version).await? {
            tracing::info!(%version, "nothing was rated yet: the first checkpoint is the best one");
        }
        Ok(self.repository.label(BEST).await?)
    }

    fn is_interrupted(&self, candidate: &Version, best: &Version) -> bool {
        if candidate == best || self.results.has(candidate, best) {
            return false;
        }
        let prefix = duel::folder_prefix(candidate.as_str(), best.as_str());
        let folders = fs::read_dir(self.matches());
        folders.is_ok_and(|folders| {
            folders
                .flatten()
                .any(|folder| folder.file_name().to_string_lossy().starts_with(&prefix))
        })
    }

    fn matches(&self) -> PathBuf {
        self.config.rating.folder.join(MATCHES)
    }

    async fn rate(&mut self, pairing: &Pairing) -> Result<(), RatingError> {
        let Pairing { candidate, best } = pairing;
        tracing::info!(%candidate, %best, "rating a checkpoint");
        let seen = Arc::new(Seen::default());
        let mut playing = tokio::task::spawn_blocking({
            let (config, networks, seen) = (self.config.clone(), self.networks.clone(), seen.clone());
            let (sprt, matches) = (self.sprt, self.matches());
            let contenders = [self.contender(candidate), self.contender(best)];
            move || {
                let duel = Duel {
                    config: &config,
                    sprt,
                    contenders,
                    matches: &matches,
                };
                duel.play(&mut networks.lock(), &seen.stop, &mut |live| seen.tell(live))
            }
        });
        let finished = {
            let watching = self.watch(pairing, &seen);
            tokio::select! {
                finished = &mut playing => finished,
                () = watching => {
                    seen.stop.store(true, Ordering::Relaxed);
                    playing.await
                }
            }
        };
        let finished = finished.map_err(|error| RatingError::Thread(error.to_string()))??;
        seen.tell(&finished.live);
        self.conclude(pairing, &finished).await
    }

    /// Shows how the match stands; ends when it should be stopped.
    async fn watch(&self, pairing: &Pairing, seen: &Seen) {
        let poll = Duration::from_millis(self.config.checkpoints.poll_ms);
        let mut looks = tokio::time::interval(poll);
        let mut shows = tokio::time::interval(SHOW);
        loop {
            tokio::select! {
                () = self.shutdown.cancelled() => return,
                _ = looks.tick() => {
                    // A store that is away says nothing of who is the best.
                    let best = self.repository.label(BEST).await;
                    if best.is_ok_and(|best| best.as_ref() != Some(&pairing.best)) {
                        return;
                    }
                }
                _ = shows.tick() => self.show(pairing, seen),
            }
        }
    }

    fn show(&self, pairing: &Pairing, seen: &Seen) {
        let Some(live) = seen.live.lock().clone() else {
            return;
        };
        let Pairing { candidate, best } = pairing;
        let playing = Some((candidate, best, live.standing.pentanomial));
        let ratings = Ratings::of(self.results.lines(), playing);
        report::rated(Whose::Best, best, ratings.rated(best));
        report::rated(Whose::Latest, candidate, ratings.rated(candidate));
    }

    /// Promotes the candidate where it has won, and keeps the result. An interrupted match has none yet.
    async fn conclude(&mut self, pairing: &Pairing, finished: &Finished) -> Result<(), RatingError> {
        let Pairing { candidate, best } = pairing;
        let outcome = match (finished.ended, finished.verdict) {
            (Ended::Stopped, _) if self.shutdown.is_cancelled() => return Ok(()),
            (Ended::Stopped, _) => Outcome::Overtaken,
            (_, Verdict::Elo1) if self.promote(pairing).await? => Outcome::Promoted,
            (_, Verdict::Elo1) => Outcome::Overtaken,
            (_, Verdict::Elo0) => Outcome::Kept,
            (_, Verdict::Undecided) => Outcome::Undecided,
        };
        let line = Line::new(candidate, best, outcome, &finished.live);
        let line = self.results.add(line)?;
        self.reporter.finished(line);
        let now = line.best().clone();
        let ratings = Ratings::of(self.results.lines(), None);
        report::rated(Whose::Best, &now, ratings.rated(&now));
        report::rated(Whose::Latest, candidate, ratings.rated(candidate));
        self.told = Some(now);
        Ok(())
    }

    /// Moves `best`, if it still is where the match was played against; says whether it is the candidate now.
    async fn promote(&self, pairing: &Pairing) -> Result<bool, RatingError> {
        let Pairing { candidate, best } = pairing;
        let is_best = self.repository.swap_label(BEST, Some(best), candidate).await?;
        if is_best {
            tracing::info!(version = %candidate, instead_of = %best, "there is a better checkpoint");
        }
        Ok(is_best)
    }

    fn contender(&self, version: &Version) -> Contender {
        let config = &self.config;
        let version = version.to_string();
        Contender {
            name: version.clone(),
            network: if config.rating.remote {
                ModelName::Server {
                    // Whether TLS is spoken follows from `[security]`.
                    address: config.inference.address.clone(),
                    model: Some(version),
                }
            } else {
                ModelName::Store {
                    url: config.checkpoints.store.clone(),
                    version: Some(version),
                }
            },
        }
    }
}
