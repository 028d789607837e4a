//! Number format of the tower in training: f32, or bf16 if a measurement finds it faster and equally good.
//!
//! bf16 has the exponents of f32 and 8 bits of mantissa. Weights, their gradients' sums, statistics and losses stay in
//! f32 (mixed precision, Micikevicius et al., 2018; bf16 needs no loss scaling).

use serde::{Deserialize, Serialize};
use tch::Kind;

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
