//! Named tensors on the host and their file format, safetensors.

use anyhow::{Context as _, ensure};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};

/// A tensor of f32 with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct HostTensor {
    /// Name.
    pub name: String,
    /// Dimensions.
    pub dims: Vec<i64>,
    /// Numbers, row-major.
    pub numbers: Vec<f32>,
}

impl HostTensor {
    pub(crate) fn check_dims(&self, expected: &[i64]) -> anyhow::Result<()> {
        let length: i64 = self.dims.iter().product();
        ensure!(
            self.dims == expected && self.numbers.len() as i64 == length,
            "`{}` has the dimensions {:?}, {expected:?} expected",
            self.name,
            self.dims
        );
        Ok(())
    }
}

/// Writes a file. The same tensors give the same bytes.
///
/// # Errors
/// A tensor's dimensions do not fit its numbers.
pub fn write(tensors: &[HostTensor]) -> anyhow::Result<Vec<u8>> {
    let bytes: Vec<Vec<u8>> = tensors
        .iter()
        .map(|tensor| {
            tensor
                .numbers
                .iter()
                .flat_map(|number| number.to_le_bytes())
                .collect()
        })
        .collect();
    let views = tensors
        .iter()
        .zip(&bytes)
        .map(|(tensor, bytes)| {
            let dims = tensor.dims.iter().map(|&dim| dim as usize).collect();
            let view = TensorView::new(Dtype::F32, dims, bytes)?;
            Ok((tensor.name.as_str(), view))
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    Ok(safetensors::serialize(views, None)?)
}

/// Reads a file. The tensors are sorted by name.
///
/// # Errors
/// `file` is not in the safetensors format, or contains another type than f32.
pub fn read(file: &[u8]) -> anyhow::Result<Vec<HostTensor>> {
    let file = SafeTensors::deserialize(file).context("not a safetensors file")?;
    let mut views = file.tensors();
    views.sort_by(|left, right| left.0.cmp(&right.0));
    views
        .into_iter()
        .map(|(name, view)| {
            let found = view.dtype();
            ensure!(
                found == Dtype::F32,
                "`{name}` has the type {found:?}, F32 expected"
            );
            let numbers = view
                .data()
                .chunks_exact(4)
                .map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
                .collect();
            Ok(HostTensor {
                name,
                dims: view.shape().iter().map(|&dim| dim as i64).collect(),
                numbers,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tensor() -> impl Strategy<Value = HostTensor> {
        (0i64..4, 1i64..5).prop_flat_map(|(rows, columns)| {
            proptest::collection::vec(any::<u32>(), (rows * columns) as usize).prop_map(move |bits| {
                HostTensor {
                    name: String::new(),
                    dims: vec![rows, columns],
                    numbers: bits.into_iter().map(f32::from_bits).collect(),
                }
            })
        })
    }

    proptest! {
        #[test]
        fn every_bit_comes_back(mut tensors in proptest::collection::vec(tensor(), 0..5)) {
            for (number, tensor) in tensors.iter_mut().enumerate() {
                tensor.name = format!("part{number}");
            }
            let file = write(&tensors).unwrap();
            prop_assert_eq!(&file, &write(&tensors).unwrap());
            let back = read(&file).unwrap();
            let bits = |list: &[HostTensor]| -> Vec<(String, Vec<i64>, Vec<u32>)> {
                list.iter().map(|tensor| (
                    tensor.name.clone(),
                    tensor.dims.clone(),
                    tensor.numbers.iter().map(|number| number.to_bits()).collect(),
                )).collect()
            };
            prop_assert_eq!(bits(&back), bits(&tensors));
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = read(&bytes);
        }
    }
}
