//! Prometheus metrics of the store. Handles are made once, so that each metric is on the page from the start.

use metrics::{counter, describe_counter};

use crate::window::Window;

const REFUSED: &str = "minuet_replay_games_refused_total";

service::metrics_table! {
    /// Handles of the store's metrics.
    pub(crate) struct Metrics {
        /// Games in the window.
        window_games: "minuet_replay_window_games", gauge;
        /// Trainable positions in the window.
        window_positions: "minuet_replay_window_positions", gauge;
        /// Bytes of the window's records.
        stored_bytes: "minuet_replay_stored_bytes", gauge;
        /// Bytes of disk that the store takes.
        disk_bytes: "minuet_replay_disk_bytes", gauge;
        /// Bytes that the store may take: replay.max_disk_mib, or less where its disk ends before.
        disk_limit_bytes: "minuet_replay_disk_limit_bytes", gauge;
        /// Free bytes of the store's disk.
        disk_free_bytes: "minuet_replay_disk_free_bytes", gauge;
        /// Bytes of decoded games in memory.
        cache_bytes: "minuet_replay_cache_bytes", gauge;
        /// Games made durable.
        games_inserted: "minuet_replay_games_inserted_total", counter;
        /// Trainable positions made durable.
        positions_inserted: "minuet_replay_positions_inserted_total", counter;
        /// Positions sent in training batches.
        positions_sampled: "minuet_replay_positions_sampled_total", counter;
        /// Games stored without a replay by the rules, because replays had taken a twentieth of the store's processor time.
        unreplayed: "minuet_replay_games_not_replayed_total", counter;
        /// Games sent again that were stored already.
        duplicates: "minuet_replay_duplicates_total", counter;
        /// Acknowledged games that cannot be read any more.
        damaged: "minuet_replay_damaged_games_total", counter;
        /// Games sent back until the learner has used more positions (replay.min_uses); actors keep them.
        held: "minuet_replay_games_held_total", counter;
        /// Sampled positions whose game was decoded already.
        cache_hits: "minuet_replay_cache_hits_total", counter;
        /// Sampled positions whose game was read from disk.
        cache_misses: "minuet_replay_cache_misses_total", counter;
        /// Attempts to write to the archive that failed.
        archive_failures: "minuet_replay_archive_failures_total", counter;
        /// Sealed volumes that are not in the archive yet.
        unarchived_volumes: "minuet_replay_unarchived_volumes", gauge;
        /// Indexes of volumes that were discarded, to be rebuilt from the log.
        index_rebuilds: "minuet_replay_index_rebuilds_total", counter;
        /// Seconds from the write of a group of games until it is durable.
        flush_seconds: "minuet_replay_flush_seconds", histogram;
    }
}

impl Metrics {
    /// Describes and registers every metric with the installed recorder.
    pub fn new() -> Self {
        describe_counter!(REFUSED, "Games refused, by reason.");
        // The counter exists from the start, so that an alert sees the first refusal as an increase.
        counter!(REFUSED, "reason" => "full").increment(0);
        counter!(REFUSED, "reason" => "descriptors").increment(0);
        let metrics = Self::registered();
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
