//! [`Recorder`] counts what happens after the warm-up; [`Outcome`] is what is printed.

use serde::Serialize;

use super::{host::Work, system::Settings};

/// Number of intervals of a timeline.
const INTERVALS: usize = 60;
/// Width of the classes in which times are counted: quantiles are exact to 2 %.
const CLASS: f64 = 1.02;
/// Shortest time that has a class of its own, in seconds.
const SHORTEST: f64 = 1e-6;
const CLASSES: usize = 1200;
/// Busy share from which a part of the system counts as saturated.
const SATURATED: f64 = 0.97;

/// Figures of one simulated system. Rates are per second.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Worker threads of all actors.
    pub actors: usize,
    pub servers: usize,
    /// One-way time of a message between two processes, in milliseconds.
    pub latency_ms: f64,
    pub positions_per_second: f64,
    pub visits_per_second: f64,
    pub evaluations_per_second: f64,
    /// Positions that the replay store acknowledged; `null` without figures of a store.
    pub stored_per_second: Option<f64>,
    /// Samples that the learner trained on; `null` without figures of training.
    pub samples_per_second: Option<f64>,
    pub rows_per_request: f64,
    pub positions_per_batch: f64,
    /// Time from a request to its answer, in milliseconds.
    pub request_p50_ms: f64,
    pub request_p99_ms: f64,
    /// Processor time of each role, in cores.
    pub actor_cores: f64,
    pub inference_cores: f64,
    pub replay_cores: f64,
    pub learner_cores: f64,
    /// Share of the time for which a device had a batch, mean of all servers.
    pub device_busy: f64,
    /// Parts without time left, of `actors`, `inference servers`, `replay store`, `learner` and `cores`. Empty: actors wait for answers
    /// while servers wait for requests.
    pub saturated: Vec<&'static str>,
    /// Rates in each of 60 equal intervals.
    pub timeline: Vec<Interval>,
}

/// Rates in an interval, per second.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Interval {
    /// End of the interval, in seconds since the start.
    pub until: f64,
    pub positions: f64,
    pub stored: f64,
    pub samples: f64,
}

/// Counts.
#[derive(Debug)]
pub struct Recorder {
    warm_up: f64,
    seconds: f64,
    visits: f64,
    positions: f64,
    stored: f64,
    samples: f64,
    evaluations: f64,
    requests: f64,
    batches: f64,
    batch_rows: f64,
    device_seconds: f64,
    /// Processor time of actors, servers, store and learner.
    processor: [f64; 4],
    times: Vec<u64>,
    timeline: Vec<Interval>,
}

impl Recorder {
    /// Counts from `warm_up` on, for `seconds`.
    pub fn new(warm_up: f64, seconds: f64) -> Self {
        let until = |index: usize| warm_up + (index + 1) as f64 * seconds / INTERVALS as f64;
        Self {
            warm_up,
            seconds,
            visits: 0.0,
            positions: 0.0,
            stored: 0.0,
            samples: 0.0,
            evaluations: 0.0,
            requests: 0.0,
            batches: 0.0,
            batch_rows: 0.0,
            device_seconds: 0.0,
            processor: [0.0; 4],
            times: vec![0; CLASSES],
            timeline: (0..INTERVALS)
                .map(|index| Interval {
                    until: until(index),
                    ..Interval::default()
                })
                .collect(),
        }
    }

    /// The present interval; `None` during the warm-up.
    fn interval(&mut self, now: f64) -> Option<&mut Interval> {
        let index = (now - self.warm_up) / self.seconds * INTERVALS as f64;
        if index < 0.0 {
            return None;
        }
        self.timeline.get_mut(index as usize)
    }

    /// A task was completed.
    pub fn worked(&mut self, now: f64, work: Work, seconds: f64) {
        if now >= self.warm_up {
            let role = match work {
                Work::Play(_) => 0,
                Work::Read(_) | Work::Compute(_) => 1,
                Work::Store => 2,
                Work::Train => 3,
            };
            self.processor[role] += seconds;
        }
    }

    /// Games were played.
    pub fn played(&mut self, now: f64, visits: f64, positions: f64) {
        if let Some(interval) = self.interval(now) {
            interval.positions += positions;
            self.visits += visits;
            self.positions += positions;
        }
    }

    /// The store acknowledged positions.
    pub fn stored(&mut self, now: f64, positions: f64) {
        if let Some(interval) = self.interval(now) {
            interval.stored += positions;
            self.stored += positions;
        }
    }

    /// The learner completed a step.
    pub fn trained(&mut self, now: f64, samples: f64) {
        if let Some(interval) = self.interval(now) {
            interval.samples += samples;
            self.samples += samples;
        }
    }

    /// A device computed a batch in `seconds`.
    pub fn computed(&mut self, now: f64, rows: u32, seconds: f64) {
        if now >= self.warm_up {
            self.batches += 1.0;
            self.batch_rows += f64::from(rows);
            self.device_seconds += seconds;
        }
    }

    /// A request was answered after `seconds`.
    pub fn answered(&mut self, now: f64, rows: u32, seconds: f64) {
        if now >= self.warm_up {
            self.requests += 1.0;
            self.evaluations += f64::from(rows);
            let class = ((seconds / SHORTEST).max(1.0).ln() / CLASS.ln()) as usize;
            self.times[class.min(CLASSES - 1)] += 1;
        }
    }

    /// Time below which a share of the requests was answered, in milliseconds; 0 without requests.
    fn quantile_ms(&self, share: f64) -> f64 {
        let wanted = (share * self.requests).ceil() as u64;
        let mut seen = 0;
        let class = self.times.iter().position(|&count| {
            seen += count;
            seen >= wanted.max(1)
        });
        class.map_or(0.0, |class| 1e3 * SHORTEST * CLASS.powf(class as f64 + 0.5))
    }

    /// Summary of the counts.
    pub fn outcome(mut self, settings: &Settings) -> Outcome {
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let length = self.seconds / INTERVALS as f64;
        for interval in &mut self.timeline {
            interval.positions /= length;
            interval.stored /= length;
            interval.samples /= length;
        }
        let rate = |count: f64| count / self.seconds;
        let [actor, inference, replay, learner] = self.processor.map(|seconds| seconds / self.seconds);
        let device_busy = rate(self.device_seconds) / settings.servers as f64;
        let has_learner = settings.has_learner();
        let mut saturated = Vec::new();
        let mut look = |name, share: f64| {
            if share >= SATURATED {
                saturated.push(name);
            }
        };
        match settings.cores {
            Some(cores) => look("cores", (actor + inference + replay + learner) / f64::from(cores)),
            None => {
                look("actors", actor / settings.actors as f64);
                look("inference servers", inference / settings.servers as f64);
                look("replay store", replay);
                look("learner", learner);
            }
        }
        Outcome {
            actors: settings.actors,
            servers: settings.servers,
            // Rounded to nanoseconds, so that 0.2 stays 0.2.
            latency_ms: (1e9 * settings.latency).round() / 1e6,
            positions_per_second: rate(self.positions),
            visits_per_second: rate(self.visits),
            evaluations_per_second: rate(self.evaluations),
            stored_per_second: settings.costs.store.map(|_| rate(self.stored)),
            samples_per_second: has_learner.then(|| rate(self.samples)),
            rows_per_request: share(self.evaluations, self.requests),
            positions_per_batch: share(self.batch_rows, self.batches),
            request_p50_ms: self.quantile_ms(0.5),
            request_p99_ms: self.quantile_ms(0.99),
            actor_cores: actor,
            inference_cores: inference,
            replay_cores: replay,
            learner_cores: learner,
            device_busy,
            saturated,
            timeline: self.timeline,
        }
    }
}
