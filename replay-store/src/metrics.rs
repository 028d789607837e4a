//! Prometheus metrics of the store. Handles are made once and passed in.

use std::time::Duration;

use proto::v1::Redraw;

use metrics::{
    Counter, Gauge, Histogram, counter, describe_counter, describe_gauge, describe_histogram, gauge,
    histogram,
};

const REFUSED: &str = "minuet_replay_games_refused_total";
const REDRAWN: &str = "minuet_replay_batches_redrawn_total";

/// Handles of the store's metrics.
#[derive(Debug)]
pub struct Metrics {
    window_games: Gauge,
    window_positions: Gauge,
    stored_bytes: Gauge,
    disk_bytes: Gauge,
    disk_limit_bytes: Gauge,
    cache_bytes: Gauge,
    games_inserted: Counter,
    positions_inserted: Counter,
    positions_sampled: Counter,
    batches_not_remembered: Counter,
    duplicates: Counter,
    damaged: Counter,
    held: Counter,
    deleted: Counter,
    cache_hits: Counter,
    cache_misses: Counter,
    archived_volumes: Counter,
    archived_bytes: Counter,
    archive_failures: Counter,
    unarchived_volumes: Gauge,
    index_rebuilds: Counter,
    flush_seconds: Histogram,
    commit_games: Histogram,
}

impl Metrics {
    /// Describes and registers every metric with the installed recorder, so that each metric is on the page from the start.
    pub fn new() -> Self {
        describe_counter!(REFUSED, "games refused, by reason");
        describe_counter!(
            REDRAWN,
            "batches given again to a learner that resumed, by whether they had the same positions"
        );
        // The counter exists from the start, so that an alert sees the first refusal as an increase.
        counter!(REFUSED, "reason" => "full").increment(0);
        counter!(REFUSED, "reason" => "descriptors").increment(0);
        for positions in ["same", "other"] {
            counter!(REDRAWN, "positions" => positions).increment(0);
        }
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
            batches_not_remembered: counter(
                "minuet_replay_batches_not_remembered_total",
                "batches that could not be remembered for a learner that resumes",
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
            deleted: counter("minuet_replay_deleted_games_total", "games deleted by request"),
            cache_hits: counter(
                "minuet_replay_cache_hits_total",
                "sampled positions whose game was decoded already",
            ),
            cache_misses: counter(
                "minuet_replay_cache_misses_total",
                "sampled positions whose game was read from disk",
            ),
            archived_volumes: counter(
                "minuet_replay_archived_volumes_total",
                "sealed volumes written to the archive",
            ),
            archived_bytes: counter(
                "minuet_replay_archived_bytes_total",
                "bytes written to the archive",
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
            commit_games: histogram("minuet_replay_commit_games", "games made durable together"),
        };
        metrics.unarchived_volumes.set(0.0);
        metrics
    }

    /// Records that a group of `games` games was made durable in the time `took`.
    pub fn committed(&self, games: usize, took: Duration) {
        self.flush_seconds.record(took.as_secs_f64());
        self.commit_games.record(games as f64);
    }

    /// Records that games with this total of trainable positions entered the window.
    pub fn inserted(&self, games: usize, positions: u64) {
        self.games_inserted.increment(games as u64);
        self.positions_inserted.increment(positions);
    }

    /// Sets the numbers of games, of trainable positions and of bytes of records in the window.
    pub fn window_changed(&self, games: u64, positions: u64, bytes: u64) {
        self.window_games.set(games as f64);
        self.window_positions.set(positions as f64);
        self.stored_bytes.set(bytes as f64);
    }

    /// Sets the number of bytes that the store may take on the disk.
    pub fn disk_limit_changed(&self, bytes: u64) {
        self.disk_limit_bytes.set(bytes as f64);
    }

    /// Sets the number of bytes that the store takes on the disk.
    pub fn disk_measured(&self, bytes: u64) {
        self.disk_bytes.set(bytes as f64);
    }

    /// Records a batch for training: its number of positions.
    pub fn sampled(&self, positions: usize) {
        self.positions_sampled.increment(positions as u64);
    }

    /// Records a drawn batch: positions whose game was in the cache, positions whose game was read, and bytes in the cache.
    pub fn looked_up(&self, hits: usize, misses: usize, cache_bytes: usize) {
        self.cache_hits.increment(hits as u64);
        self.cache_misses.increment(misses as u64);
        self.cache_bytes.set(cache_bytes as f64);
    }

    /// Records a batch that was drawn for a learner that had received it before.
    pub fn redrawn(&self, redraw: Redraw) {
        let positions = if redraw == Redraw::Same { "same" } else { "other" };
        counter!(REDRAWN, "positions" => positions).increment(1);
    }

    /// Records a batch that could not be remembered.
    pub fn not_remembered(&self) {
        self.batches_not_remembered.increment(1);
    }

    /// Records a game that was sent again after it had been stored.
    pub fn duplicate(&self) {
        self.duplicates.increment(1);
    }

    /// Records a game that was sent back because the learner is behind. The sender keeps the game and sends it again.
    pub fn held(&self) {
        self.held.increment(1);
    }

    /// Records a game that was refused because of this field or condition.
    pub fn refused(&self, reason: &'static str) {
        counter!(REFUSED, "reason" => reason).increment(1);
    }

    /// Records games that were deleted by request.
    pub fn deleted(&self, games: u64) {
        self.deleted.increment(games);
    }

    /// Records acknowledged games that cannot be read any more.
    pub fn damaged(&self, games: u64) {
        self.damaged.increment(games);
    }

    /// Records that a volume was written to the archive as a file of `bytes` bytes.
    pub fn archived(&self, bytes: usize) {
        self.archived_volumes.increment(1);
        self.archived_bytes.increment(bytes as u64);
    }

    /// Records a failed attempt to write to the archive.
    pub fn archive_failed(&self) {
        self.archive_failures.increment(1);
    }

    /// Sets the number of sealed volumes that are not archived.
    pub fn unarchived(&self, volumes: usize) {
        self.unarchived_volumes.set(volumes as f64);
    }

    /// Sets the number of volumes whose index was discarded since the store was opened. Such an index is rebuilt from the log.
    pub fn index_rebuilt(&self, volumes: u64) {
        self.index_rebuilds.absolute(volumes);
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
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
