//! Measures which precision trains faster: f32 or bf16.

use std::time::Instant;

use crate::{
    data::batches::HostBatch,
    training::{
        precision::Precision,
        train::{TrainError, Trainer},
    },
};

/// Minimum factor by which bf16 must be faster to be chosen.
const GAIN: f64 = 1.15;
/// Maximum relative difference of the losses after the measurement's steps.
const AGREEMENT: f64 = 0.02;
/// Number of steps of a measurement, after one to warm up.
const STEPS: u32 = 3;

/// Trains a few steps in both precisions, each with a trainer of its own from `new_trainer`, and returns the precision to use.
///
/// # Errors
/// [`TrainError`] if training fails even in f32.
pub fn measure(
    new_trainer: impl Fn() -> Result<Trainer, TrainError>,
    batch: &HostBatch,
) -> Result<Precision, TrainError> {
    let in_precision = |precision: Precision| -> Result<(f64, f64), TrainError> {
        let mut trainer = new_trainer()?;
        trainer.set_precision(precision);
        trainer.step(batch)?;
        let (mut fastest, mut loss) = (f64::INFINITY, f64::NAN);
        for _ in 0..STEPS {
            let begun = Instant::now();
            loss = trainer.step(batch)?.loss;
            fastest = fastest.min(begun.elapsed().as_secs_f64());
        }
        Ok((fastest, loss))
    };
    let (f32_seconds, f32_loss) = in_precision(Precision::F32)?;
    let (bf16_seconds, bf16_loss) = match in_precision(Precision::Bf16) {
        Ok(measured) => measured,
        Err(error) => {
            tracing::info!(%error, "bf16 does not work here; training in f32");
            return Ok(Precision::F32);
        }
    };
    let gain = f32_seconds / bf16_seconds;
    let agrees = (bf16_loss - f32_loss).abs() <= AGREEMENT * f32_loss.abs();
    let chosen = if agrees && gain >= GAIN {
        Precision::Bf16
    } else {
        Precision::F32
    };
    tracing::info!(
        ?chosen,
        gain,
        f32_loss,
        bf16_loss,
        "measured training steps in f32 and bf16"
    );
    Ok(chosen)
}
