//! [`Compared`]: the rates of a baseline that was measured in turn with the subject, and the subject's ratios to them.
//! [`Baselines`]: the two baselines of a network.

use std::path::Path;

use anyhow::Context as _;
use network::ModelFile;
use serde::Serialize;

use super::{
    child::DrivenChild,
    direct,
    measure::Measured,
    onnxruntime::{self, OnnxRuntime},
    positions::Positions,
    report::{median_of, median_ratio},
};

/// Rates of a baseline, and ratios to it; medians over the rounds.
#[derive(Debug, Serialize)]
pub struct Compared {
    /// Positions per second of the baseline.
    pub per_second: f64,
    /// Positions per second of processor time of the baseline.
    pub per_cpu_second: f64,
    /// Subject / baseline, by wall clock.
    pub ratio: f64,
    /// Subject / baseline, per second of processor time; other work on the machine disturbs it less than `ratio`.
    pub cpu_ratio: f64,
}

impl Compared {
    /// Compares the rounds of a subject with those of a baseline; `None` if the baseline has none.
    pub fn new(subject: &[Measured], baseline: &[Measured]) -> Option<Self> {
        (!baseline.is_empty()).then(|| Self {
            per_second: median_of(baseline, Measured::per_second),
            per_cpu_second: median_of(baseline, Measured::per_cpu_second),
            ratio: median_ratio(subject, baseline, Measured::per_second),
            cpu_ratio: median_ratio(subject, baseline, Measured::per_cpu_second),
        })
    }
}

/// A network that is called directly: by Minuet's loader, and by ONNX Runtime's Python package.
pub struct Baselines {
    /// Minuet's loader.
    pub direct: DrivenChild,
    onnxruntime: OnnxRuntime,
}

impl Baselines {
    /// Starts both on the core of this thread, for batches of `batch` positions of `game`. Minuet's loader chooses among what
    /// `provider` allows; the package is given the provider `chosen`. The model is written to `folder`, which must last as long as
    /// the baselines.
    ///
    /// # Errors
    /// A file cannot be written, or a process does not start.
    pub fn start(
        (positions, batch): (&Positions, usize),
        (model, folder): (&ModelFile, &Path),
        (provider, chosen): (&str, &str),
        python: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let file = folder.join("direct.onnx");
        std::fs::write(&file, &model.bytes)?;
        let direct = direct::start(&model.layout.game, provider, batch, &file)?;
        let batching = (batch, direct.first_line.parse()?);
        Ok(Self {
            direct,
            onnxruntime: OnnxRuntime::start(python, &file, positions, batching, chosen)?,
        })
    }

    fn processes(&mut self) -> impl Iterator<Item = &mut DrivenChild> {
        std::iter::once(&mut self.direct).chain(&mut self.onnxruntime.process)
    }

    /// Runs both for `seconds` each, without a measurement.
    ///
    /// # Errors
    /// A process has ended.
    pub fn warm_up(&mut self, seconds: f64) -> anyhow::Result<()> {
        self.processes()
            .try_for_each(|process| process.work(seconds).map(drop))
    }

    /// Measures a round of both, of `seconds` each.
    ///
    /// # Errors
    /// A process has ended.
    pub fn measure(&mut self, seconds: f64) -> anyhow::Result<()> {
        self.processes().try_for_each(|process| process.measure(seconds))
    }

    /// Compares the rounds of a subject with those of Minuet's loader, and with those of the package.
    ///
    /// # Errors
    /// There are no rounds.
    pub fn compare(&self, subject: &[Measured]) -> anyhow::Result<(Compared, onnxruntime::Figures)> {
        let direct = Compared::new(subject, &self.direct.rounds).context("there are no rounds")?;
        Ok((direct, self.onnxruntime.figures(subject)))
    }
}
