//! Tests of the conversion to half precision: coverage, rounding and refusals.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use half::f16;
use onnx::{
    half::{HalfError, to_half},
    proto::{
        AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto,
        tensor_proto::{DataLocation, DataType},
    },
    tensor::TensorError,
};
use proptest::prelude::*;
use prost::Message as _;

fn tensor(values: &[f32]) -> TensorProto {
    TensorProto {
        name: Some("weights".into()),
        data_type: Some(DataType::Float as i32),
        dims: vec![values.len() as i64],
        float_data: values.to_vec(),
        ..TensorProto::default()
    }
}

fn file(tensor: TensorProto, nodes: Vec<NodeProto>) -> Vec<u8> {
    let graph = GraphProto {
        initializer: vec![tensor],
        node: nodes,
        ..GraphProto::default()
    };
    let model = ModelProto {
        graph: Some(graph),
        ..ModelProto::default()
    };
    model.encode_to_vec()
}

proptest! {
    #[test]
    fn weights_are_rounded_to_the_nearest_however_they_are_stored(
        values in prop::collection::vec(-60_000.0f32..60_000.0, 1..50), is_raw: bool,
    ) {
        let mut given = tensor(&values);
        if is_raw {
            given.float_data.clear();
            let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            given.raw_data = Some(raw.into());
        }
        let converted = to_half(&file(given, Vec::new())).unwrap();
        let graph = ModelProto::decode(converted.as_slice()).unwrap().graph.unwrap();
        let found = &graph.initializer[0];
        prop_assert_eq!(found.data_type(), DataType::Float16 as i32);
        prop_assert_eq!(&found.dims, &vec![values.len() as i64]);
        for (bytes, value) in found.raw_data().chunks_exact(2).zip(&values) {
            let rounded = f16::from_le_bytes([bytes[0], bytes[1]]).to_f32();
            // The bound is half a unit of the last of eleven binary places, or half of the smallest number.
            prop_assert!((rounded - value).abs() <= value.abs() / 2048.0 + 3e-8, "{} for {}", rounded, value);
        }
    }
}

#[test]
fn an_unconvertible_model_gives_an_error_that_names_the_reason() {
    let too_large = to_half(&file(tensor(&[1.0, -7e4]), Vec::new())).unwrap_err();
    let expected = HalfError::TooLarge {
        name: "weights".into(),
        value: -7e4,
    };
    assert_eq!(too_large, expected);
    let mut short = tensor(&[1.0, 2.0]);
    short.dims = vec![3];
    assert_eq!(
        to_half(&file(short, Vec::new())),
        Err(HalfError::Tensor(TensorError::Short("weights".into())))
    );
    let mut elsewhere = tensor(&[]);
    elsewhere.data_location = Some(DataLocation::External as i32);
    assert_eq!(
        to_half(&file(elsewhere, Vec::new())),
        Err(HalfError::Tensor(TensorError::Elsewhere("weights".into())))
    );
    let branch = NodeProto {
        name: Some("choice".into()),
        attribute: vec![AttributeProto {
            g: Some(GraphProto::default()),
            ..AttributeProto::default()
        }],
        ..NodeProto::default()
    };
    assert_eq!(
        to_half(&file(tensor(&[1.0]), vec![branch])),
        Err(HalfError::Nested("choice".into()))
    );
    assert!(matches!(to_half(b"nonsense"), Err(HalfError::File(_))));
    assert_eq!(
        to_half(&ModelProto::default().encode_to_vec()),
        Err(HalfError::NoGraph)
    );
}
