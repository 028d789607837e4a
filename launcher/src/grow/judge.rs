//! Is the larger network as good? A match against the run's newest checkpoint at equal visits says so: [`Judge`].
//!
//! A sequential test of "weaker by the margin" against "not weaker". Each test may err with the probabilities of `[rating]`; the next one
//! comes only after the network has trained on for a quarter of its steps, so that there are few of them.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::Context as _;
use arena::{
    matches::conduct::Ended,
    players::Networks,
    rating::{
        MATCHES, RatingError,
        duel::{self, Contender, Duel, Finished},
    },
    statistics::{EloModel, Sprt, SprtSettings, Verdict},
};
use checkpoints::{CANDIDATE, LATEST, Repository, Version};
use config::RunConfig;
use network::ModelName;
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use super::said::Said;

/// Plays matches, one after the other.
pub struct Judge {
    config: Arc<RunConfig>,
    matches: PathBuf,
    /// The larger network's model store.
    store: String,
    /// The run's.
    run: Repository,
    sprt: Sprt,
    networks: Arc<Mutex<Networks>>,
    stop: Arc<AtomicBool>,
    playing: Option<Playing>,
}

struct Playing {
    candidate: Version,
    opponent: Version,
    game: JoinHandle<Result<Finished, RatingError>>,
}

/// What a match has said.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// The larger network's checkpoint.
    pub candidate: Version,
    /// The run's.
    pub opponent: Version,
    /// How it ended.
    pub finished: Finished,
}

impl Judgement {
    /// Whether it is as good.
    pub fn is_good(&self) -> bool {
        self.finished.verdict == Verdict::Elo1
    }

    /// What is told of it.
    pub fn said(&self) -> Said {
        let live = &self.finished.live;
        let estimate = live.standing.estimate.as_ref();
        Said::Played {
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
}

impl Judge {
    /// A judge of the networks in `store`, who keeps matches below `folder`.
    ///
    /// # Errors
    /// Where `[rating]` and the margin make no test, or the run's model store cannot be opened.
    pub fn new(config: &RunConfig, folder: &Path, store: &str, margin: f64) -> anyhow::Result<Self> {
        let mut config = config.clone();
        // The larger network is in no server.
        config.rating.remote = false;
        let sprt = Sprt::new(SprtSettings {
            elo0: -margin,
            elo1: 0.0,
            alpha: config.rating.alpha,
            beta: config.rating.beta,
            model: EloModel::Logistic,
        })?;
        Ok(Self {
            run: Repository::open(&config.checkpoints.store)?,
            networks: Arc::new(Mutex::new(duel::networks(&config))),
            config: Arc::new(config),
            matches: folder.join(MATCHES),
            store: store.into(),
            sprt,
            stop: Arc::default(),
            playing: None,
        })
    }

    /// Whether a match is played.
    pub fn is_playing(&self) -> bool {
        self.playing.is_some()
    }

    /// Begins a match with a checkpoint of `grown`; gives the opponent, or `None` while the run has none.
    ///
    /// # Errors
    /// Where a store cannot be used.
    pub async fn begin(
        &mut self,
        grown: &Repository,
        candidate: &Version,
    ) -> anyhow::Result<Option<Version>> {
        let Some(opponent) = self.run.label(LATEST).await? else {
            return Ok(None);
        };
        // So that it is still there when it takes over.
        grown.set_label(CANDIDATE, candidate).await?;
        let contender = |store: &str, version: &Version| Contender {
            name: version.to_string(),
            network: ModelName::Store {
                url: store.into(),
                version: Some(version.to_string()),
            },
        };
        let contenders = [
            contender(&self.store, candidate),
            contender(&self.config.checkpoints.store, &opponent),
        ];
        let (config, networks, stop) = (self.config.clone(), self.networks.clone(), self.stop.clone());
        let (sprt, matches) = (self.sprt, self.matches.clone());
        let game = tokio::task::spawn_blocking(move || {
            let duel = Duel {
                config: &config,
                sprt,
                contenders,
                matches: &matches,
            };
            duel.play(&mut networks.lock(), &stop, &mut |_| {})
        });
        self.playing = Some(Playing {
            candidate: candidate.clone(),
            opponent: opponent.clone(),
            game,
        });
        Ok(Some(opponent))
    }

    /// Waits for the match that is played; for ever where there is none. `None` where a store was away, or a checkpoint gone.
    ///
    /// # Errors
    /// Where no match can be played.
    pub async fn judged(&mut self) -> anyhow::Result<Option<Judgement>> {
        let Some(playing) = &mut self.playing else {
            return std::future::pending().await;
        };
        let finished = (&mut playing.game)
            .await
            .context("the match ended without a word")?;
        let Some(Playing {
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

    /// Stops the match that is played; it can be gone on with.
    pub async fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(playing) = self.playing.take() {
            // What it was is of no interest any more.
            let _ = playing.game.await;
        }
    }
}

/// Keeps the match that decided among the run's own. One that cannot be moved is lost, and nothing else.
pub fn keep_match(config: &RunConfig, judgement: &Judgement) {
    let folder = &judgement.finished.folder;
    let matches = config.rating.folder.join(MATCHES);
    if let Some(name) = folder.file_name()
        && fs::create_dir_all(&matches).is_ok()
    {
        let _ = fs::rename(folder, matches.join(name));
    }
}
