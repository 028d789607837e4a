//! Models in 8-bit integers: made from a file, its ranges, and what this CPU's kernels can add.

use std::sync::OnceLock;

use config::Provider;
use onnx::{
    int8::{self, LARGEST, LARGEST_IN_16_BITS},
    sums,
};
use ort::{environment::Environment, value::Tensor};

use crate::{
    batch::RunError,
    canary,
    loader::{LoadError, Loader, runner::Task},
    provider::{self, ProviderSettings},
    session::SessionRunner,
};

impl Loader {
    /// Returns the file with convolutions in 8-bit integers. Their scales follow from the ranges in the canary's positions.
    pub(super) fn int8<'a>(&self, task: &'a Task<'_>) -> Result<&'a [u8], LoadError> {
        if let Some(made) = task.int8.get() {
            return Ok(made);
        }
        let Task { file, contract, .. } = task;
        let failed = || LoadError::of_conversion("the model cannot be converted to 8-bit integers");
        let probe = int8::with_ranges(&file.bytes).map_err(failed())?;
        let load = |file: &[u8]| {
            let settings = ProviderSettings::from(self.settings.threads);
            let shapes = Some(self.shapes(task));
            provider::load(Provider::Cpu, &self.environment, &settings, file, shapes, None)
        };
        let mut runner = SessionRunner::new(load(&probe.file)?, &file.layout, contract)?;
        let ranges = runner.ranges(canary::batch(&file.layout, canary::MOST), &probe.tensors)?;
        let largest = largest_weight(&self.environment)?;
        let made = int8::to_int8(&file.bytes, &ranges, largest).map_err(failed())?;
        Ok(task.int8.get_or_init(|| made))
    }
}

/// Returns the largest magnitude of weights whose sums this CPU computes without error, measured once in a process.
fn largest_weight(environment: &Environment) -> Result<u8, LoadError> {
    static FOUND: OnceLock<u8> = OnceLock::new();
    if let Some(&found) = FOUND.get() {
        return Ok(found);
    }
    let failed = |error: ort::Error| RunError(format!("the sums of bytes cannot be measured: {error}"));
    let file = sums::model().map_err(LoadError::of_conversion("the sums of bytes"))?;
    let settings = ProviderSettings::from(1);
    let mut session = provider::load(Provider::Cpu, environment, &settings, &file, None, None)?;
    let ones = vec![1.0_f32; sums::SHAPE.iter().product()];
    let ones = Tensor::from_array((sums::SHAPE, ones)).map_err(failed)?;
    let outputs = session.run(ort::inputs![sums::ONES => ones]).map_err(failed)?;
    let (_, sum) = outputs[sums::SUM].try_extract_tensor::<f32>().map_err(failed)?;
    let is_exact = sum.iter().all(|sum| (sum / sums::EXACT - 1.0).abs() < 0.01);
    let found = if is_exact { LARGEST } else { LARGEST_IN_16_BITS };
    tracing::debug!(found, "largest weight in 8-bit integers");
    Ok(*FOUND.get_or_init(|| found))
}
