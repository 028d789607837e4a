//! Columns of numbers as byte planes: all low bytes, then all second bytes, and so on (the shuffle filter of Blosc).
//!
//! Small numbers take one plane only, and zstd compresses bytes of one kind better together.

use half::f16;

use super::sections::{DecodeError, Reader};

/// Appends `values`: a byte with the number of planes, then the planes.
pub(crate) fn put(values: &[u32], out: &mut Vec<u8>) {
    let all = values.iter().fold(0, |all, &value| all | value);
    let planes = (32 - all.leading_zeros()).div_ceil(8);
    out.push(planes as u8);
    for plane in 0..planes {
        out.extend(values.iter().map(|&value| (value >> (8 * plane)) as u8));
    }
}

/// Reads `count` values.
pub(crate) fn take(reader: &mut Reader<'_>, count: usize) -> Result<Vec<u32>, DecodeError> {
    let planes = reader.byte()?;
    if planes > 4 {
        return Err(DecodeError::NUMBER);
    }
    let bytes = reader.take(count.checked_mul(planes.into()).ok_or(DecodeError::NUMBER)?)?;
    let mut values = match bytes.get(..count) {
        Some(low) => low.iter().map(|&byte| u32::from(byte)).collect(),
        None => vec![0; count],
    };
    for (plane, bytes) in bytes.chunks_exact(count.max(1)).enumerate().skip(1) {
        for (value, &byte) in values.iter_mut().zip(bytes) {
            *value |= u32::from(byte) << (8 * plane);
        }
    }
    Ok(values)
}

const HALVES: u8 = 2;
const SINGLES: u8 = 4;

/// Appends `values` exactly, as planes: in half precision if every value can be represented in it, otherwise in single precision.
pub(crate) fn put_floats(values: &[f32], out: &mut Vec<u8>) {
    let is_half = |value: f32| f16::from_f32(value).to_f32().to_bits() == value.to_bits();
    if values.iter().all(|&value| is_half(value)) {
        out.push(HALVES);
        for plane in 0..2 {
            out.extend(
                values
                    .iter()
                    .map(|&value| f16::from_f32(value).to_le_bytes()[plane]),
            );
        }
    } else {
        out.push(SINGLES);
        for plane in 0..4 {
            out.extend(values.iter().map(|&value| value.to_le_bytes()[plane]));
        }
    }
}

/// Reads `count` floats.
pub(crate) fn take_floats(reader: &mut Reader<'_>, count: usize) -> Result<Vec<f32>, DecodeError> {
    let width = reader.byte()?;
    if width != HALVES && width != SINGLES {
        return Err(DecodeError::NUMBER);
    }
    let bytes = reader.take(count.checked_mul(width.into()).ok_or(DecodeError::NUMBER)?)?;
    let plane = |at: usize| bytes.get(at * count..(at + 1) * count).unwrap_or(&[]);
    let pairs = plane(0).iter().zip(plane(1));
    Ok(if width == HALVES {
        pairs
            .map(|(&low, &high)| f16::from_le_bytes([low, high]).to_f32())
            .collect()
    } else {
        pairs
            .zip(plane(2).iter().zip(plane(3)))
            .map(|((&a, &b), (&c, &d))| f32::from_le_bytes([a, b, c, d]))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(values in prop::collection::vec(prop_oneof![0u32..3, 0u32..300, any::<u32>()], 0..50)) {
            let mut bytes = Vec::new();
            put(&values, &mut bytes);
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(take(&mut reader, values.len()).unwrap(), values);
            prop_assert!(reader.end().is_ok());
        }

        #[test]
        fn floats_come_back_bit_for_bit(bits in prop::collection::vec(any::<u32>(), 0..50), as_halves: bool) {
            let values: Vec<f32> = bits
                .iter()
                .map(|&bits| if as_halves { f16::from_bits(bits as u16).to_f32() } else { f32::from_bits(bits) })
                .filter(|value| value.is_finite())
                .collect();
            let mut bytes = Vec::new();
            put_floats(&values, &mut bytes);
            let back = take_floats(&mut Reader::new(&bytes), values.len()).unwrap();
            prop_assert_eq!(
                back.iter().map(|value| value.to_bits()).collect::<Vec<_>>(),
                values.iter().map(|value| value.to_bits()).collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn small_numbers_take_one_byte_each() {
        let mut bytes = Vec::new();
        put(&[1, 255, 0], &mut bytes);
        assert_eq!(bytes, [1, 1, 255, 0]);
        bytes.clear();
        put(&[0; 100], &mut bytes);
        assert_eq!(bytes, [0]);
    }
}
