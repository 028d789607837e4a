//! Named tensors on the host and their file format, safetensors.

use safetensors::{Dtype, SafeTensors, tensor::TensorView};

use crate::torch::TorchError;

/// A tensor of f32 with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct HostTensor {
    /// Its name.
    pub name: String,
    /// Its sides.
    pub sides: Vec<i64>,
    /// Its numbers, row-major.
    pub numbers: Vec<f32>,
}

/// A file of tensors that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TensorsError {
    /// Not a safetensors file.
    #[error("not a safetensors file: {0}")]
    File(#[from] safetensors::SafeTensorError),
    /// A tensor of another type.
    #[error("`{name}` holds {found}, F32 expected")]
    Kind {
        /// The tensor.
        name: String,
        /// Its type.
        found: String,
    },
    /// A tensor that the network has and the file has not.
    #[error("`{name}` is missing")]
    Missing {
        /// The tensor.
        name: String,
    },
    /// A tensor that the file has and the network has not.
    #[error("`{name}` is not part of this network")]
    Unknown {
        /// The tensor.
        name: String,
    },
    /// A tensor of another size.
    #[error("`{name}` has the sides {found:?}, {expected:?} expected")]
    Sides {
        /// The tensor.
        name: String,
        /// Sides in the file.
        found: Vec<i64>,
        /// Sides in the network.
        expected: Vec<i64>,
    },
    /// Torch refused.
    #[error(transparent)]
    Torch(#[from] TorchError),
}

impl HostTensor {
    pub(crate) fn check_sides(&self, expected: &[i64]) -> Result<(), TensorsError> {
        let length: i64 = self.sides.iter().product();
        if self.sides == expected && self.numbers.len() as i64 == length {
            return Ok(());
        }
        Err(TensorsError::Sides {
            name: self.name.clone(),
            found: self.sides.clone(),
            expected: expected.to_vec(),
        })
    }
}

/// Writes a file. The same tensors give the same bytes.
///
/// # Errors
/// [`TensorsError::File`] where a tensor's sides are not those of its numbers.
pub fn write(tensors: &[HostTensor]) -> Result<Vec<u8>, TensorsError> {
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
            let sides = tensor.sides.iter().map(|&side| side as usize).collect();
            let view = TensorView::new(Dtype::F32, sides, bytes)?;
            Ok((tensor.name.as_str(), view))
        })
        .collect::<Result<Vec<_>, TensorsError>>()?;
    Ok(safetensors::serialize(views, None)?)
}

/// Reads a file; the tensors come in the order of their names.
///
/// # Errors
/// [`TensorsError`] where it is none, or holds anything but f32.
pub fn read(file: &[u8]) -> Result<Vec<HostTensor>, TensorsError> {
    let file = SafeTensors::deserialize(file)?;
    let mut views = file.tensors();
    views.sort_by(|left, right| left.0.cmp(&right.0));
    views
        .into_iter()
        .map(|(name, view)| {
            if view.dtype() != Dtype::F32 {
                return Err(TensorsError::Kind {
                    found: format!("{:?}", view.dtype()),
                    name,
                });
            }
            let numbers = view
                .data()
                .chunks_exact(4)
                .map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
                .collect();
            Ok(HostTensor {
                name,
                sides: view.shape().iter().map(|&side| side as i64).collect(),
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
                    sides: vec![rows, columns],
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
                    tensor.sides.clone(),
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
