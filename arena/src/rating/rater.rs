//! What is played next, and what becomes of it: [`Rater`].

use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use checkpoints::{BEST, CANDIDATE, Error, LATEST, Repository, Version};
use config::RunConfig;
use parking_lot::Mutex;
use service::backoff::Backoff;
use tokio_util::sync::CancellationToken;

use super::{
    MATCHES, RatingError,
    duel::{self, Contender, Duel, Finished, Live},
    keeping,
    ratings::{self, Ratings},
    report::{self, Reporter, Whose},
    results::{Line, Outcome, Results},
    wait,
};
use network::ModelName;

use crate::{
    matches::conduct::Ended,
    players::Networks,
    statistics::{Rated, Sprt, Verdict},
};

/// How often the ratings are computed while a match is played.
const SHOW: Duration = Duration::from_secs(5);

/// Who plays whom.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pairing {
    candidate: Version,
    opponent: Version,
    purpose: Purpose,
}

/// What a match is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// The candidate may take the place of the best one, its opponent.
    Challenge,
    /// The candidate is the best one, and nothing says how strong it is.
    Place,
}

impl Pairing {
    fn best(&self) -> &Version {
        match self.purpose {
            Purpose::Challenge => &self.opponent,
            Purpose::Place => &self.candidate,
        }
    }
}

/// The role at work.
pub struct Rater {
    config: Arc<RunConfig>,
    repository: Repository,
    results: Arc<Mutex<Results>>,
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
    stop: AtomicBool,
}

impl Seen {
    /// Games that were played before the first word of a match were counted when they were played.
    fn tell(&self, live: &Live) {
        let before = self.live.lock().replace(live.clone());
        let before = before.map_or(live.games(), |before| before.games());
        report::playing(live.games().saturating_sub(before), live.log_likelihood_ratio);
    }
}

impl Rater {
    /// Opens what `[rating]` names.
    ///
    /// # Errors
    /// [`RatingError`].
    pub fn open(config: &RunConfig, sprt: Sprt, shutdown: CancellationToken) -> Result<Self, RatingError> {
        let folder = &config.rating.folder;
        Ok(Self {
            repository: Repository::open(&config.checkpoints.store)?,
            results: Arc::new(Mutex::new(Results::open(folder)?)),
            reporter: Reporter::new(folder),
            networks: Arc::new(Mutex::new(duel::networks(config))),
            sprt,
            config: Arc::new(config.clone()),
            shutdown,
            told: None,
        })
    }

    /// Rates until it is told to stop.
    ///
    /// # Errors
    /// [`RatingError`] that does not pass.
    pub async fn work(mut self) -> Result<(), RatingError> {
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
                    if !wait(&error, &mut backoff, &shutdown).await {
                        return Ok(());
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The match to be played now; `None` while there is nothing new.
    async fn next(&mut self) -> Result<Option<Pairing>, RatingError> {
        let intended = self.results.lock().intended()?;
        if let Some(line) = intended {
            self.promote(line).await?;
        }
        let Some(best) = self.best().await? else {
            return Ok(None);
        };
        if self.told.as_ref() != Some(&best) {
            if let Some(pairing) = self.take_in(&best).await? {
                return Ok(Some(pairing));
            }
            self.told = Some(best.clone());
        }
        let challenge = |candidate| Pairing {
            candidate,
            opponent: best.clone(),
            purpose: Purpose::Challenge,
        };
        if let Some(candidate) = self.repository.label(CANDIDATE).await?
            && self.is_interrupted(&candidate, &best)
        {
            return Ok(Some(challenge(candidate)));
        }
        match self.repository.label(LATEST).await? {
            Some(candidate) if candidate != best && !self.results.lock().has(&candidate, &best) => {
                self.repository.set_label(CANDIDATE, &candidate).await?;
                Ok(Some(challenge(candidate)))
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

    /// Tells the rating of a checkpoint that is the best one now. Where it has none and others have, somebody has moved the label: gives the match
    /// that connects it with them.
    async fn take_in(&self, best: &Version) -> Result<Option<Pairing>, RatingError> {
        let (rated, members) = self
            .of_results({
                let best = best.clone();
                move |results| {
                    let rated = Ratings::of(results.lines(), None).rated(&best);
                    let members = ratings::members(results.lines()).into_iter().cloned();
                    (rated, members.collect::<Vec<_>>())
                }
            })
            .await?;
        if members.is_empty() || members.contains(best) {
            // Before any match the best one is the first one.
            let first = members.is_empty().then(Rated::default);
            report::rated(Whose::Best, best, rated.or(first));
            return Ok(None);
        }
        report::rated(Whose::Best, best, None);
        // Where such a match was interrupted, its opponent has the label that keeps it from being pruned.
        let before = self.repository.label(CANDIDATE).await?;
        let before = before.filter(|before| members.contains(before));
        for opponent in before.into_iter().chain(members) {
            match self.repository.set_label(CANDIDATE, &opponent).await {
                Ok(()) => {
                    tracing::info!(version = %best, against = %opponent, "`best` was moved to a checkpoint that was never played: it is played now");
                    return Ok(Some(Pairing {
                        candidate: best.clone(),
                        opponent,
                        purpose: Purpose::Place,
                    }));
                }
                // It was pruned, or cannot be read.
                Err(Error::NotFound { .. } | Error::Damaged { .. } | Error::Schema { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        tracing::warn!(
            version = %best,
            "`best` was moved to a checkpoint that was never played, and none that was played is left in the model store: \
             the ratings begin anew, above this one"
        );
        report::rated(Whose::Best, best, Some(Rated::default()));
        Ok(None)
    }

    fn is_interrupted(&self, candidate: &Version, best: &Version) -> bool {
        if candidate == best || self.results.lock().has(candidate, best) {
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
        let Pairing {
            candidate, opponent, ..
        } = pairing;
        tracing::info!(%candidate, %opponent, "rating a checkpoint");
        let seen = Arc::new(Seen::default());
        let mut playing = tokio::task::spawn_blocking({
            let (config, networks, seen) = (self.config.clone(), self.networks.clone(), seen.clone());
            let (sprt, matches) = (self.sprt, self.matches());
            let contenders = [self.contender(candidate), self.contender(opponent)];
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
                    if best.is_ok_and(|best| best.as_ref() != Some(pairing.best())) {
                        return;
                    }
                }
                _ = shows.tick() => self.show(pairing, seen).await,
            }
        }
    }

    async fn show(&self, pairing: &Pairing, seen: &Seen) {
        let Some(live) = seen.live.lock().clone() else {
            return;
        };
        let (playing, best) = (pairing.clone(), pairing.best().clone());
        let rated = self.of_results(move |results| {
            let live = (&playing.candidate, &playing.opponent, live.standing.pentanomial);
            let ratings = Ratings::of(results.lines(), Some(live));
            [&best, &playing.candidate].map(|version| ratings.rated(version))
        });
        // Where it panicked, so will what counts.
        if let Ok([best, candidate]) = rated.await {
            report::rated(Whose::Best, pairing.best(), best);
            report::rated(Whose::Latest, &pairing.candidate, candidate);
        }
    }

    /// Promotes the candidate where it has won, and keeps the result. An interrupted match has none yet.
    async fn conclude(&mut self, pairing: &Pairing, finished: &Finished) -> Result<(), RatingError> {
        let outcome = match (finished.ended, pairing.purpose, finished.verdict) {
            (Ended::Stopped, _, _) if self.shutdown.is_cancelled() => return Ok(()),
            (Ended::Stopped, _, _) => Outcome::Overtaken,
            (_, Purpose::Place, _) => Outcome::Placed,
            (_, Purpose::Challenge, Verdict::Elo1) => Outcome::Promoted,
            (_, Purpose::Challenge, Verdict::Elo0) => Outcome::Kept,
            (_, Purpose::Challenge, Verdict::Undecided) => Outcome::Undecided,
        };
        let line = Line::new(&pairing.candidate, &pairing.opponent, outcome, &finished.live);
        if outcome == Outcome::Promoted {
            self.results.lock().intend(&line)?;
            self.promote(line).await
        } else {
            self.keep(line).await
        }
    }

    /// Moves `best` to the candidate of a promotion that was written down, if it still is where the match was played against, and keeps the result.
    async fn promote(&mut self, mut line: Line) -> Result<(), RatingError> {
        let Line {
            candidate, opponent, ..
        } = &line;
        let is_best = match self.repository.swap_label(BEST, Some(opponent), candidate).await {
            // It is gone, so nobody can play with it.
            Err(Error::NotFound { .. }) => false,
            swapped => swapped?,
        };
        if is_best {
            tracing::info!(version = %candidate, instead_of = %opponent, "there is a better checkpoint");
        } else {
            line.outcome = Outcome::Overtaken;
        }
        self.keep(line).await
    }

    /// Keeps and tells a result.
    async fn keep(&mut self, line: Line) -> Result<(), RatingError> {
        let line = self.of_results(|results| results.add(line).cloned()).await??;
        self.reporter.finished(&line);
        let [candidate, best] = line.ratings();
        report::rated(Whose::Latest, &line.candidate, candidate);
        self.told = None;
        if line.outcome != Outcome::Overtaken {
            report::rated(Whose::Best, line.best(), best);
            self.told = Some(line.best().clone());
        }
        let (matches, most) = (self.matches(), self.config.rating.keep_matches);
        let kept = tokio::task::spawn_blocking(move || keeping::keep_newest(&matches, most)).await;
        if let Ok(Err(error)) = kept {
            tracing::warn!(%error, "cannot remove old matches; trying again after the next one");
        }
        Ok(())
    }

    /// Does something with the results where it holds nobody up.
    async fn of_results<T: Send + 'static>(
        &self,
        what: impl FnOnce(&mut Results) -> T + Send + 'static,
    ) -> Result<T, RatingError> {
        let results = self.results.clone();
        tokio::task::spawn_blocking(move || what(&mut results.lock()))
            .await
            .map_err(|error| RatingError::Thread(error.to_string()))
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
