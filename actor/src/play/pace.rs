//! The numbers of games and of requests in flight of each thread, raised while more of both make self-play faster.
//!
//! A trial counts the visits of an actor with the present numbers, with twice as many, with twice as many again, and with the present
//! ones. So a drift of the machine's speed has no effect. The numbers are doubled if that makes more than 5 % more visits, because
//! with more games in progress each takes longer and spans more networks. The choice is kept in the spool folder.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use config::RunConfig;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;

const FILE: &str = "pace.json";
/// Maximum number of times as many games and requests as at first.
const MOST_TIMES: usize = 4;
/// Largest number of requests of a thread in flight.
const MOST_REQUESTS: usize = 64;
/// Share of visits that twice as many games must add.
const GAIN: f64 = 0.05;
/// Busy share of the threads from which more games cannot help.
const BUSY: f64 = 0.95;
/// Time of one count of visits.
const WINDOW: Duration = Duration::from_secs(5);
/// Time before a count, in which the new numbers take effect.
const SETTLE: Duration = Duration::from_secs(2);
/// Time before the first trial. It doubles with each trial that changes nothing.
const FIRST_WAIT: Duration = Duration::from_secs(15);
/// Longest time between two trials.
const LONGEST_WAIT: Duration = Duration::from_secs(1200);

/// The numbers of each thread. All threads share it.
#[derive(Debug)]
pub struct Pace {
    games: usize,
    requests: usize,
    times: AtomicUsize,
    most_times: usize,
    path: PathBuf,
}

/// The content of the file.
#[derive(Serialize, Deserialize)]
struct Kept {
    times: usize,
}

impl Pace {
    /// Returns the numbers that the configuration gives, or what an earlier start has found. A number that the configuration sets is
    /// never changed.
    pub fn open(folder: &Path, config: &RunConfig) -> Self {
        let (cores, batch) = (service::process::cores(), config.inference.largest_batch());
        let actor = &config.actor;
        let is_set = actor.games_per_thread > 0 || actor.requests_in_flight > 0;
        let mut new = Self {
            games: actor.games_on_thread(cores, batch),
            requests: actor.requests_of_thread(cores, batch),
            times: AtomicUsize::new(1),
            most_times: if is_set { 1 } else { MOST_TIMES },
            path: folder.join(FILE),
        };
        let kept = match fs::read(&new.path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(io::Error::from),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Kept { times: 1 }),
            Err(error) => Err(error),
        };
        match kept {
            Ok(Kept { times }) => *new.times.get_mut() = times.clamp(1, new.most_times),
            Err(error) => {
                let file = new.path.display();
                tracing::warn!(%file, %error, "the kept number of games cannot be read and is measured anew");
            }
        }
        new
    }

    /// Returns the number of games in progress on each thread.
    pub fn games(&self) -> usize {
        self.games * self.times()
    }

    /// Returns the number of requests that each thread may have in flight.
    pub fn requests(&self) -> usize {
        (self.requests * self.times()).min(self.most_requests())
    }

    /// Returns the largest number that [`Self::requests`] may return.
    pub fn most_requests(&self) -> usize {
        (self.requests * self.most_times).min(MOST_REQUESTS.max(self.requests))
    }

    fn times(&self) -> usize {
        self.times.load(Ordering::Relaxed)
    }

    fn set(&self, times: usize) {
        self.times.store(times, Ordering::Relaxed);
    }

    /// Makes trials until `shutdown`.
    pub(crate) async fn control(self: Arc<Self>, metrics: Arc<Metrics>, shutdown: CancellationToken) {
        if self.most_times > 1 {
            let trials = self.trials(&metrics);
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = trials => {}
            }
        }
    }

    async fn trials(&self, metrics: &Metrics) {
        let (mut wait, mut tries_more) = (FIRST_WAIT, true);
        loop {
            sleep(wait).await;
            let times = self.times();
            let low = match tries_more {
                true if times < self.most_times => times,
                _ => (times / 2).max(1),
            };
            tries_more = !tries_more || times == 1;
            let gain = self.gain(low, metrics).await;
            let chosen = match gain {
                Some(gain) if gain > 1.0 + GAIN => 2 * low,
                Some(_) => low,
                None => times,
            };
            self.set(chosen);
            if chosen == times {
                wait = (2 * wait).min(LONGEST_WAIT);
                continue;
            }
            wait = FIRST_WAIT;
            let (games, requests) = (self.games(), self.requests());
            tracing::info!(
                games,
                requests,
                gain,
                "other numbers of games and requests for each thread"
            );
            let kept = serde_json::to_vec(&Kept { times: chosen }).map_err(io::Error::from);
            if let Err(error) = kept.and_then(|bytes| durable::write(&self.path, &bytes)) {
                let file = self.path.display();
                tracing::warn!(%file, %error, "the number of games cannot be kept");
            }
        }
    }

    /// Returns the ratio of the visits with twice `low` times the games to those with `low` times. `None` if no visits are made, or if
    /// the threads are busy all the time.
    async fn gain(&self, low: usize, metrics: &Metrics) -> Option<f64> {
        let mut visits = [0; 2];
        for (number, is_more) in [false, true, true, false].into_iter().enumerate() {
            self.set(low << usize::from(is_more));
            sleep(SETTLE).await;
            let before = metrics.snapshot();
            sleep(WINDOW).await;
            let counted = metrics.snapshot().since(&before);
            visits[usize::from(is_more)] += counted.visits;
            let all = (counted.busy_us + counted.waiting_us).max(1);
            let is_busy = counted.busy_us as f64 > BUSY * all as f64;
            if counted.visits == 0 || (number == 0 && is_busy) {
                return None;
            }
        }
        Some(visits[1] as f64 / visits[0] as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets an actor work for `seconds` whose visits per second follow from the number of games.
    async fn work(pace: &Arc<Pace>, metrics: &Arc<Metrics>, seconds: u64, rate: fn(usize) -> u64) {
        let shutdown = CancellationToken::new();
        let control = Arc::clone(pace).control(Arc::clone(metrics), shutdown.clone());
        let work = async {
            for _ in 0..10 * seconds {
                sleep(Duration::from_millis(100)).await;
                metrics.visits.add(rate(pace.games()));
                metrics.waiting_us.add(50_000);
                metrics.busy_us.add(50_000);
            }
            shutdown.cancel();
        };
        tokio::join!(control, work);
    }

    #[tokio::test(start_paused = true)]
    async fn games_are_doubled_while_that_helps_and_the_choice_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let metrics = Arc::new(Metrics::new());
        let first = Arc::new(Pace::open(folder.path(), &RunConfig::default()));
        let (games, requests) = (first.games, first.requests);
        work(&first, &metrics, 40, |_| 1_000).await;
        assert_eq!((first.games(), first.requests()), (games, requests), "no gain");
        work(&first, &metrics, 60, |games| 10 * games as u64).await;
        assert_eq!(first.games(), 2 * games);
        let kept = Pace::open(folder.path(), &RunConfig::default());
        assert_eq!((kept.games(), kept.requests()), (2 * games, 2 * requests));
        work(&first, &metrics, 4_000, |games| 10 * games as u64).await;
        assert_eq!(first.games(), MOST_TIMES * games, "not more");
        work(&first, &metrics, 8_000, |_| 1_000).await;
        assert_eq!(first.games(), games, "fewer games are as fast");
    }

    #[tokio::test(start_paused = true)]
    async fn set_numbers_stay_and_a_damaged_file_is_measured_anew() {
        let folder = tempfile::tempdir().unwrap();
        let metrics = Arc::new(Metrics::new());
        fs::write(folder.path().join(FILE), "{").unwrap();
        let mut config = RunConfig::default();
        config.actor.games_per_thread = 5;
        let set = Arc::new(Pace::open(folder.path(), &config));
        work(&set, &metrics, 600, |games| 10 * games as u64).await;
        assert_eq!((set.games(), set.most_requests()), (5, set.requests()));
    }
}
