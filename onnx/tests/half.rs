//! Tests of the conversion to half precision: coverage, rounding and refusals.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use half::f16;
use onnx::{
    half::to_half,
    proto::{
        AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto,
        tensor_proto::{DataLocation, DataType},
    },
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
    let refused = |file: &[u8], words: &str| {
        let error = to_half(file).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    refused(
        &file(tensor(&[1.0, -7e4]), Vec::new()),
        "`weights` holds -70000, which is beyond the range",
    );
    let mut short = tensor(&[1.0, 2.0]);
    short.dims = vec![3];
    refused(&file(short, Vec::new()), "`weights` is cut short");
    let mut elsewhere = tensor(&[]);
    elsewhere.data_location = Some(DataLocation::External as i32);
    refused(&file(elsewhere, Vec::new()), "`weights` is not in the file");
    let branch = NodeProto {
        name: Some("choice".into()),
        attribute: vec![AttributeProto {
            g: Some(GraphProto::default()),
            ..AttributeProto::default()
        }],
        ..NodeProto::default()
    };
    refused(&file(tensor(&[1.0]), vec![branch]), "the node `choice`");
    refused(b"nonsense", "not an onnx file");
    refused(&ModelProto::default().encode_to_vec(), "no graph");
}
