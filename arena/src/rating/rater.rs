//! Chooses the next match, plays it, and acts on its result: [`Rater`].

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context as _;
use checkpoints::{BEST, CANDIDATE, Error, LATEST, Repository, Version};
use config::RunConfig;
use parking_lot::Mutex;
use service::backoff::Backoff;
use tokio_util::sync::CancellationToken;

use super::{
    duel::{self, Contender, Duel, Finished, Live},
    error::is_temporary,
    metrics::{Metrics, Reporter},
    pairing::{Pairing, Purpose},
    ratings::{self, Ratings},
    results::{MATCHES, Outcome, RatedMatch, Results, keep_newest},
};
use network::ModelName;

use crate::{
    matches::{Budget, conduct::Ended},
    players::Networks,
    statistics::{Rating, Sprt},
};

/// Interval at which the ratings are computed during a match.
const SHOW_INTERVAL: Duration = Duration::from_secs(5);
/// Longest time of a match of a role with a share of the processor time below 1, so that later checkpoints are rated too.
const LONGEST: Duration = Duration::from_secs(600);
/// Error of a thread that has panicked.
const ENDED: &str = "the thread that plays the match has ended";

/// The running role.
pub struct Rater {
    config: Arc<RunConfig>,
    repository: Repository,
    results: Arc<Mutex<Results>>,
    reporter: Reporter,
    networks: Arc<Mutex<Networks>>,
    sprt: Sprt,
    budget: Arc<Budget>,
    metrics: Arc<Metrics>,
    shutdown: CancellationToken,
    /// The best checkpoint that the metrics show.
    shown: Option<Version>,
}

/// State of the present match, shared with the thread that plays it.
#[derive(Debug)]
struct MatchUnderWay {
    metrics: Arc<Metrics>,
    live: Mutex<Option<Live>>,
    stop: CancellationToken,
}

impl MatchUnderWay {
    /// Notes the state of the match. Games of the first state were counted when they were played.
    fn update(&self, live: &Live) {
        let before = self.live.lock().replace(live.clone());
        let before = before.map_or(live.games(), |before| before.games());
        let more = live.games().saturating_sub(before);
        self.metrics.games_played(more, live.log_likelihood_ratio);
    }
}

impl Rater {
    /// Opens the model store and the rating folder.
    ///
    /// # Errors
    /// One of them cannot be used.
    pub fn open(
        config: &RunConfig,
        sprt: Sprt,
        metrics: Arc<Metrics>,
        shutdown: CancellationToken,
    ) -> anyhow::Result<Self> {
        let folder = &config.rating.folder;
        Ok(Self {
            repository: Repository::open(&config.checkpoints.store)?,
            results: Arc::new(Mutex::new(Results::open(folder)?)),
            reporter: Reporter::new(folder),
            networks: Arc::new(Mutex::new(duel::networks(config))),
            sprt,
            budget: Arc::new(Budget::of_cores(config.rating.share)),
            config: Arc::new(config.clone()),
            metrics,
            shutdown,
            shown: None,
        })
    }

    /// Rates until the shutdown.
    ///
    /// # Errors
    /// The first error that is not temporary.
    pub async fn work(mut self) -> anyhow::Result<()> {
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
                Err(error) if is_temporary(&error) => {
                    if !wait(&error, &mut backoff, &shutdown).await {
                        return Ok(());
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the next match; `None` while there is no new checkpoint.
    async fn next(&mut self) -> anyhow::Result<Option<Pairing>> {
        let intended = self.results.lock().intended()?;
        if let Some(line) = intended {
            self.promote(line).await?;
        }
        let Some(best) = self.best().await? else {
            return Ok(None);
        };
        if self.shown.as_ref() != Some(&best) {
            if let Some(pairing) = self.place(&best).await? {
                return Ok(Some(pairing));
            }
            self.shown = Some(best.clone());
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

    /// Returns the best checkpoint: the one with the label, or else the oldest one. `None` if there is no checkpoint.
    async fn best(&self) -> anyhow::Result<Option<Version>> {
        if let Some(best) = self.repository.label(BEST).await? {
            return Ok(Some(best));
        }
        let Some(first) = self.repository.list().await?.into_iter().next() else {
            return Ok(None);
        };
        let version = first.version;
        if self.repository.swap_label(BEST, None, &version).await? {
            tracing::info!(%version, "no checkpoint is rated yet: the first one becomes the best one");
        }
        Ok(self.repository.label(BEST).await?)
    }

    /// Shows the rating of the best checkpoint. If it has no rating although others have, somebody has moved the label: returns
    /// the match that connects it with the rated ones.
    async fn place(&self, best: &Version) -> anyhow::Result<Option<Pairing>> {
        let (rated, members) = self
            .of_results({
                let best = best.clone();
                move |results| {
                    let rated = Ratings::of(results.lines(), None).rating(&best);
                    let members = ratings::members(results.lines()).into_iter().cloned();
                    (rated, members.collect::<Vec<_>>())
                }
            })
            .await?;
        if members.is_empty() || members.contains(best) {
            // Before any match the best checkpoint is the first one, which has Elo 0.
            let first = members.is_empty().then(Rating::default);
            self.metrics.best_rated(best, rated.or(first));
            return Ok(None);
        }
        self.metrics.best_rated(best, None);
        // If such a match was interrupted, its opponent still has the label `candidate`.
        let before = self.repository.label(CANDIDATE).await?;
        let before = before.filter(|before| members.contains(before));
        for opponent in before.into_iter().chain(members) {
            match self.repository.set_label(CANDIDATE, &opponent).await {
                Ok(()) => {
                    tracing::info!(version = %best, against = %opponent, "`best` was moved to a checkpoint that was never played; it plays now");
                    return Ok(Some(Pairing {
                        candidate: best.clone(),
                        opponent,
                        purpose: Purpose::Place,
                    }));
                }
                // This opponent was pruned or cannot be read; try the next one.
                Err(Error::NotFound { .. } | Error::Damaged { .. } | Error::Schema { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        tracing::warn!(
            version = %best,
            "`best` was moved to a checkpoint that was never played, and no rated checkpoint is left in the model store: \
             the ratings begin anew with this checkpoint at Elo 0"
        );
        self.metrics.best_rated(best, Some(Rating::default()));
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

    async fn rate(&mut self, pairing: &Pairing) -> anyhow::Result<()> {
        let Pairing {
            candidate, opponent, ..
        } = pairing;
        tracing::info!(%candidate, %opponent, "rating a checkpoint");
        let progress = Arc::new(MatchUnderWay {
            metrics: Arc::clone(&self.metrics),
            live: Mutex::default(),
            stop: CancellationToken::new(),
        });
        let mut playing = tokio::task::spawn_blocking({
            let (config, networks) = (self.config.clone(), self.networks.clone());
            let progress = Arc::clone(&progress);
            let (sprt, matches, budget) = (self.sprt, self.matches(), Arc::clone(&self.budget));
            let contenders = [self.contender(candidate), self.contender(opponent)];
            move || {
                let duel = Duel {
                    config: &config,
                    sprt,
                    contenders,
                    matches: &matches,
                    budget: &budget,
                };
                let mut networks = networks.lock();
                let played = duel.play(&mut networks, &progress.stop, &mut |live| {
                    progress.update(live);
                });
                networks.close_unused(0);
                played
            }
        });
        let mut stopped = None;
        let finished = {
            let watching = self.watch(pairing, &progress);
            tokio::select! {
                finished = &mut playing => finished,
                why = watching => {
                    stopped = Some(why);
                    progress.stop.cancel();
                    playing.await
                }
            }
        };
        let finished = finished.context(ENDED)??;
        progress.update(&finished.live);
        self.conclude(pairing, &finished, stopped).await
    }

    /// Shows the ratings during the match. Returns when the match should be stopped, and the outcome of a match that is stopped so.
    async fn watch(&self, pairing: &Pairing, progress: &MatchUnderWay) -> Outcome {
        let longest = tokio::time::sleep(LONGEST);
        tokio::pin!(longest);
        let poll = Duration::from_millis(self.config.checkpoints.poll_ms);
        let mut polls = tokio::time::interval(poll);
        let mut shows = tokio::time::interval(SHOW_INTERVAL);
        loop {
            tokio::select! {
                () = self.shutdown.cancelled() => return Outcome::Undecided,
                () = &mut longest, if self.config.rating.is_limited() => return Outcome::Undecided,
                _ = polls.tick() => {
                    // An error says nothing about the label, so the match continues.
                    let best = self.repository.label(BEST).await;
                    if best.is_ok_and(|best| best.as_ref() != Some(pairing.best())) {
                        return Outcome::Overtaken;
                    }
                }
                _ = shows.tick() => self.show(pairing, progress).await,
            }
        }
    }

    async fn show(&self, pairing: &Pairing, progress: &MatchUnderWay) {
        let Some(live) = progress.live.lock().clone() else {
            return;
        };
        let (playing, best) = (pairing.clone(), pairing.best().clone());
        let rated = self.of_results(move |results| {
            let live = (&playing.candidate, &playing.opponent, live.standing.pentanomial);
            let ratings = Ratings::of(results.lines(), Some(live));
            [&best, &playing.candidate].map(|version| ratings.rating(version))
        });
        // An error here means a panic, which the end of the match returns.
        if let Ok([best, candidate]) = rated.await {
            self.metrics.best_rated(pairing.best(), best);
            self.metrics.latest_rated(&pairing.candidate, candidate);
        }
    }

    /// Saves the result of a match, and promotes the candidate if it has won. An interrupted match has no result yet.
    async fn conclude(
        &mut self,
        pairing: &Pairing,
        finished: &Finished,
        stopped: Option<Outcome>,
    ) -> anyhow::Result<()> {
        if finished.ended == Ended::Stopped && self.shutdown.is_cancelled() {
            return Ok(());
        }
        let outcome = pairing.outcome(finished.ended, finished.verdict, stopped);
        let line = RatedMatch::new(&pairing.candidate, &pairing.opponent, outcome, &finished.live);
        if outcome == Outcome::Promoted {
            self.results.lock().intend(&line)?;
            self.promote(line).await
        } else {
            self.keep(line).await
        }
    }

    /// Completes a promotion: moves `best` to the candidate, provided that the label still names its opponent, and saves the result.
    async fn promote(&mut self, mut line: RatedMatch) -> anyhow::Result<()> {
        let RatedMatch {
            candidate, opponent, ..
        } = &line;
        let is_best = match self.repository.swap_label(BEST, Some(opponent), candidate).await {
            // The candidate was removed from the store.
            Err(Error::NotFound { .. }) => false,
            swapped => swapped?,
        };
        if is_best {
            tracing::info!(version = %candidate, instead_of = %opponent, "a checkpoint is promoted to `best`");
        } else {
            line.outcome = Outcome::Overtaken;
        }
        self.keep(line).await
    }

    /// Saves and reports a result.
    async fn keep(&mut self, line: RatedMatch) -> anyhow::Result<()> {
        let line = self.of_results(|results| results.add(line).cloned()).await??;
        self.metrics.match_finished(line.outcome);
        self.reporter.finished(&line);
        let [candidate, best] = line.ratings();
        self.metrics.latest_rated(&line.candidate, candidate);
        self.shown = None;
        if line.outcome != Outcome::Overtaken {
            self.metrics.best_rated(line.best(), best);
            self.shown = Some(line.best().clone());
        }
        let (matches, most) = (self.matches(), self.config.rating.keep_matches);
        let kept = tokio::task::spawn_blocking(move || keep_newest(&matches, most)).await;
        if let Ok(Err(error)) = kept {
            tracing::warn!(%error, "cannot remove old matches; trying again after the next match");
        }
        Ok(())
    }

    /// Runs `what` with the results on a thread for blocking work.
    async fn of_results<T: Send + 'static>(
        &self,
        what: impl FnOnce(&mut Results) -> T + Send + 'static,
    ) -> anyhow::Result<T> {
        let results = self.results.clone();
        let done = tokio::task::spawn_blocking(move || what(&mut results.lock())).await;
        done.context(ENDED)
    }

    fn contender(&self, version: &Version) -> Contender {
        let (config, name) = (&self.config, version.to_string());
        Contender {
            network: match config.rating.remote {
                // `[security]` decides whether TLS is used.
                true => ModelName::Server {
                    address: config.inference.address.clone(),
                    model: Some(name.clone()),
                },
                false => ModelName::Store {
                    url: config.checkpoints.store.clone(),
                    version: Some(name.clone()),
                },
            },
            name,
        }
    }
}

/// Waits before the next attempt. Returns false at shutdown.
pub(super) async fn wait(error: &anyhow::Error, backoff: &mut Backoff, shutdown: &CancellationToken) -> bool {
    if (backoff.attempts() + 1).is_power_of_two() {
        tracing::warn!(error = %format!("{error:#}"), "cannot rate; trying again");
    }
    backoff.wait(shutdown).await
}
