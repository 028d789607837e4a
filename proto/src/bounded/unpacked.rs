//! The memory that a message takes once it is unpacked, computed from its bytes.
//!
//! The build script writes a table of all messages: which of their fields repeat, and the memory of one occurrence of each. An occurrence
//! of `bytes` takes at least two bytes on the wire and 32 in memory. An empty tensor of the Open Inference Protocol takes two bytes on
//! the wire and more than 300 in memory.

use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

/// Maximum number of levels of nested messages that are examined. The decoder refuses messages with more than 100 levels.
const MAX_DEPTH: usize = 16;

/// A message type.
#[derive(Debug)]
struct Shape {
    fields: &'static [Field],
}

/// A field of a message type.
#[derive(Debug)]
struct Field {
    tag: u32,
    /// Memory of one occurrence, in bytes.
    each: usize,
    /// Memory of each byte on the wire, in bytes, at most.
    for_each_byte: usize,
    /// Place of the field's own type in the table.
    nested: Option<usize>,
}

/// A message type of this crate.
pub trait Shaped {
    /// Place of the type in the table of all messages.
    #[doc(hidden)]
    const SHAPE: usize;
}

include!(concat!(env!("OUT_DIR"), "/shapes.rs"));

/// True if the message `T` in `bytes` takes at most `most` bytes of memory beyond its own type. True for malformed bytes as well:
/// the decoder reports those with a reason. Spare room of vectors is not counted.
pub(super) fn takes_at_most<T: Shaped>(bytes: &[u8], most: usize) -> bool {
    let mut left = most;
    take(T::SHAPE, bytes, &mut left, MAX_DEPTH) != Some(Exceeded)
}

#[derive(Debug, PartialEq, Eq)]
struct Exceeded;

/// Subtracts the memory of a message from `left`. Returns `None` if the message fits or is malformed.
fn take(shape: usize, mut bytes: &[u8], left: &mut usize, depth: usize) -> Option<Exceeded> {
    let fields = SHAPES.get(shape)?.fields;
    while !bytes.is_empty() {
        let (tag, wire) = decode_key(&mut bytes).ok()?;
        if wire != WireType::LengthDelimited {
            skip_field(wire, tag, &mut bytes, DecodeContext::default()).ok()?;
            continue;
        }
        let length = usize::try_from(decode_varint(&mut bytes).ok()?).ok()?;
        let (content, rest) = bytes.split_at_checked(length)?;
        bytes = rest;
        let Some(field) = fields.iter().find(|field| field.tag == tag) else {
            continue;
        };
        let memory = length
            .saturating_mul(field.for_each_byte)
            .saturating_add(field.each);
        match left.checked_sub(memory) {
            Some(rest) => *left = rest,
            None => return Some(Exceeded),
        }
        if let Some(nested) = field.nested {
            // The decoder goes deeper, but none of these message types has so many levels.
            let depth = depth.checked_sub(1)?;
            if let Some(exceeded) = take(nested, content, left, depth) {
                return Some(exceeded);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::{
        inference::{InferTensorContents, ModelInferRequest, model_infer_request::InferInputTensor},
        v1::{DeleteGamesRequest, Game, GameFilter, GameSummary, KnownGamesRequest, ListGamesReply},
    };

    /// Returns the smallest memory limit that a message passes, found by halving.
    fn memory<T: Shaped + prost::Message>(message: &T) -> usize {
        let bytes = message.encode_to_vec();
        let (mut low, mut high) = (0, 1 << 40);
        while low < high {
            let middle = (low + high) / 2;
            if takes_at_most::<T>(&bytes, middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    #[test]
    fn every_occurrence_is_counted_at_every_level() {
        let ids = vec![Bytes::new(); 1000];
        assert_eq!(memory(&KnownGamesRequest { ids: ids.clone() }), 32_000);
        let filter = GameFilter {
            ids,
            actors: vec!["ab".into(); 10],
            ..GameFilter::default()
        };
        let deleting = DeleteGamesRequest {
            filter: Some(filter),
            dry_run: true,
        };
        assert_eq!(memory(&deleting), 32_000 + 260);
        let contents = InferTensorContents {
            bytes_contents: vec![Bytes::new(); 100],
            int64_contents: vec![1; 10],
            ..InferTensorContents::default()
        };
        let tensor = InferInputTensor {
            contents: Some(contents),
            ..InferInputTensor::default()
        };
        let one = memory(&ModelInferRequest {
            inputs: vec![InferInputTensor::default()],
            ..ModelInferRequest::default()
        });
        assert!(one >= size_of::<InferInputTensor>(), "{one}");
        let asked = ModelInferRequest {
            inputs: vec![tensor; 2],
            ..ModelInferRequest::default()
        };
        assert_eq!(memory(&asked), 2 * (one + 3200 + 80));
        let listed = ListGamesReply {
            games: vec![GameSummary::default(); 3],
            ..ListGamesReply::default()
        };
        assert!(memory(&listed) >= 3 * size_of::<GameSummary>());
    }

    proptest! {
        #[test]
        fn packed_numbers_are_counted_with_their_size(rows in prop::collection::vec(any::<u32>(), 0..200)) {
            let game = Game { rows: rows.clone(), ..Game::default() };
            prop_assert!(memory(&game) >= 4 * rows.len());
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>, most in 0usize..2000) {
            let fits = takes_at_most::<ModelInferRequest>(&bytes, most);
            prop_assert!(!fits || takes_at_most::<ModelInferRequest>(&bytes, most + 1));
        }
    }
}
