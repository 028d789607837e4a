//! Matches of the larger network against the run's newest checkpoint, at equal visits: [`Judge`].
//!
//! Each match is a sequential test of "weaker by the margin" against "not weaker", with the error probabilities of `[rating]`.

use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::Context as _;
use arena::{
    matches::conduct::Ended,
    rating::{
        MATCHES, RatingError,
        duel::{self, Contender, Duel, Finished},
    },
    statistics::{EloModel, Sprt, SprtSettings, Verdict},
};
use checkpoints::{LATEST, Repository, Version};
use config::RunConfig;
use network::ModelName;
use tokio::task::JoinHandle;

use super::{CANDIDATE_LABEL, event::GrowEvent};

/// Plays one match at a time.
pub struct Judge {
    config: Arc<RunConfig>,
    /// Folder of the matches.
    matches: PathBuf,
    repository: Repository,
    sprt: Sprt,
    stop: Arc<AtomicBool>,
    playing: Option<Match>,
}

struct Match {
    candidate: Version,
    opponent: Version,
    task: JoinHandle<Result<Finished, RatingError>>,
}

/// Result of a match.
pub struct Judgement {
    /// Checkpoint of the larger network.
    pub candidate: Version,
    /// Checkpoint of the run.
    pub opponent: Version,
    finished: Finished,
}

impl Judgement {
    /// True if the larger network is not weaker by more than the margin.
    pub fn is_good(&self) -> bool {
        self.finished.verdict == Verdict::Elo1
    }

    /// The event that reports the match.
    pub fn event(&self) -> GrowEvent {
        let live = &self.finished.live;
        let estimate = live.standing.estimate.as_ref();
        GrowEvent::Played {
            candidate: self.candidate.to_string(),
            opponent: self.opponent.to_string(),
            verdict: match self.finished.verdict {
                Verdict::Elo1 => "good-enough",
                Verdict::Elo0 => "too-weak",
                Verdict::Undecided => "undecided",
            },
            games: live.games(),
            elo: estimate.and_then(|estimate| estimate.elo),
            elo_interval: estimate.map_or([None; 2], |estimate| estimate.elo_interval),
        }
    }

    /// Moves the match to the run's other matches. A match that cannot be moved is lost, nothing else.
    pub fn keep(&self, config: &RunConfig) {
        let matches = config.rating.folder.join(MATCHES);
        if let Some(name) = self.finished.folder.file_name()
            && fs::create_dir_all(&matches).is_ok()
        {
            let _ = durable::rename(&self.finished.folder, matches.join(name));
        }
    }
}

impl Judge {
    /// Prepares matches whose records are kept below `folder`. `margin` is in Elo.
    ///
    /// # Errors
    /// `[rating]` and the margin make no test.
    pub fn new(
        config: &RunConfig,
        folder: PathBuf,
        repository: Repository,
        margin: f64,
    ) -> anyhow::Result<Self> {
        let mut config = config.clone();
        // No inference server has loaded the larger network.
        config.rating.remote = false;
        let sprt = Sprt::new(SprtSettings {
            elo0: -margin,
            elo1: 0.0,
            alpha: config.rating.alpha,
            beta: config.rating.beta,
            model: EloModel::Logistic,
        })?;
        Ok(Self {
            matches: folder.join(MATCHES),
            config: Arc::new(config),
            repository,
            sprt,
            stop: Arc::default(),
            playing: None,
        })
    }

    /// True while a match is played.
    pub fn is_playing(&self) -> bool {
        self.playing.is_some()
    }

    /// Begins a match with a checkpoint of the larger network. Returns the opponent, or `None` if the run has no checkpoint yet.
    ///
    /// # Errors
    /// The model store fails.
    pub async fn begin(&mut self, candidate: &Version) -> anyhow::Result<Option<Version>> {
        let Some(opponent) = self.repository.label(LATEST).await? else {
            return Ok(None);
        };
        // The label protects the checkpoint from pruning until the takeover.
        self.repository.set_label(CANDIDATE_LABEL, candidate).await?;
        let (config, stop) = (self.config.clone(), self.stop.clone());
        let (sprt, matches) = (self.sprt, self.matches.clone());
        let contenders = [candidate, &opponent].map(|version| Contender {
            name: version.to_string(),
            network: ModelName::Store {
                url: config.checkpoints.store.clone(),
                version: Some(version.to_string()),
            },
        });
        let task = tokio::task::spawn_blocking(move || {
            let duel = Duel {
                config: &config,
                sprt,
                contenders,
                matches: &matches,
            };
            duel.play(&mut duel::networks(&config), &stop, &mut |_| {})
        });
        self.playing = Some(Match {
            candidate: candidate.clone(),
            opponent: opponent.clone(),
            task,
        });
        Ok(Some(opponent))
    }

    /// Waits for the end of the match; for ever if none is played. Returns `None` if a store did not answer or a checkpoint is gone.
    ///
    /// # Errors
    /// The match cannot be played.
    pub async fn result(&mut self) -> anyhow::Result<Option<Judgement>> {
        let Some(playing) = &mut self.playing else {
            return std::future::pending().await;
        };
        let finished = (&mut playing.task)
            .await
            .context("the match ended without a result")?;
        let Some(Match {
            candidate, opponent, ..
        }) = self.playing.take()
        else {
            return Ok(None);
        };
        match finished {
            Ok(finished) if finished.ended == Ended::Stopped => Ok(None),
            Ok(finished) => Ok(Some(Judgement {
                candidate,
                opponent,
                finished,
            })),
            Err(error) if error.is_temporary() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Stops the match; the next start continues it.
    pub async fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(playing) = self.playing.take() {
            let _ = playing.task.await;
        }
    }
}
