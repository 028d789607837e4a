//! `[actor]`: self-play.

use std::path::PathBuf;

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use super::{
    ConfigError,
    error::{at_least, require, within},
    inference::USUAL_BATCH,
};

/// Games of a thread that asks for the evaluations of one core.
const GAMES: usize = 64;
/// Requests in flight of such a thread.
const REQUESTS: usize = 3;
/// Maximum number of times as much for a device that takes large batches.
const MOST_TIMES: usize = 8;

/// Settings of one actor process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct ActorConfig {
    /// Name of this actor, part of its games' ids, so no two actors may share it. Empty: a random name, drawn at start.
    pub name: String,
    /// Worker threads, at most 1024; 0: one less than the number of cores, at least one.
    pub threads: usize,
    /// Games in progress on each thread, at most 65536; 0: 64, or up to 128 if the machine has more cores than the actor has
    /// threads, because each core may evaluate positions; more if inference.max_batch is above 128 and the threads are few. If neither this nor
    /// requests_in_flight is set, up to four times as many of both while that makes self-play faster.
    pub games_per_thread: usize,
    /// Maximum number of positions from one thread's games per evaluation request, 1 to 4096.
    pub rows_per_request: usize,
    /// Evaluation requests of one thread that may be in flight at the same time, at most 64; 0: 3, or up to 6 if the machine has
    /// more cores than the actor has threads; more if inference.max_batch is above 128 and the threads are few.
    pub requests_in_flight: usize,
    /// Maximum number of random actions before a game of two players begins, 0 to 1000. Each game draws its number from 0
    /// to this; the actions themselves are not recorded. No game begins in a position whose outcome the rules tell, e.g. one
    /// that the first action wins. 0: every game begins at the usual start.
    pub random_plies: u32,
    /// Memory of the evaluation cache, in MiB; 0: no cache.
    pub cache_mib: usize,
    /// Folder of finished games that the store has not acknowledged yet; relative to the run's folder.
    pub spool: PathBuf,
    /// Size of the spool in MiB above which self-play pauses. At least 1.
    pub max_spool_mib: u64,
    /// Model that evaluates positions: a label or a version.
    pub model: String,
    /// Address of the Prometheus metrics page; empty: none.
    pub metrics: String,
    /// Address of the health service; empty: none.
    pub health: String,
}

impl Default for ActorConfig {
    fn default() -> Self {
        Self {
            name: String::new(),
            threads: 0,
            games_per_thread: 0,
            rows_per_request: 64,
            requests_in_flight: 0,
            random_plies: 0,
            cache_mib: 128,
            spool: "spool".into(),
            max_spool_mib: 256,
            model: "latest".into(),
            metrics: String::new(),
            health: String::new(),
        }
    }
}

impl ActorConfig {
    /// Returns the number of worker threads on a machine of `cores` cores.
    pub fn worker_threads(&self, cores: usize) -> usize {
        match self.threads {
            0 => cores.saturating_sub(1).max(1),
            threads => threads,
        }
    }

    /// Returns the number of games in progress on each thread on a machine of `cores` cores, for a device that takes batches of
    /// `largest_batch` positions.
    pub fn games_on_thread(&self, cores: usize, largest_batch: usize) -> usize {
        match self.games_per_thread {
            0 => self.for_cores(GAMES, cores, largest_batch),
            games => games,
        }
    }

    /// Returns the number of requests that each thread may have in flight on a machine of `cores` cores, for a device that takes
    /// batches of `largest_batch` positions.
    pub fn requests_of_thread(&self, cores: usize, largest_batch: usize) -> usize {
        match self.requests_in_flight {
            0 => self.for_cores(REQUESTS, cores, largest_batch),
            requests => requests,
        }
    }

    /// Returns `each` for every core, divided among the threads: at least `each` and at most twice as much. Larger batches than usual
    /// need as many times `each` of all threads together.
    fn for_cores(&self, each: usize, cores: usize, largest_batch: usize) -> usize {
        let threads = self.worker_threads(cores);
        let of_cores = each.saturating_mul(cores).div_ceil(threads);
        let times = (largest_batch / USUAL_BATCH).min(MOST_TIMES);
        of_cores
            .clamp(each, 2 * each)
            .max((times * each).div_ceil(threads))
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        within("actor.threads", self.threads, 0..=1024)?;
        within("actor.games_per_thread", self.games_per_thread, 0..=65_536)?;
        within("actor.rows_per_request", self.rows_per_request, 1..=4096)?;
        within("actor.requests_in_flight", self.requests_in_flight, 0..=64)?;
        within("actor.random_plies", self.random_plies, 0..=1000)?;
        at_least("actor.max_spool_mib", self.max_spool_mib, 1)?;
        require(!self.model.is_empty(), "actor.model", "must not be empty")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_the_games_of_the_cores_that_evaluate() {
        let usual = ActorConfig::default();
        let with = |config: &ActorConfig, cores, batch| {
            (
                config.worker_threads(cores),
                config.games_on_thread(cores, batch),
                config.requests_of_thread(cores, batch),
            )
        };
        let on = |config: &ActorConfig, cores| with(config, cores, USUAL_BATCH);
        assert_eq!(on(&usual, 1), (1, 64, 3));
        assert_eq!(on(&usual, 2), (1, 128, 6));
        assert_eq!(on(&usual, 4), (3, 86, 4));
        assert_eq!(on(&usual, 64), (63, 66, 4));
        // As many in flight for a batch, whatever the number of threads.
        assert_eq!(with(&usual, 2, 2048), (1, 512, 24));
        assert_eq!(with(&usual, 4, 2048), (3, 171, 8));
        assert_eq!(with(&usual, 16, 2048), (15, 69, 4));
        assert_eq!(with(&usual, 2, 65_536), (1, 512, 24), "not more");
        assert_eq!(with(&usual, 2, 16), on(&usual, 2), "small batches");
        let (threads, games, requests) = (1, 5, 2);
        let few = ActorConfig { threads, ..usual };
        assert_eq!(on(&few, 64), (1, 128, 6), "at most twice as many");
        let given = ActorConfig {
            games_per_thread: games,
            requests_in_flight: requests,
            ..few
        };
        assert_eq!(on(&given, 64), (threads, games, requests));
    }
}
