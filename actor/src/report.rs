//! Publishes the metrics every second and logs a line about progress every ten seconds.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;

use crate::{
    cache::Cache,
    metrics::{Metrics, Snapshot},
    spool::Spool,
};

const PUBLISH_INTERVAL: Duration = Duration::from_secs(1);
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Publishes the metrics until `shutdown`, and once more at the end.
pub async fn run(
    metrics: Arc<Metrics>,
    cache: Option<Arc<Cache>>,
    spool: Arc<Spool>,
    shutdown: CancellationToken,
) {
    let mut last = (Instant::now(), metrics.snapshot());
    let mut ticks = tokio::time::interval(PUBLISH_INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let stopped = tokio::select! {
            _ = ticks.tick() => false,
            () = shutdown.cancelled() => true,
        };
        measure_levels(&metrics, cache.as_deref(), &spool);
        metrics.publish();
        let passed = last.0.elapsed();
        if passed >= LOG_INTERVAL || stopped {
            let now = metrics.snapshot();
            log(&now.since(&last.1), passed);
            last = (Instant::now(), now);
        }
        if stopped {
            return;
        }
    }
}

/// Sets the levels of the cache and of the spool.
fn measure_levels(metrics: &Metrics, cache: Option<&Cache>, spool: &Spool) {
    if let Some(cache) = cache {
        let contents = cache.contents();
        metrics.cache_entries.set(contents.entries);
        metrics.cache_bytes.set(contents.bytes);
    }
    let size = spool.size();
    metrics.spool_games.set(size.games);
    metrics.spool_bytes.set(size.bytes);
}

fn log(counted: &Snapshot, passed: Duration) {
    let seconds = passed.as_secs_f64().max(1e-3);
    let rate = |count: u64| (count as f64 / seconds).round() as u64;
    let threads_had = (counted.busy_us + counted.waiting_us).max(1) as f64;
    tracing::info!(
        visits_per_s = rate(counted.visits),
        fresh_per_s = rate(counted.fresh_evaluations),
        cached_per_s = rate(counted.cache_hits),
        duplicates_per_s = rate(counted.duplicates_in_flight),
        gray_per_s = rate(counted.gray_visits),
        terminal_per_s = rate(counted.terminal_visits),
        actions_per_s = rate(counted.actions),
        games = counted.games,
        spool_games = counted.spool_games,
        // Share of time in which the threads had work. Near 100: this process is the bottleneck. Low: the inference server is.
        busy_percent = (100.0 * counted.busy_us as f64 / threads_had).round() as u64,
        "self-play"
    );
}
