//! The metrics of the rating role: [`Metrics`].

use checkpoints::Version;
use metrics::{Counter, Gauge, counter, describe_counter, describe_gauge, gauge};

use super::line::Outcome;
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
    elo: Gauge,
    low: Gauge,
    high: Gauge,
}

impl RatingGauges {
    fn new(checkpoint: &'static str) -> Self {
        Self {
            step: gauge!("minuet_rating_step", "checkpoint" => checkpoint),
            elo: gauge!("minuet_rating_elo", "checkpoint" => checkpoint),
            low: gauge!("minuet_rating_elo_low", "checkpoint" => checkpoint),
            high: gauge!("minuet_rating_elo_high", "checkpoint" => checkpoint),
        }
    }

    fn set(&self, version: &Version, rating: Option<Rating>) {
        let Rating { elo, low, high } = rating.unwrap_or(Rating {
            elo: f64::NAN,
            low: f64::NAN,
            high: f64::NAN,
        });
        self.step.set(version.step() as f64);
        self.elo.set(elo);
        self.low.set(low);
        self.high.set(high);
    }
}

impl Metrics {
    /// Describes and registers the metrics with the recorder that is installed by now.
    pub fn new() -> Self {
        describe_counter!(
            "minuet_rating_games_total",
            "Games played since the start of the process."
        );
        describe_counter!(
            "minuet_rating_matches_total",
            "Matches finished since the start of the process."
        );
        describe_counter!(
            "minuet_rating_promotions_total",
            "Promotions since the start of the process."
        );
        describe_gauge!(
            "minuet_rating_log_likelihood_ratio",
            "Log-likelihood ratio of the present match, or of the last one."
        );
        describe_gauge!("minuet_rating_step", "Training steps of the checkpoint.");
        describe_gauge!(
            "minuet_rating_elo",
            "Elo above the first checkpoint; NaN without a rating."
        );
        describe_gauge!(
            "minuet_rating_elo_low",
            "Lower end of the 95 % interval of the Elo rating."
        );
        describe_gauge!(
            "minuet_rating_elo_high",
            "Upper end of the 95 % interval of the Elo rating."
        );
        let metrics = Self {
            games: counter!("minuet_rating_games_total"),
            matches: counter!("minuet_rating_matches_total"),
            promotions: counter!("minuet_rating_promotions_total"),
            log_likelihood_ratio: gauge!("minuet_rating_log_likelihood_ratio"),
            best: RatingGauges::new("best"),
            latest: RatingGauges::new("latest"),
        };
        for counter in [&metrics.games, &metrics.matches, &metrics.promotions] {
            counter.increment(0);
        }
        metrics
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

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}
