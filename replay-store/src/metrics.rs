//! The store's Prometheus metrics, by name in one place.

use std::time::Duration;

use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

use crate::window::Window;

const GAMES: &str = "minuet_replay_window_games";
const POSITIONS: &str = "minuet_replay_window_positions";
const STORED: &str = "minuet_replay_stored_bytes";
const DISK: &str = "minuet_replay_disk_bytes";
const DISK_LIMIT: &str = "minuet_replay_disk_limit_bytes";
const CACHE: &str = "minuet_replay_cache_bytes";
const GAMES_INSERTED: &str = "minuet_replay_games_inserted_total";
const POSITIONS_INSERTED: &str = "minuet_replay_positions_inserted_total";
const POSITIONS_SAMPLED: &str = "minuet_replay_positions_sampled_total";
const DUPLICATES: &str = "minuet_replay_duplicates_total";
const REFUSED: &str = "minuet_replay_games_refused_total";
const DAMAGED: &str = "minuet_replay_damaged_games_total";
const DELETED: &str = "minuet_replay_deleted_games_total";
const HITS: &str = "minuet_replay_cache_hits_total";
const MISSES: &str = "minuet_replay_cache_misses_total";
const ARCHIVED: &str = "minuet_replay_archived_volumes_total";
const ARCHIVED_BYTES: &str = "minuet_replay_archived_bytes_total";
const ARCHIVE_FAILURES: &str = "minuet_replay_archive_failures_total";
const UNARCHIVED: &str = "minuet_replay_unarchived_volumes";
const FLUSH: &str = "minuet_replay_flush_seconds";
const COMMIT: &str = "minuet_replay_commit_games";

/// Says what each metric means.
pub fn describe() {
    describe_gauge!(GAMES, "games in the window");
    describe_gauge!(POSITIONS, "trainable positions in the window");
    describe_gauge!(STORED, "bytes of the window's records");
    describe_gauge!(
        DISK_LIMIT,
        "bytes that the store may take: replay.max_disk_mib, or less where its disk ends before"
    );
    describe_gauge!(DISK, "bytes of disk that the store takes");
    describe_gauge!(CACHE, "bytes of decoded games in memory");
    describe_counter!(GAMES_INSERTED, "games made durable");
    describe_counter!(POSITIONS_INSERTED, "trainable positions made durable");
    describe_counter!(POSITIONS_SAMPLED, "positions sent in training batches");
    describe_counter!(DUPLICATES, "games sent again that were stored already");
    describe_counter!(REFUSED, "games refused, by reason");
    describe_counter!(DAMAGED, "acknowledged games that cannot be read any more");
    describe_counter!(DELETED, "games deleted by request");
    describe_counter!(HITS, "sampled positions whose game was decoded already");
    describe_counter!(MISSES, "sampled positions whose game was read from disk");
    describe_counter!(ARCHIVED, "sealed volumes written to the archive");
    describe_counter!(ARCHIVED_BYTES, "bytes written to the archive");
    describe_counter!(ARCHIVE_FAILURES, "attempts to write to the archive that failed");
    describe_gauge!(UNARCHIVED, "sealed volumes that are not in the archive yet");
    describe_histogram!(
        FLUSH,
        "seconds from the write of a group of games until it is durable"
    );
    describe_histogram!(COMMIT, "games made durable together");
    // From the start, so that an alert sees the first one as a rise.
    for name in [
        GAMES_INSERTED,
        POSITIONS_INSERTED,
        POSITIONS_SAMPLED,
        DUPLICATES,
        DAMAGED,
        ARCHIVED,
        ARCHIVED_BYTES,
        ARCHIVE_FAILURES,
    ] {
        counter!(name).increment(0);
    }
    counter!(REFUSED, "reason" => "full").increment(0);
    gauge!(UNARCHIVED).set(0.0);
}

/// A group of games is durable.
pub fn committed(games: usize, took: Duration) {
    histogram!(FLUSH).record(took.as_secs_f64());
    histogram!(COMMIT).record(games as f64);
}

/// Games entered the window.
pub fn inserted(games: usize, positions: u64) {
    counter!(GAMES_INSERTED).increment(games as u64);
    counter!(POSITIONS_INSERTED).increment(positions);
}

/// The window changed.
pub fn window(window: &Window) {
    gauge!(GAMES).set(window.games() as f64);
    gauge!(POSITIONS).set(window.positions() as f64);
    gauge!(STORED).set(window.bytes() as f64);
}

/// What the store may take of the disk.
pub fn disk_limit(bytes: u64) {
    gauge!(DISK_LIMIT).set(bytes as f64);
}

/// The disk was measured.
pub fn disk(bytes: u64) {
    gauge!(DISK).set(bytes as f64);
}

/// A batch was made: positions whose game was in the cache, positions whose game was not, bytes in the cache.
pub fn sampled(hits: usize, misses: usize, cache_bytes: usize) {
    counter!(POSITIONS_SAMPLED).increment((hits + misses) as u64);
    counter!(HITS).increment(hits as u64);
    counter!(MISSES).increment(misses as u64);
    gauge!(CACHE).set(cache_bytes as f64);
}

/// A game came again.
pub fn duplicate() {
    counter!(DUPLICATES).increment(1);
}

/// A game was refused because of this field or condition.
pub fn refused(reason: &'static str) {
    counter!(REFUSED, "reason" => reason).increment(1);
}

/// A group of games found the disk full.
pub fn full_disk() {
    counter!(REFUSED, "reason" => "full").increment(1);
}

/// Games were deleted.
pub fn deleted(games: u64) {
    counter!(DELETED).increment(games);
}

/// Acknowledged games cannot be read.
pub fn damaged(games: u64) {
    counter!(DAMAGED).increment(games);
}

/// A volume of so many bytes is in the archive.
pub fn archived(bytes: usize) {
    counter!(ARCHIVED).increment(1);
    counter!(ARCHIVED_BYTES).increment(bytes as u64);
}

/// The archive took nothing.
pub fn archive_failed() {
    counter!(ARCHIVE_FAILURES).increment(1);
}

/// So many sealed volumes are not in the archive.
pub fn unarchived(volumes: usize) {
    gauge!(UNARCHIVED).set(volumes as f64);
}
