//! [`Compared`]: the rates of a baseline that was measured in turn with the subject, and the subject's ratios to them.

use serde::Serialize;

use super::{
    measure::Measured,
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
