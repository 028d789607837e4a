//! What rating says of itself: metrics, and scalars for TensorBoard.
//!
//! | metric | what it is |
//! |---|---|
//! | `minuet_rating_elo`, `minuet_rating_elo_low`, `minuet_rating_elo_high` | rating above the first checkpoint, ends of its 95 % interval; label `checkpoint`: `best`, or `latest` (the newest that was rated, or is being rated); NaN: it has none |
//! | `minuet_rating_step` | training steps behind it; the same label |
//! | `minuet_rating_log_likelihood_ratio` | of the match that is played, or was played last |
//! | `minuet_rating_games_total`, `minuet_rating_matches_total`, `minuet_rating_promotions_total` | since the process was started |

use std::{
    io,
    path::{Path, PathBuf},
};

use checkpoints::Version;
use service::figures::EventFile;

use super::results::{Line, Outcome};
use crate::statistics::Rating;

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

/// Tells a checkpoint's rating. Where it has none, none is told: not that of the checkpoint before.
pub fn rated(whose: Whose, version: &Version, rated: Option<Rating>) {
    let label = whose.label();
    metrics::gauge!("minuet_rating_step", "checkpoint" => label).set(version.step() as f64);
    let Rating { elo, low, high } = rated.unwrap_or(Rating {
        elo: f64::NAN,
        low: f64::NAN,
        high: f64::NAN,
    });
    metrics::gauge!("minuet_rating_elo", "checkpoint" => label).set(elo);
    metrics::gauge!("minuet_rating_elo_low", "checkpoint" => label).set(low);
    metrics::gauge!("minuet_rating_elo_high", "checkpoint" => label).set(high);
}

/// Tells how far a match is.
pub fn playing(more_games: u64, log_likelihood_ratio: f64) {
    metrics::counter!("minuet_rating_games_total").increment(more_games);
    metrics::gauge!("minuet_rating_log_likelihood_ratio").set(log_likelihood_ratio);
}

/// Tells of matches that are over.
#[derive(Debug)]
pub struct Reporter {
    folder: PathBuf,
    /// Begun with the first match that is over while there is room for it.
    events: Option<EventFile>,
}

impl Reporter {
    /// With TensorBoard's files in `folder`.
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.join(EVENTS),
            events: None,
        }
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
        if let Err(error) = self.write(line.step, &scalars) {
            tracing::warn!(%error, "cannot write TensorBoard's scalars");
        }
    }

    fn write(&mut self, step: u64, scalars: &[(&str, f64)]) -> io::Result<()> {
        let events = match &mut self.events {
            Some(events) => events,
            None => self.events.insert(EventFile::create(&self.folder)?),
        };
        events.scalars(step, scalars)
    }
}
