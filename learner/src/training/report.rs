//! Reports training: metrics, and every ten seconds a log line, a line of `metrics.jsonl` and scalars for TensorBoard.

use std::{
    collections::BTreeMap,
    io,
    path::Path,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use serde::{Serialize, Serializer};
use service::figures::{EventFile, Lines};

use crate::{
    metrics::Metrics,
    network::{POLICY, VALUE},
    training::{
        divergences::Divergences,
        train::{StepReport, Validation},
    },
};

/// Time between two lines.
const INTERVAL: Duration = Duration::from_secs(10);
/// Folder of the TensorBoard files, next to `metrics.jsonl`.
const EVENTS: &str = "tensorboard";

/// A line of `metrics.jsonl`: means over the steps since the line before.
#[derive(Clone, Debug, Default, Serialize)]
struct MetricsLine {
    time_ms: u64,
    step: u64,
    steps: u64,
    /// The terms of the loss. [`losses_by_key`] names them in the file.
    #[serde(flatten, serialize_with = "losses_by_key")]
    losses: BTreeMap<&'static str, f64>,
    loss: f64,
    target_entropy: f64,
    gradient_norm: f64,
    learning_rate: f64,
    samples: u64,
    samples_per_second: f64,
    samples_per_position: f64,
    waiting_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    validation: Option<Validation>,
}

impl MetricsLine {
    /// Returns a line of no step. Policy and value are in every line.
    fn begin() -> Self {
        Self {
            losses: BTreeMap::from([(POLICY, 0.0), (VALUE, 0.0)]),
            ..Self::default()
        }
    }

    fn loss_of(&self, term: &str) -> f64 {
        self.losses.get(term).copied().unwrap_or_default()
    }
}

/// Writes `<term>_loss` for each term; the squared error, which is not trained, keeps its name.
fn losses_by_key<S: Serializer>(losses: &BTreeMap<&'static str, f64>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(losses.iter().map(|(term, loss)| match term.ends_with("_error") {
        true => ((*term).to_owned(), loss),
        false => (format!("{term}_loss"), loss),
    }))
}

/// Collects the figures of steps and writes their means.
#[derive(Debug)]
pub struct Reporter {
    lines: Lines,
    events: EventFile,
    line: MetricsLine,
    busy: Duration,
    waiting: Duration,
    since: Instant,
    metrics: Arc<Metrics>,
    /// Number of times that training has diverged.
    pub divergences: Divergences,
}

impl Reporter {
    /// Opens `metrics.jsonl` in `folder`, which is created if need be, and creates an event file in its folder `tensorboard`.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn open(folder: &Path, metrics: Arc<Metrics>) -> io::Result<Self> {
        Ok(Self {
            lines: Lines::open(&folder.join("metrics.jsonl"))?,
            events: EventFile::create(&folder.join(EVENTS))?,
            line: MetricsLine::begin(),
            busy: Duration::ZERO,
            waiting: Duration::ZERO,
            since: Instant::now(),
            divergences: Divergences::open(folder, Arc::clone(&metrics)),
            metrics,
        })
    }

    /// Records that training waited for a batch.
    pub fn waited(&mut self, time: Duration) {
        self.waiting += time;
        self.metrics.wait_seconds.record(time.as_secs_f64());
    }

    /// Records a step that took `time`.
    pub fn stepped(&mut self, report: &StepReport, samples_per_position: f64, time: Duration) {
        let line = &mut self.line;
        line.step = report.step;
        line.steps += 1;
        line.samples += report.samples as u64;
        for &(term, loss) in &report.losses {
            *line.losses.entry(term).or_default() += loss;
        }
        line.loss += report.loss;
        line.target_entropy += report.target_entropy;
        line.gradient_norm += report.gradient_norm;
        line.learning_rate = report.learning_rate;
        line.samples_per_position = samples_per_position;
        self.busy += time;
        self.metrics.stepped(report, samples_per_position, time);
        if self.since.elapsed() >= INTERVAL {
            self.write(None);
        }
    }

    /// Records the validation of the network of this step. The line of the step's checkpoint contains it.
    pub fn validated(&mut self, step: u64, validation: &Validation) {
        let gap = validation.gap();
        self.metrics
            .set_validation(POLICY, validation.held_out.policy, gap.policy);
        self.metrics
            .set_validation(VALUE, validation.held_out.value, gap.value);
        tracing::info!(
            step,
            policy = rounded(validation.held_out.policy),
            value = rounded(validation.held_out.value),
            policy_gap = rounded(gap.policy),
            value_gap = rounded(gap.value),
            "validated on held-out games"
        );
        let scalars = [
            ("validation/policy_above_targets", validation.held_out.policy),
            ("validation/value", validation.held_out.value),
            ("validation/policy_gap", gap.policy),
            ("validation/value_gap", gap.value),
        ];
        if let Err(error) = self.events.scalars(step, &scalars) {
            tracing::warn!(%error, "cannot write the TensorBoard file");
        }
        self.line.validation = Some(*validation);
    }

    /// Records a published checkpoint.
    pub fn published(&mut self, version: &str, step: u64) {
        self.metrics.checkpoints.increment(1);
        self.metrics.checkpoint_step.set(step as f64);
        self.line.step = step;
        self.write(Some(version.to_owned()));
    }

    /// Writes the means since the last line. A failed write is logged and does not stop training.
    fn write(&mut self, checkpoint: Option<String>) {
        let mut line = std::mem::replace(&mut self.line, MetricsLine::begin());
        let steps = line.steps.max(1) as f64;
        let sums = [&mut line.loss, &mut line.target_entropy, &mut line.gradient_norm];
        for sum in sums.into_iter().chain(line.losses.values_mut()) {
            *sum /= steps;
        }
        line.samples_per_second = line.samples as f64 / self.busy.as_secs_f64().max(1e-9);
        line.waiting_seconds = self.waiting.as_secs_f64();
        line.checkpoint = checkpoint;
        line.time_ms = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |age| age.as_millis() as u64);
        if line.steps > 0 {
            self.metrics.samples_per_second.set(line.samples_per_second);
            tracing::info!(
                step = line.step,
                policy_loss = rounded(line.loss_of(POLICY)),
                value_loss = rounded(line.loss_of(VALUE)),
                samples_per_second = line.samples_per_second.round(),
                samples_per_position = rounded(line.samples_per_position),
                "trained"
            );
        }
        self.busy = Duration::ZERO;
        self.waiting = Duration::ZERO;
        self.since = Instant::now();
        let written = self.lines.append(&line).and_then(|()| self.append_events(&line));
        if let Err(error) = written {
            tracing::warn!(%error, path = %self.lines.path().display(), "cannot write metrics");
        }
    }

    fn append_events(&mut self, line: &MetricsLine) -> io::Result<()> {
        if line.steps == 0 {
            return Ok(());
        }
        let mut scalars: Vec<(String, f64)> = line
            .losses
            .iter()
            .map(|(term, &loss)| (format!("loss/{term}"), loss))
            .collect();
        for (name, figure) in [
            (
                "loss/policy_above_targets",
                line.loss_of(POLICY) - line.target_entropy,
            ),
            ("loss/total", line.loss),
            ("gradient_norm", line.gradient_norm),
            ("learning_rate", line.learning_rate),
            ("samples_per_second", line.samples_per_second),
            ("samples_per_position", line.samples_per_position),
            ("waiting_seconds", line.waiting_seconds),
        ] {
            scalars.push((name.to_owned(), figure));
        }
        let scalars: Vec<(&str, f64)> = scalars
            .iter()
            .map(|(name, figure)| (name.as_str(), *figure))
            .collect();
        self.events.scalars(line.step, &scalars)
    }
}

fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_contains_the_means_since_the_last_line() {
        let folder = tempfile::tempdir().unwrap();
        let mut reporter = Reporter::open(folder.path(), Arc::default()).unwrap();
        for (step, policy_loss) in [(1, 4.0), (2, 2.0)] {
            let report = StepReport {
                step,
                losses: vec![("policy", policy_loss), ("value", 1.0)],
                loss: policy_loss + 1.0,
                target_entropy: 0.5,
                gradient_norm: 1.0,
                learning_rate: 0.1,
                samples: 10,
            };
            reporter.stepped(&report, 0.5, Duration::from_millis(10));
        }
        reporter.published("000000000002-00000000", 2);
        reporter.published("000000000002-00000000", 2);
        let text = std::fs::read_to_string(folder.path().join("metrics.jsonl")).unwrap();
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0]["policy_loss"], 3.0);
        // A network without outcomes has no squared error in addition to its value loss.
        assert!(lines[0].get("value_squared_error").is_none());
        assert_eq!(lines[0]["samples"], 20);
        assert_eq!(lines[0]["samples_per_second"], 1000.0);
        assert_eq!(lines[0]["checkpoint"], "000000000002-00000000");
        assert_eq!(lines[1]["steps"], 0);
    }
}
