//! What rating says of itself: metrics, and scalars for TensorBoard.
//!
//! | metric | what it is |
//! |---|---|
//! | `minuet_rating_elo`, `minuet_rating_elo_low`, `minuet_rating_elo_high` | rating above the first checkpoint, ends of its 95 % interval; label `checkpoint`: `best`, or `latest` (the newest that was rated, or is being rated) |
//! | `minuet_rating_step` | training steps behind it; the same label |
//! | `minuet_rating_log_likelihood_ratio` | of the match that is played, or was played last |
//! | `minuet_rating_games_total`, `minuet_rating_matches_total`, `minuet_rating_promotions_total` | since the process was started |

use std::{io, path::Path};

use checkpoints::Version;
use service::figures::EventFile;

use super::results::{Line, Outcome};
use crate::statistics::Rated;

/// Folder of TensorBoard's files in the rating folder.
const EVENTS: &str = "tensorboard";

/// Whose rating is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The best one's.
    Best,
    /// The newest one's.
    Latest,
}

impl Whose {
    fn label(self) -> &'static str {
        match self {
            Self::Best => "best",
            Self::Latest => "latest",
        }
    }
}

/// Counters that an alert or a dashboard looks at are there from the start, so that the first event is seen as a rise.
pub fn register() {
    for counter in [
        "minuet_rating_games_total",
        "minuet_rating_matches_total",
        "minuet_rating_promotions_total",
    ] {
        metrics::counter!(counter).increment(0);
    }
}

/// Tells a checkpoint's rating, if it has one.
pub fn rated(whose: Whose, version: &Version, rated: Option<Rated>) {
    let label = whose.label();
    metrics::gauge!("minuet_rating_step", "checkpoint" => label).set(version.step() as f64);
    if let Some(Rated { elo, low, high }) = rated {
        metrics::gauge!("minuet_rating_elo", "checkpoint" => label).set(elo);
        metrics::gauge!("minuet_rating_elo_low", "checkpoint" => label).set(low);
        metrics::gauge!("minuet_rating_elo_high", "checkpoint" => label).set(high);
    }
}

/// Tells how far a match is.
pub fn playing(more_games: u64, log_likelihood_ratio: f64) {
    metrics::counter!("minuet_rating_games_total").increment(more_games);
    metrics::gauge!("minuet_rating_log_likelihood_ratio").set(log_likelihood_ratio);
}

/// Tells of matches that are over.
#[derive(Debug)]
pub struct Reporter {
    events: EventFile,
}

impl Reporter {
    /// Begins an event file in `folder`.
    ///
    /// # Errors
    /// What the file system says.
    pub fn open(folder: &Path) -> io::Result<Self> {
        Ok(Self {
            events: EventFile::create(&folder.join(EVENTS))?,
        })
    }

    /// A match is over. A disk that is full costs the scalars, not the rating.
    pub fn finished(&mut self, line: &Line) {
        metrics::counter!("minuet_rating_matches_total").increment(1);
        if line.outcome == Outcome::Promoted {
            metrics::counter!("minuet_rating_promotions_total").increment(1);
        }
        tracing::info!(
            candidate = %line.candidate,
            opponent = %line.opponent,
            outcome = ?line.outcome,
            wins = line.wins,
            draws = line.draws,
            losses = line.losses,
            log_likelihood_ratio = line.log_likelihood_ratio,
            elo = line.elo,
            best_elo = line.best_elo,
            "rated a checkpoint"
        );
        let mut scalars = vec![("rating/games", line.games as f64)];
        if let (Some(elo), Some([low, high])) = (line.elo, line.elo_interval) {
            scalars.extend([
                ("elo/latest", elo),
                ("elo/latest_low", low),
                ("elo/latest_high", high),
            ]);
        }
        if let (Some(elo), Some([low, high])) = (line.best_elo, line.best_elo_interval) {
            scalars.extend([("elo/best", elo), ("elo/best_low", low), ("elo/best_high", high)]);
        }
        if let Err(error) = self.events.scalars(line.step, &scalars) {
            tracing::warn!(%error, "cannot write TensorBoard's scalars");
        }
    }
}
