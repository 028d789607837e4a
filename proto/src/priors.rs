//! Priors on the wire: IEEE 754 binary16, little-endian, two bytes each.
//!
//! Half precision keeps a chess evaluation under 256 bytes both ways; a prior's relative error is
//! at most 2⁻¹¹, far below a search's own noise.

use bytes::Bytes;
use half::f16;

/// Bytes that are not a whole number of priors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{bytes} bytes of priors, {expected} expected")]
pub struct PriorsError {
    /// Bytes there were.
    pub bytes: usize,
    /// Bytes there should be.
    pub expected: usize,
}

/// Packs priors in `[0, 1]`.
pub fn encode(priors: &[f32]) -> Bytes {
    let mut bytes = Vec::with_capacity(priors.len() * 2);
    for &prior in priors {
        bytes.extend_from_slice(&f16::from_f32(prior).to_le_bytes());
    }
    bytes.into()
}

/// Appends the `count` priors in `bytes` to `priors`.
///
/// # Errors
/// [`PriorsError`] where the length is another; `priors` is unchanged then.
pub fn decode(bytes: &[u8], count: usize, priors: &mut Vec<f32>) -> Result<(), PriorsError> {
    let expected = count * 2;
    if bytes.len() != expected {
        return Err(PriorsError {
            bytes: bytes.len(),
            expected,
        });
    }
    priors.extend(
        bytes
            .chunks_exact(2)
            .map(|pair| f16::from_le_bytes([pair[0], pair[1]]).to_f32()),
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn come_back_within_half_precision(priors in prop::collection::vec(0.0f32..=1.0, 0..80)) {
            let mut back = Vec::new();
            decode(&encode(&priors), priors.len(), &mut back).unwrap();
            for (before, after) in priors.iter().zip(&back) {
                prop_assert!((before - after).abs() <= before * 2f32.powi(-11) + 1e-7);
            }
        }
    }

    #[test]
    fn refuses_another_length() {
        assert_eq!(
            decode(&[0; 5], 2, &mut Vec::new()),
            Err(PriorsError {
                bytes: 5,
                expected: 4
            })
        );
    }
}
