//! Packing of priors for the wire: IEEE 754 binary16 (half precision), little-endian, two bytes each.
//!
//! Half precision keeps a chess evaluation under 256 bytes, request and reply together. The relative error of a prior is
//! at most 2⁻¹¹, which is far below the noise of a search.
//!
//! ```
//! let packed = proto::priors::encode(&[0.5, 0.25, 0.25]);
//! assert_eq!(packed.len(), 6);
//!
//! let mut priors = Vec::new();
//! proto::priors::decode(&packed, 3, &mut priors)?;
//! assert_eq!(priors, [0.5, 0.25, 0.25]);
//! # Ok::<(), proto::priors::PriorsError>(())
//! ```

use bytes::Bytes;
use half::f16;

/// Bytes of one packed prior.
const PRIOR_BYTES: usize = size_of::<f16>();

/// Error: a field of packed priors has the wrong length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{bytes} bytes of priors, {expected} expected")]
pub struct PriorsError {
    /// Number of bytes found.
    pub bytes: usize,
    /// Number of bytes expected: two for each prior.
    pub expected: usize,
}

/// Packs priors in `[0, 1]`, two bytes each.
///
/// ```
/// // 1 is 0x3c00 in binary16.
/// assert_eq!(proto::priors::encode(&[1.0])[..], [0x00, 0x3c]);
/// ```
pub fn encode(priors: &[f32]) -> Bytes {
    let mut bytes = Vec::with_capacity(priors.len() * PRIOR_BYTES);
    for &prior in priors {
        bytes.extend_from_slice(&f16::from_f32(prior).to_le_bytes());
    }
    bytes.into()
}

/// Unpacks `count` priors from `bytes` and appends them to `priors`.
///
/// # Errors
/// [`PriorsError`] if `bytes` does not hold exactly `count` priors; `priors` is unchanged then.
///
/// ```
/// let mut priors = vec![0.25];
/// assert!(proto::priors::decode(&[0x00, 0x3c, 0x00], 1, &mut priors).is_err());
/// proto::priors::decode(&[0x00, 0x3c], 1, &mut priors)?;
/// assert_eq!(priors, [0.25, 1.0]);
/// # Ok::<(), proto::priors::PriorsError>(())
/// ```
pub fn decode(bytes: &[u8], count: usize, priors: &mut Vec<f32>) -> Result<(), PriorsError> {
    let expected = count * PRIOR_BYTES;
    if bytes.len() != expected {
        return Err(PriorsError {
            bytes: bytes.len(),
            expected,
        });
    }
    priors.extend(
        bytes
            .chunks_exact(PRIOR_BYTES)
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
        fn packed_priors_keep_half_precision(priors in prop::collection::vec(0.0f32..=1.0, 0..80)) {
            let mut unpacked = Vec::new();
            decode(&encode(&priors), priors.len(), &mut unpacked).unwrap();
            for (before, after) in priors.iter().zip(&unpacked) {
                prop_assert!((before - after).abs() <= before * 2f32.powi(-11) + 1e-7);
            }
        }
    }

    #[test]
    fn decode_refuses_a_wrong_length() {
        assert_eq!(
            decode(&[0; 5], 2, &mut Vec::new()),
            Err(PriorsError {
                bytes: 5,
                expected: 4
            })
        );
    }
}
