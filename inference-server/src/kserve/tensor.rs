//! The tensors of a request, with raw or typed contents. Data type and shape are checked before a number is read.

use bytes::Bytes;
use proto::inference::{ModelInferRequest, model_infer_request::InferInputTensor};
use tonic::Status;

use super::error::{check_number, invalid};

/// Largest number of inputs of a request.
pub const MOST_INPUTS: usize = 3;

/// An input's name, shape and contents, which are not parsed yet.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    tensor: &'a InferInputTensor,
    raw: Option<&'a Bytes>,
}

/// Returns the inputs of a request, at most [`MOST_INPUTS`] with distinct names, each with its contents.
///
/// # Errors
/// A status that names the tensor, for more inputs, a duplicate one, or mixed typed and raw contents.
pub fn inputs(request: &ModelInferRequest) -> Result<Vec<Input<'_>>, Status> {
    let (tensors, raw) = (&request.inputs, &request.raw_input_contents);
    // Checked first, because a message may contain millions.
    check_number("inputs", tensors.len(), MOST_INPUTS)?;
    if !raw.is_empty() {
        if raw.len() != tensors.len() {
            return Err(invalid(format!(
                "{} raw_input_contents for {} inputs; one is needed for each",
                raw.len(),
                tensors.len()
            )));
        }
        if let Some(tensor) = tensors.iter().find(|tensor| tensor.contents.is_some()) {
            return Err(invalid(format!(
                "input '{}' has contents although raw_input_contents are given; use one of them",
                tensor.name
            )));
        }
    }
    let mut inputs: Vec<Input<'_>> = Vec::with_capacity(tensors.len());
    for (number, tensor) in tensors.iter().enumerate() {
        if inputs.iter().any(|input| input.tensor.name == tensor.name) {
            return Err(invalid(format!("duplicate input '{}'", tensor.name)));
        }
        if let Some(parameter) = tensor.parameters.keys().next() {
            return Err(invalid(format!(
                "input '{}': the parameter '{parameter}' is not supported",
                tensor.name
            )));
        }
        inputs.push(Input {
            tensor,
            raw: raw.get(number),
        });
    }
    Ok(inputs)
}

/// A data type whose elements can be read.
pub trait Element: Copy {
    /// Name of the type in the protocol.
    const DATATYPE: &'static str;
    /// Returns the typed contents of a tensor of this type.
    fn typed(tensor: &InferInputTensor) -> &[Self];
    /// Reads an element from four bytes, little-endian.
    fn from_bytes(bytes: [u8; 4]) -> Self;
}

macro_rules! element {
    ($type:ty, $name:literal, $field:ident) => {
        impl Element for $type {
            const DATATYPE: &'static str = $name;
            fn typed(tensor: &InferInputTensor) -> &[Self] {
                tensor
                    .contents
                    .as_ref()
                    .map_or(&[], |contents| &contents.$field)
            }
            fn from_bytes(bytes: [u8; 4]) -> Self {
                Self::from_le_bytes(bytes)
            }
        }
    };
}
element!(u32, "UINT32", uint_contents);
element!(i32, "INT32", int_contents);
element!(f32, "FP32", fp32_contents);

impl<'a> Input<'a> {
    /// Returns the name of the input.
    pub fn name(&self) -> &'a str {
        &self.tensor.name
    }

    /// Returns the data type's name in the protocol.
    pub fn datatype(&self) -> &'a str {
        &self.tensor.datatype
    }

    /// Returns the first dimension, the number of positions, if the shape is `[n, dims…]`; a 0 in `dims` allows any length from 1.
    ///
    /// # Errors
    /// A status that names the tensor.
    pub fn positions(&self, dims: &[usize]) -> Result<usize, Status> {
        let shape = &self.tensor.shape;
        let fits = |(&found, &expected): (&i64, &usize)| {
            usize::try_from(found).is_ok_and(|found| found >= 1 && (expected == 0 || found == expected))
        };
        let is_right =
            shape.len() == dims.len() + 1 && shape[0] >= 1 && shape.iter().skip(1).zip(dims).all(fits);
        let first = shape.first().and_then(|&first| usize::try_from(first).ok());
        first.filter(|_| is_right).ok_or_else(|| self.shape_error(dims))
    }

    /// Returns the last dimension; 0 if the shape is empty.
    pub fn width(&self) -> usize {
        let last = self.tensor.shape.last().copied().unwrap_or_default();
        usize::try_from(last).unwrap_or_default()
    }

    fn shape_error(&self, dims: &[usize]) -> Status {
        let dims = dims.iter().map(|&dim| if dim == 0 { -1 } else { dim as i64 });
        let expected: Vec<i64> = std::iter::once(-1).chain(dims).collect();
        let (name, found) = (&self.tensor.name, &self.tensor.shape);
        let mut sides = found.iter().zip(&expected).enumerate();
        // An expected -1 is any length from 1.
        let wrong = sides.find(|(_, (found, expected))| **found < 1 || **expected > 0 && found != expected);
        let reason = match wrong {
            _ if found.len() != expected.len() => {
                format!("it has {} dimensions, not {}", found.len(), expected.len())
            }
            Some((at, (found, -1))) => format!("dimension {at} is {found}, at least 1 is needed"),
            Some((at, (found, expected))) => format!("dimension {at} is {found}, not {expected}"),
            None => "it is too large".into(),
        };
        invalid(format!(
            "unexpected shape for input '{name}': expected {expected:?}, got {found:?}: {reason}"
        ))
    }

    /// Returns the error for an unsuitable data type.
    pub fn datatype_error(&self, expected: &str) -> Status {
        invalid(format!(
            "unexpected datatype for input '{}': expected {expected}, got {}",
            self.tensor.name, self.tensor.datatype
        ))
    }

    /// Reads the elements, which must be of type `T` and match the shape in number.
    ///
    /// # Errors
    /// A status that names the tensor.
    pub fn read<T: Element>(&self) -> Result<Vec<T>, Status> {
        if self.tensor.datatype != T::DATATYPE {
            return Err(self.datatype_error(T::DATATYPE));
        }
        let dims = self.tensor.shape.iter().map(|&dim| u64::try_from(dim).ok());
        let count = dims.reduce(|product, side| product?.checked_mul(side?)).flatten();
        let wrong = |expected: u64, found: usize, unit: &str| {
            invalid(format!(
                "input '{}' has {found} {unit}, its shape {:?} needs {expected}",
                self.tensor.name, self.tensor.shape
            ))
        };
        let count = count.ok_or_else(|| {
            let (name, shape) = (&self.tensor.name, &self.tensor.shape);
            invalid(format!(
                "input '{name}' has the shape {shape:?}, of which the elements cannot be counted"
            ))
        })?;
        match self.raw {
            Some(raw) => {
                let (elements, rest) = raw.as_chunks::<4>();
                if !rest.is_empty() || elements.len() as u64 != count {
                    return Err(wrong(count.saturating_mul(4), raw.len(), "bytes"));
                }
                Ok(elements.iter().map(|&bytes| T::from_bytes(bytes)).collect())
            }
            None => {
                let elements = T::typed(self.tensor);
                if elements.len() as u64 != count {
                    return Err(wrong(count, elements.len(), "elements of its type"));
                }
                Ok(elements.to_vec())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proto::inference::InferTensorContents;

    use super::*;

    fn tensor(datatype: &str, shape: &[i64]) -> InferInputTensor {
        InferInputTensor {
            name: "x".into(),
            datatype: datatype.into(),
            shape: shape.to_vec(),
            ..InferInputTensor::default()
        }
    }

    fn request(tensor: InferInputTensor, raw: &[&[u8]]) -> ModelInferRequest {
        ModelInferRequest {
            inputs: vec![tensor],
            raw_input_contents: raw.iter().map(|bytes| Bytes::copy_from_slice(bytes)).collect(),
            ..ModelInferRequest::default()
        }
    }

    proptest! {
        #[test]
        fn raw_and_typed_contents_read_the_same(numbers in prop::collection::vec(any::<i32>(), 1..40)) {
            let shape = [numbers.len() as i64, 1];
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            let raw = request(tensor("INT32", &shape), &[&bytes]);
            let mut typed = tensor("INT32", &shape);
            typed.contents = Some(InferTensorContents { int_contents: numbers.clone(), ..InferTensorContents::default() });
            let typed = request(typed, &[]);
            for request in [raw, typed] {
                let inputs = inputs(&request).unwrap();
                prop_assert_eq!(inputs[0].positions(&[1]).unwrap(), numbers.len());
                prop_assert_eq!(&inputs[0].read::<i32>().unwrap(), &numbers);
            }
        }

        /// For any shape and length of contents, the number of elements read matches the shape.
        #[test]
        fn the_number_of_elements_matches_the_shape(shape in prop::collection::vec(-3i64..5, 0..4), length in 0usize..70) {
            let request = request(tensor("UINT32", &shape), &[&vec![7; length]]);
            if let Ok(numbers) = inputs(&request).unwrap()[0].read::<u32>() {
                prop_assert_eq!(numbers.len() as i64, shape.iter().product::<i64>());
                prop_assert_eq!(numbers.len() * 4, length);
            }
        }
    }

    #[test]
    fn errors_name_the_tensor_the_expected_and_the_found_value() {
        let wrong = request(tensor("FP32", &[2, 3]), &[&[0; 24]]);
        let input = inputs(&wrong).unwrap()[0];
        let message = input.read::<u32>().unwrap_err().message().to_owned();
        assert_eq!(
            message,
            "unexpected datatype for input 'x': expected UINT32, got FP32"
        );
        for (shape, dims, expected) in [
            (&[2, 3][..], 4, "[-1, 4], got [2, 3]: dimension 1 is 3, not 4"),
            (
                &[-1, 3],
                3,
                "[-1, 3], got [-1, 3]: dimension 0 is -1, at least 1 is needed",
            ),
            (
                &[2, -1],
                0,
                "[-1, -1], got [2, -1]: dimension 1 is -1, at least 1 is needed",
            ),
            (&[2], 3, "[-1, 3], got [2]: it has 1 dimensions, not 2"),
        ] {
            let wrong = request(tensor("FP32", shape), &[&[0; 24]]);
            let refused = inputs(&wrong).unwrap()[0].positions(&[dims]).unwrap_err();
            let expected = format!("unexpected shape for input 'x': expected {expected}");
            assert_eq!(refused.message(), expected);
        }
        let short = request(tensor("FP32", &[2, 3]), &[&[0; 23]]);
        let message = inputs(&short).unwrap()[0]
            .read::<f32>()
            .unwrap_err()
            .message()
            .to_owned();
        assert_eq!(message, "input 'x' has 23 bytes, its shape [2, 3] needs 24");
        let huge = request(tensor("FP32", &[i64::MAX, i64::MAX]), &[&[0; 23]]);
        assert!(inputs(&huge).unwrap()[0].read::<f32>().is_err());
    }

    #[test]
    fn raw_and_typed_contents_are_not_mixed() {
        let mut both = tensor("FP32", &[1]);
        both.contents = Some(InferTensorContents::default());
        assert!(inputs(&request(both, &[&[0; 4]])).is_err());
        assert!(inputs(&request(tensor("FP32", &[1]), &[&[0; 4], &[0; 4]])).is_err());
        let mut twice = request(tensor("FP32", &[1]), &[]);
        twice.inputs.push(tensor("FP32", &[1]));
        assert_eq!(
            inputs(&twice).unwrap_err().message().to_owned(),
            "duplicate input 'x'"
        );
    }

    #[test]
    fn the_number_of_inputs_is_checked_before_names_and_contents() {
        let mut many = request(tensor("FP32", &[1]), &[&[0; 4]]);
        many.inputs.extend((0..100_000).map(|number| InferInputTensor {
            name: number.to_string(),
            ..InferInputTensor::default()
        }));
        many.inputs.push(tensor("FP32", &[1]));
        let refused = inputs(&many).unwrap_err();
        assert_eq!(
            refused.message(),
            "100002 inputs in one request, there are at most 3"
        );
    }
}
