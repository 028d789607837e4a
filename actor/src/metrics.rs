//! What an actor has done since it started, counted where it happens and read by the report, the metrics and benchmarks.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that any thread may raise.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Raises it.
    pub fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// Lowers it, where it is a level and no count.
    pub fn subtract(&self, amount: u64) {
        self.0.fetch_sub(amount, Ordering::Relaxed);
    }

    /// Sets it, where it is a level and no count.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// What it is now.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! metrics {
    ($($(#[doc = $doc:literal])+ $name:ident: $metric:literal, $kind:ident;)+) => {
        /// Everything an actor counts. Visits are never given as one number alone: how each was answered stands beside it.
        #[derive(Debug, Default)]
        pub struct Metrics {
            $($(#[doc = $doc])+ pub $name: Count,)+
        }

        /// The counts of one moment.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
        pub struct Snapshot {
            $($(#[doc = $doc])+ pub $name: u64,)+
        }

        impl Snapshot {
            /// What has been counted since `earlier`; levels (of the spool, of the cache) are the present ones.
            #[must_use]
            pub fn since(&self, earlier: &Self) -> Self {
                Self { $($name: metrics!(@since $kind, self.$name, earlier.$name),)+ }
            }
        }

        impl Metrics {
            /// Adds what one game has counted.
            pub fn add(&self, counted: &Snapshot) {
                $(metrics!(@add $kind, self.$name, counted.$name);)+
            }

            /// The counts now.
            pub fn snapshot(&self) -> Snapshot {
                Snapshot { $($name: self.$name.get(),)+ }
            }

            /// Hands the counts to the metrics page.
            pub fn publish(&self) {
                $(metrics!(@publish $kind, $metric, self.$name.get());)+
            }

            /// Tells the metrics page what they mean.
            pub fn describe() {
                $(metrics!(@describe $kind, $metric, concat!($($doc),+).trim());)+
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

metrics! {
    /// Traversals of search trees, however they ended.
    visits: "minuet_actor_visits_total", counter;
    /// Visits answered by the network.
    fresh_evaluations: "minuet_actor_fresh_evaluations_total", counter;
    /// Visits answered by the evaluation cache.
    cache_hits: "minuet_actor_cache_hits_total", counter;
    /// Visits that shared the answer of a row that was being asked already.
    duplicates_in_flight: "minuet_actor_duplicates_in_flight_total", counter;
    /// Visits of nodes whose evaluation an earlier search left in the tree.
    gray_visits: "minuet_actor_gray_visits_total", counter;
    /// Visits of positions where the game is over.
    terminal_visits: "minuet_actor_terminal_visits_total", counter;
    /// Finished games, durably in the spool.
    games: "minuet_actor_games_total", counter;
    /// Actions played.
    actions: "minuet_actor_actions_total", counter;
    /// Games that were ended by the limit of actions.
    games_cut: "minuet_actor_games_cut_total", counter;
    /// Problems that were solved, of games that are about problems.
    problems_solved: "minuet_actor_problems_solved_total", counter;
    /// Problems that were played to the end.
    problems_played: "minuet_actor_problems_played_total", counter;
    /// Games recorded from known solutions or in hindsight, without being played.
    games_recorded: "minuet_actor_games_recorded_total", counter;
    /// Level of difficulty of the problems.
    problem_level: "minuet_actor_problem_level", gauge;
    /// Requests answered.
    requests: "minuet_actor_requests_total", counter;
    /// Requests sent again, for whatever reason.
    request_retries: "minuet_actor_request_retries_total", counter;
    /// Replies that made no sense.
    malformed_replies: "minuet_actor_malformed_replies_total", counter;
    /// Times the stream to the inference server was opened anew.
    reconnects: "minuet_actor_reconnects_total", counter;
    /// Streams to the inference server that are open.
    streams: "minuet_actor_streams", gauge;
    /// Time that worker threads had work (microseconds here, seconds on the metrics page).
    busy_us: "minuet_actor_worker_busy_seconds_total", seconds;
    /// Time that worker threads waited for evaluations (microseconds here, seconds on the metrics page).
    waiting_us: "minuet_actor_worker_waiting_seconds_total", seconds;
    /// Games the replay store has acknowledged.
    games_acknowledged: "minuet_actor_games_acknowledged_total", counter;
    /// Games the replay store had already.
    games_duplicate: "minuet_actor_games_duplicate_total", counter;
    /// Games the replay store refused for good.
    games_refused: "minuet_actor_games_refused_total", counter;
    /// Games that wait in the spool.
    spool_games: "minuet_actor_spool_games", gauge;
    /// Bytes of the spool.
    spool_bytes: "minuet_actor_spool_bytes", gauge;
    /// 1 while self-play pauses because finished games cannot be kept.
    paused: "minuet_actor_paused", gauge;
    /// Evaluations in the cache.
    cache_entries: "minuet_actor_cache_entries", gauge;
    /// Memory of the cache.
    cache_bytes: "minuet_actor_cache_bytes", gauge;
}
