//! Number format of the tower in training: f32, or bf16 if a measurement finds it faster and equally good.
//!
//! bf16 has the exponents of f32 and 8 bits of mantissa. Weights, their gradients' sums, statistics and losses stay in
//! f32 (mixed precision, Micikevicius et al., 2018; bf16 needs no loss scaling).

use std::time::Instant;

use serde::{Deserialize, Serialize};
use tch::Kind;

use crate::{
    data::batches::HostBatch,
    training::train::{TrainError, Trainer},
};

/// Minimum factor by which bf16 must be faster to be chosen.
const GAIN: f64 = 1.15;
/// Maximum relative difference of the losses after the measurement's steps.
const AGREEMENT: f64 = 0.02;
/// Number of steps of a measurement, after one to warm up.
const STEPS: u32 = 3;

/// A precision that has been decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// 32 bits.
    F32,
    /// The upper 16 bits of f32.
    Bf16,
}

impl Precision {
    /// Returns the configured precision; `None` if it must be measured.
    pub fn configured(wanted: config::Precision) -> Option<Self> {
        match wanted {
            config::Precision::Auto => None,
            config::Precision::F32 => Some(Self::F32),
            config::Precision::Bf16 => Some(Self::Bf16),
        }
    }

    /// Returns torch's type of this precision.
    pub fn kind(self) -> Kind {
        match self {
            Self::F32 => Kind::Float,
            Self::Bf16 => Kind::BFloat16,
        }
    }
}

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
