//! [`Curves`]: losses over the steps of training, in the form of the learner's own file.
//!
//! The learner's file lies on its own volume. Its metrics page has the losses of the last step, so a line is written every ten seconds from
//! there. What happened before the follower was started, or while it was stopped, comes from Prometheus if there is one.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use service::{
    figures::{Lines, Tail},
    role::Role,
};
use tokio::time::Instant;

use super::prometheus::Prometheus;
use crate::{
    losses::{self, Fit, Line, Validation},
    moment,
    page::Page,
    watch::{Observation, names},
};

/// Time between two lines.
const INTERVAL: Duration = Duration::from_secs(10);
/// Attempts to ask Prometheus for what happened before; one every ten seconds.
const ATTEMPTS: u32 = 6;
/// Ages in seconds between which values are requested from Prometheus: the last five hours with a value every ten seconds, the time before
/// with fewer, since each answer has a bounded number of them.
const AGES: [(u64, u64); 3] = [
    (90 * 24 * 3600, 5 * 24 * 3600),
    (5 * 24 * 3600, 5 * 3600),
    (5 * 3600, 0),
];

/// Writes the losses of a learner elsewhere.
#[derive(Debug)]
pub struct Curves {
    lines: Lines,
    /// Prometheus, until it has answered once, and the number of attempts that are left.
    past: Option<(Prometheus, u32)>,
    last: Option<Line>,
    /// Validation of the last line that has one.
    validation: Option<Validation>,
    looked: Option<Instant>,
}

/// Metrics of the learner: step, losses of policy and value, entropy of the targets, losses of both on held-out games, gaps of both.
/// The second part is the value of the label `head`, if the metric has that.
const METRICS: [(&str, Option<&str>); 8] = [
    (names::STEP, None),
    (names::LOSS, Some("policy")),
    (names::LOSS, Some("value")),
    (names::TARGET_ENTROPY, None),
    (names::VALIDATION_LOSS, Some("policy")),
    (names::VALIDATION_LOSS, Some("value")),
    (names::VALIDATION_GAP, Some("policy")),
    (names::VALIDATION_GAP, Some("value")),
];

/// Values of [`METRICS`] at one moment.
type Figures = [Option<f64>; METRICS.len()];

fn figures(page: &Page) -> Figures {
    METRICS.map(|(metric, head)| {
        let value = match head {
            Some(head) => page.sum_with(metric, "head", head),
            None => page.sum(metric),
        };
        value.filter(|value| value.is_finite())
    })
}

fn validation([.., policy, value, policy_gap, value_gap]: Figures) -> Option<Validation> {
    (policy.is_some() || value.is_some()).then(|| Validation {
        held_out: Fit { policy, value },
        trained: Fit {
            policy: policy.zip(policy_gap).map(|(loss, gap)| loss - gap),
            value: value.zip(value_gap).map(|(loss, gap)| loss - gap),
        },
    })
}

impl Curves {
    /// Continues the file in the folder of a run.
    ///
    /// # Errors
    /// The file system.
    pub fn open(run: &Path, prometheus: Option<Prometheus>) -> io::Result<Self> {
        let path: PathBuf = run.join(losses::FILE);
        let known: Vec<Line> = Tail::new(path.clone()).read_all();
        Ok(Self {
            lines: Lines::open(&path)?,
            past: prometheus.map(|prometheus| (prometheus, ATTEMPTS)),
            last: known.last().copied(),
            validation: known.iter().rev().find_map(|line| line.validation),
            looked: None,
        })
    }

    /// Records the learner's figures if ten seconds have passed and it has trained. What happened before is recorded first.
    pub async fn record(&mut self, observation: &Observation) {
        if self.looked.is_some_and(|looked| looked.elapsed() < INTERVAL) {
            return;
        }
        self.looked = Some(Instant::now());
        if !self.has_past().await {
            return;
        }
        let page = observation.pages(Role::Learner).next();
        if let Some(page) = page {
            self.write(moment::now(), figures(page));
        }
    }

    /// Asks Prometheus for what happened since the last line. Returns false if it must be asked again.
    async fn has_past(&mut self) -> bool {
        let Some((prometheus, attempts)) = self.past.take() else {
            return true;
        };
        let now = moment::now() / 1000;
        let since = self.last.map_or(0, |line| line.time_ms / 1000 + 1);
        let Some(past) = past(&prometheus, since, now).await else {
            if attempts > 1 {
                tracing::debug!("Prometheus does not answer; it is asked again");
                self.past = Some((prometheus, attempts - 1));
                return false;
            }
            tracing::warn!("Prometheus does not answer; the curves begin now");
            return true;
        };
        for (at, figures) in past {
            self.write(at * 1000, figures);
        }
        true
    }

    /// Writes a line if the learner has trained since the last one.
    fn write(&mut self, time_ms: u64, figures: Figures) {
        let [step, policy_loss, value_loss, target_entropy, ..] = figures;
        let step = step.unwrap_or_default() as u64;
        let before = self.last.map_or(0, |line| line.step);
        let validation = validation(figures).filter(|new| self.validation.as_ref() != Some(new));
        // A learner that was restored from a checkpoint repeats steps.
        if step == 0 || (step == before && validation.is_none()) {
            return;
        }
        let line = Line {
            time_ms,
            step,
            steps: step.abs_diff(before),
            policy_loss,
            value_loss,
            target_entropy,
            validation,
        };
        if let Err(error) = self.lines.append(&line) {
            tracing::warn!(%error, "cannot record the learner's figures");
        }
        self.validation = validation.or(self.validation);
        self.last = Some(line);
    }
}

/// Figures of the learner from `since` to `now`, in seconds since the Unix epoch, by time. `None` if Prometheus does not answer.
async fn past(prometheus: &Prometheus, since: u64, now: u64) -> Option<BTreeMap<u64, Figures>> {
    let mut all: BTreeMap<u64, Figures> = BTreeMap::new();
    for (oldest, newest) in AGES {
        let (from, until) = (since.max(now.saturating_sub(oldest)), now.saturating_sub(newest));
        if from > until {
            continue;
        }
        for (number, (metric, head)) in METRICS.into_iter().enumerate() {
            // The maximum finds the series of the learner, whichever container that is.
            let head = head.map_or_else(String::new, |head| format!("{{head=\"{head}\"}}"));
            let query = format!("max({metric}{head})");
            for (at, value) in prometheus.values(&query, from, until).await? {
                all.entry(at).or_default()[number] = Some(value);
            }
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
minuet_learner_step 20
minuet_learner_loss{head=\"policy\"} 2.5
minuet_learner_loss{head=\"value\"} 0.75
minuet_learner_target_entropy 1.5
minuet_learner_validation_loss{head=\"policy\"} 1.25
minuet_learner_validation_loss{head=\"value\"} 0.5
minuet_learner_validation_gap{head=\"policy\"} 0.25
minuet_learner_validation_gap{head=\"value\"} NaN
";

    fn lines(run: &Path) -> Vec<Line> {
        Tail::new(run.join(losses::FILE)).read_all()
    }

    #[test]
    fn steps_and_validations_are_written_once_and_continued_after_a_restart() {
        let run = tempfile::tempdir().unwrap();
        let figures = figures(&Page::parse(PAGE));
        let at_step = |step: Option<f64>| {
            let [_, rest @ ..] = figures;
            let all: Vec<Option<f64>> = std::iter::once(step).chain(rest).collect();
            Figures::try_from(all).unwrap()
        };
        let mut curves = Curves::open(run.path(), None).unwrap();
        curves.write(10_000, at_step(None));
        curves.write(20_000, figures);
        curves.write(30_000, figures);
        drop(curves);
        let mut curves = Curves::open(run.path(), None).unwrap();
        curves.write(40_000, at_step(Some(30.0)));
        let lines = lines(run.path());
        let steps: Vec<(u64, u64, bool)> = lines
            .iter()
            .map(|line| (line.step, line.steps, line.validation.is_some()))
            .collect();
        assert_eq!(steps, [(20, 20, true), (30, 10, false)]);
        let validation = lines[0].validation.unwrap();
        assert_eq!(
            (validation.policy_gap(), validation.value_gap()),
            (Some(0.25), None)
        );
        assert_eq!(
            (lines[0].policy_loss, lines[0].target_entropy),
            (Some(2.5), Some(1.5))
        );
    }

    #[test]
    fn the_gaps_are_those_of_their_heads() {
        let numbers = std::array::from_fn(|number| Some(number as f64 + 1.0));
        let validation = validation(numbers).unwrap();
        assert_eq!(
            (validation.policy_gap(), validation.value_gap()),
            (Some(7.0), Some(8.0))
        );
    }
}
