//! The metrics of an actor: counters and levels since its start, for the metrics page, the log and benchmarks.
//!
//! The counters are plain atomics, because the log line and the tests read them too; [`Metrics::publish`] copies them to the
//! metrics page every second. Distributions go to the page directly. A line about progress is logged every ten seconds.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use metrics::Histogram;
use tokio_util::sync::CancellationToken;

use crate::{cache::Cache, spool::Spool};

const PUBLISH_INTERVAL: Duration = Duration::from_secs(1);
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// A counter or level that all threads share.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds to the number.
    pub fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// Subtracts from a level.
    pub fn subtract(&self, amount: u64) {
        self.0.fetch_sub(amount, Ordering::Relaxed);
    }

    /// Sets a level.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Returns the present number.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! metrics {
    ($($(#[doc = $doc:literal])+ $name:ident: $metric:literal, $kind:ident;)+) => {
        /// The metrics of an actor. The number of visits is also counted by the source of the evaluation.
        #[derive(Debug)]
        pub struct Metrics {
            $($(#[doc = $doc])+ pub $name: Count,)+
            request_seconds: Histogram,
            request_rows: Histogram,
        }

        /// The numbers of all counters and levels at one time.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
        pub struct Snapshot {
            $($(#[doc = $doc])+ pub $name: u64,)+
        }

        impl Snapshot {
            /// Returns the differences of all counters since `earlier`. Levels are the present ones.
            #[must_use]
            pub fn since(&self, earlier: &Self) -> Self {
                Self { $($name: metrics!(@since $kind, self.$name, earlier.$name),)+ }
            }
        }

        impl Metrics {
            /// Describes and registers every metric with the recorder that is installed by now, so that all of them are on the
            /// metrics page from the start.
            pub fn new() -> Self {
                $(metrics!(@describe $kind, $metric, concat!($($doc),+).trim());)+
                let seconds = "minuet_actor_request_seconds";
                metrics::describe_histogram!(seconds, metrics::Unit::Seconds, "Time from a request to its reply.");
                let rows = "minuet_actor_request_rows";
                metrics::describe_histogram!(rows, "Rows of a request.");
                let new = Self {
                    $($name: Count::default(),)+
                    request_seconds: metrics::histogram!(seconds),
                    request_rows: metrics::histogram!(rows),
                };
                new.publish();
                new
            }

            /// Adds the counters of one game.
            pub fn add(&self, counted: &Snapshot) {
                $(metrics!(@add $kind, self.$name, counted.$name);)+
            }

            /// Returns the present numbers.
            pub fn snapshot(&self) -> Snapshot {
                Snapshot { $($name: self.$name.get(),)+ }
            }

            /// Copies all counters and levels to the metrics page.
            pub fn publish(&self) {
                $(metrics!(@publish $kind, $metric, self.$name.get());)+
            }
        }
    };
    (@add gauge, $total:expr, $value:expr) => {};
    (@add $count:ident, $total:expr, $value:expr) => { if $value > 0 { $total.add($value) } };
    (@since gauge, $now:expr, $then:expr) => { $now };
    (@since $count:ident, $now:expr, $then:expr) => { $now.saturating_sub($then) };
    (@publish seconds, $metric:literal, $value:expr) => { metrics::gauge!($metric).set($value as f64 / 1e6) };
    (@describe seconds, $metric:literal, $text:expr) => { metrics::describe_gauge!($metric, $text) };
    (@publish counter, $metric:literal, $value:expr) => { metrics::counter!($metric).absolute($value) };
    (@publish gauge, $metric:literal, $value:expr) => { metrics::gauge!($metric).set($value as f64) };
    (@describe counter, $metric:literal, $text:expr) => { metrics::describe_counter!($metric, $text) };
    (@describe gauge, $metric:literal, $text:expr) => { metrics::describe_gauge!($metric, $text) };
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Counts a request of this many rows that was answered after `took`.
    pub fn request_answered(&self, took: Duration, rows: usize) {
        self.requests.add(1);
        self.request_seconds.record(took.as_secs_f64());
        self.request_rows.record(rows as f64);
    }
}

/// Publishes the metrics until `shutdown`, and once more at the end.
pub(crate) async fn report(
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

metrics! {
    /// Traversals of search trees, however they ended.
    visits: "minuet_actor_visits_total", counter;
    /// Visits answered by the network.
    fresh_evaluations: "minuet_actor_fresh_evaluations_total", counter;
    /// Visits answered by the evaluation cache.
    cache_hits: "minuet_actor_cache_hits_total", counter;
    /// Visits that shared the evaluation of an equal row in flight.
    duplicates_in_flight: "minuet_actor_duplicates_in_flight_total", counter;
    /// Visits of gray nodes, whose evaluation is left from an earlier search.
    gray_visits: "minuet_actor_gray_visits_total", counter;
    /// Visits of positions where the game is over.
    terminal_visits: "minuet_actor_terminal_visits_total", counter;
    /// Finished games, durably in the spool.
    games: "minuet_actor_games_total", counter;
    /// Actions played.
    actions: "minuet_actor_actions_total", counter;
    /// Games that ended at the limit of actions.
    games_cut: "minuet_actor_games_cut_total", counter;
    /// Games that ended without a record, because the rules of a game from outside failed in them.
    games_failed: "minuet_actor_games_failed_total", counter;
    /// Problems that were solved, of games that are about problems.
    problems_solved: "minuet_actor_problems_solved_total", counter;
    /// Problems that were played to the end.
    problems_played: "minuet_actor_problems_played_total", counter;
    /// Games recorded from known solutions or in hindsight, without being played.
    games_recorded: "minuet_actor_games_recorded_total", counter;
    /// Requests answered.
    requests: "minuet_actor_requests_total", counter;
    /// Requests sent again for any reason.
    request_retries: "minuet_actor_request_retries_total", counter;
    /// Malformed replies.
    malformed_replies: "minuet_actor_malformed_replies_total", counter;
    /// Number of times a failed stream to the inference server was opened again.
    reconnects: "minuet_actor_reconnects_total", counter;
    /// Streams to the inference server that are open.
    streams: "minuet_actor_streams", gauge;
    /// Time that worker threads had work (microseconds here, seconds on the metrics page).
    busy_us: "minuet_actor_worker_busy_seconds_total", seconds;
    /// Time that worker threads waited for evaluations (microseconds here, seconds on the metrics page).
    waiting_us: "minuet_actor_worker_waiting_seconds_total", seconds;
    /// Games that the replay store has acknowledged.
    games_acknowledged: "minuet_actor_games_acknowledged_total", counter;
    /// Acknowledged games that the replay store had already.
    games_duplicate: "minuet_actor_games_duplicate_total", counter;
    /// Games that the replay store refused permanently.
    games_refused: "minuet_actor_games_refused_total", counter;
    /// Games that wait in the spool.
    spool_games: "minuet_actor_spool_games", gauge;
    /// Size of the spool in bytes.
    spool_bytes: "minuet_actor_spool_bytes", gauge;
    /// 1 while self-play pauses because finished games cannot be written to the spool.
    paused: "minuet_actor_paused", gauge;
    /// Evaluations in the cache.
    cache_entries: "minuet_actor_cache_entries", gauge;
    /// Memory of the cache in bytes.
    cache_bytes: "minuet_actor_cache_bytes", gauge;
}
