//! Reports of the rating role: the metrics page ([`Metrics`]), a log line and scalars for TensorBoard ([`Reporter`]).

use std::{
    io,
    path::{Path, PathBuf},
};

use checkpoints::Version;
use metrics::{Counter, Gauge, counter, describe_counter, describe_gauge, gauge};
use service::figures::EventFile;

use super::results::{Outcome, RatedMatch};
use crate::statistics::Rating;

/// Metrics of the rating role. Every metric is on the page from the start, so that an alert sees the first event as a rise.
#[derive(Debug)]
pub struct Metrics {
    games: Counter,
    matches: Counter,
    promotions: Counter,
    log_likelihood_ratio: Gauge,
    best: RatingGauges,
    latest: RatingGauges,
}

/// The gauges of one checkpoint. Ratings are NaN while the checkpoint has none.
#[derive(Debug)]
struct RatingGauges {
    step: Gauge,
    /// Rating, and the ends of its interval.
    elo: [Gauge; 3],
}

impl RatingGauges {
    fn new(checkpoint: &'static str) -> Self {
        let gauge = |name, description| {
            describe_gauge!(name, description);
            gauge!(name, "checkpoint" => checkpoint)
        };
        Self {
            step: gauge("minuet_rating_step", "Training steps of the checkpoint."),
            elo: [
                gauge(
                    "minuet_rating_elo",
                    "Elo above the first checkpoint; NaN without a rating.",
                ),
                gauge(
                    "minuet_rating_elo_low",
                    "Lower end of the 95 % interval of the Elo rating.",
                ),
                gauge(
                    "minuet_rating_elo_high",
                    "Upper end of the 95 % interval of the Elo rating.",
                ),
            ],
        }
    }

    fn set(&self, version: &Version, rating: Option<Rating>) {
        let figures = rating.map_or([f64::NAN; 3], |rating| [rating.elo, rating.low, rating.high]);
        self.step.set(version.step() as f64);
        for (gauge, figure) in self.elo.iter().zip(figures) {
            gauge.set(figure);
        }
    }
}

impl Metrics {
    /// Describes and registers the metrics with the recorder that is installed by now.
    pub fn register() -> Self {
        let counter = |name, description| {
            describe_counter!(name, description);
            counter!(name)
        };
        let ratio = "minuet_rating_log_likelihood_ratio";
        describe_gauge!(
            ratio,
            "Log-likelihood ratio of the present match, or of the last one."
        );
        Self {
            games: counter(
                "minuet_rating_games_total",
                "Games played since the start of the process.",
            ),
            matches: counter(
                "minuet_rating_matches_total",
                "Matches finished since the start of the process.",
            ),
            promotions: counter(
                "minuet_rating_promotions_total",
                "Promotions since the start of the process.",
            ),
            log_likelihood_ratio: gauge!(ratio),
            best: RatingGauges::new("best"),
            latest: RatingGauges::new("latest"),
        }
    }

    /// Shows the best checkpoint and its rating.
    pub fn best_rated(&self, version: &Version, rating: Option<Rating>) {
        self.best.set(version, rating);
    }

    /// Shows the newest checkpoint that was or is being rated, and its rating.
    pub fn latest_rated(&self, version: &Version, rating: Option<Rating>) {
        self.latest.set(version, rating);
    }

    /// Counts games of the present match and shows the state of its test.
    pub fn games_played(&self, games: u64, log_likelihood_ratio: f64) {
        self.games.increment(games);
        self.log_likelihood_ratio.set(log_likelihood_ratio);
    }

    /// Counts a finished match.
    pub fn match_finished(&self, outcome: Outcome) {
        self.matches.increment(1);
        if outcome == Outcome::Promoted {
            self.promotions.increment(1);
        }
    }
}

/// Folder of TensorBoard's files in the rating folder.
const EVENTS: &str = "tensorboard";

/// Reports finished matches to the log and to TensorBoard.
#[derive(Debug)]
pub struct Reporter {
    folder: PathBuf,
    /// Created with the first finished match for which the disk has room.
    events: Option<EventFile>,
}

impl Reporter {
    /// Returns a reporter that writes TensorBoard's files below `folder`.
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.join(EVENTS),
            events: None,
        }
    }

    /// Reports a finished match. If the disk is full, only the scalars are missing; the rating continues.
    pub fn finished(&mut self, line: &RatedMatch) {
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
            tracing::warn!(%error, "cannot write the scalars for TensorBoard");
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
