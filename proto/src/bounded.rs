//! A prost codec that refuses messages with too many fields before it decodes them.
//!
//! An empty tensor of the Open Inference Protocol takes two bytes on the wire and 300 bytes in memory. A limit on the bytes
//! of a message alone would let a client make the server allocate gigabytes.

use prost::{
    Message,
    encoding::{DecodeContext, decode_key, skip_field},
};
use tonic::{
    Status,
    codec::{Codec, DecodeBuf, Decoder},
};
use tonic_prost::{ProstCodec, ProstDecoder, ProstEncoder};

/// Largest number of fields in a message; every occurrence of a repeated field counts. An index of 65,536 models fits.
pub const MOST_FIELDS: usize = 65_536;

/// Codec of prost which refuses received messages of more than [`MOST_FIELDS`] fields.
#[derive(Clone, Debug)]
pub struct BoundedCodec<T, U>(ProstCodec<T, U>);

impl<T, U> Default for BoundedCodec<T, U> {
    fn default() -> Self {
        Self(ProstCodec::default())
    }
}

impl<T, U> Codec for BoundedCodec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = BoundedDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        self.0.encoder()
    }

    fn decoder(&mut self) -> Self::Decoder {
        BoundedDecoder(self.0.decoder())
    }
}

/// Decoder of [`BoundedCodec`].
#[derive(Debug)]
pub struct BoundedDecoder<U>(ProstDecoder<U>);

impl<U: Message + Default> Decoder for BoundedDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, source: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        use bytes::Buf as _;

        // tonic hands over a whole message in one contiguous buffer.
        if has_more_fields(source.chunk(), MOST_FIELDS) {
            return Err(Status::invalid_argument(format!(
                "a message of more than {MOST_FIELDS} fields"
            )));
        }
        self.0.decode(source)
    }
}

/// True if a message has more than `most` fields; fields of nested messages do not count. False for malformed bytes: the
/// decoder reports those with a reason.
pub(crate) fn has_more_fields(mut bytes: &[u8], most: usize) -> bool {
    for _ in 0..=most {
        if bytes.is_empty() {
            return false;
        }
        let skipped = decode_key(&mut bytes)
            .and_then(|(tag, wire)| skip_field(wire, tag, &mut bytes, DecodeContext::default()));
        if skipped.is_err() {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::inference::{ModelInferRequest, model_infer_request::InferInputTensor};

    #[test]
    fn every_occurrence_of_a_repeated_field_counts() {
        let request = ModelInferRequest {
            model_name: "latest".into(),
            inputs: vec![InferInputTensor::default(); 5],
            raw_input_contents: vec![vec![1; 300].into(); 2],
            ..ModelInferRequest::default()
        };
        let bytes = request.encode_to_vec();
        assert!(has_more_fields(&bytes, 7));
        assert!(!has_more_fields(&bytes, 8));
        // The entries of a nested message do not count.
        let large = InferInputTensor {
            shape: (0..100).collect(),
            ..InferInputTensor::default()
        };
        assert!(!has_more_fields(&large.encode_to_vec(), 1));
    }

    proptest! {
        #[test]
        fn any_bytes_are_counted_without_a_panic(bytes: Vec<u8>, most in 0usize..20) {
            // A field takes at least one byte.
            prop_assert!(!has_more_fields(&bytes, bytes.len()));
            if !has_more_fields(&bytes, most) {
                prop_assert!(!has_more_fields(&bytes, most + 1));
            }
        }
    }
}
