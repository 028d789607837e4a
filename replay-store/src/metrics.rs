//! Prometheus metrics of the store. Handles are made once, so that each metric is on the page from the start.

use metrics::{
    Counter, Gauge, Histogram, counter, describe_counter, describe_gauge, describe_histogram, gauge,
    histogram,
};

use crate::window::Window;

const REFUSED: &str = "minuet_replay_games_refused_total";

/// Handles of the store's metrics. Their descriptions are in [`Metrics::new`].
#[derive(Debug)]
pub(crate) struct Metrics {
    window_games: Gauge,
    window_positions: Gauge,
    stored_bytes: Gauge,
    pub disk_bytes: Gauge,
    pub disk_limit_bytes: Gauge,
    pub cache_bytes: Gauge,
    pub games_inserted: Counter,
    pub positions_inserted: Counter,
    pub positions_sampled: Counter,
    pub duplicates: Counter,
    pub damaged: Counter,
    pub held: Counter,
    pub cache_hits: Counter,
    pub cache_misses: Counter,
    pub archive_failures: Counter,
    pub unarchived_volumes: Gauge,
    pub index_rebuilds: Counter,
    pub flush_seconds: Histogram,
}

impl Metrics {
    /// Describes and registers every metric with the installed recorder.
    pub fn new() -> Self {
        describe_counter!(REFUSED, "games refused, by reason");
        // The counter exists from the start, so that an alert sees the first refusal as an increase.
        counter!(REFUSED, "reason" => "full").increment(0);
        counter!(REFUSED, "reason" => "descriptors").increment(0);
        let metrics = Self {
            window_games: gauge("minuet_replay_window_games", "games in the window"),
            window_positions: gauge(
                "minuet_replay_window_positions",
                "trainable positions in the window",
            ),
            stored_bytes: gauge("minuet_replay_stored_bytes", "bytes of the window's records"),
            disk_bytes: gauge("minuet_replay_disk_bytes", "bytes of disk that the store takes"),
            disk_limit_bytes: gauge(
                "minuet_replay_disk_limit_bytes",
                "bytes that the store may take: replay.max_disk_mib, or less where its disk ends before",
            ),
            cache_bytes: gauge("minuet_replay_cache_bytes", "bytes of decoded games in memory"),
            games_inserted: counter("minuet_replay_games_inserted_total", "games made durable"),
            positions_inserted: counter(
                "minuet_replay_positions_inserted_total",
                "trainable positions made durable",
            ),
            positions_sampled: counter(
                "minuet_replay_positions_sampled_total",
                "positions sent in training batches",
            ),
            duplicates: counter(
                "minuet_replay_duplicates_total",
                "games sent again that were stored already",
            ),
            damaged: counter(
                "minuet_replay_damaged_games_total",
                "acknowledged games that cannot be read any more",
            ),
            held: counter(
                "minuet_replay_games_held_total",
                "games sent back until the learner has used more positions (replay.min_uses); actors keep them",
            ),
            cache_hits: counter(
                "minuet_replay_cache_hits_total",
                "sampled positions whose game was decoded already",
            ),
            cache_misses: counter(
                "minuet_replay_cache_misses_total",
                "sampled positions whose game was read from disk",
            ),
            archive_failures: counter(
                "minuet_replay_archive_failures_total",
                "attempts to write to the archive that failed",
            ),
            unarchived_volumes: gauge(
                "minuet_replay_unarchived_volumes",
                "sealed volumes that are not in the archive yet",
            ),
            index_rebuilds: counter(
                "minuet_replay_index_rebuilds_total",
                "indexes of volumes that were discarded, to be rebuilt from the log",
            ),
            flush_seconds: histogram(
                "minuet_replay_flush_seconds",
                "seconds from the write of a group of games until it is durable",
            ),
        };
        metrics.unarchived_volumes.set(0.0);
        metrics
    }

    /// Sets the numbers of games, of trainable positions and of bytes of records in the window.
    pub fn window_changed(&self, window: &Window) {
        self.window_games.set(window.games() as f64);
        self.window_positions.set(window.positions() as f64);
        self.stored_bytes.set(window.bytes() as f64);
    }

    /// Records a game that was refused because of this field or condition.
    pub fn refused(&self, reason: &'static str) {
        counter!(REFUSED, "reason" => reason).increment(1);
    }
}

fn gauge(name: &'static str, description: &'static str) -> Gauge {
    describe_gauge!(name, description);
    gauge!(name)
}

fn counter(name: &'static str, description: &'static str) -> Counter {
    describe_counter!(name, description);
    counter!(name)
}

fn histogram(name: &'static str, description: &'static str) -> Histogram {
    describe_histogram!(name, description);
    histogram!(name)
}
