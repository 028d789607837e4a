//! Tests of the conversion to 8-bit integers: rounding of weights and refusals.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashMap;

use games::{Game as _, connect_four::ConnectFour};
use onnx::{
    Input, Metadata, TowerShape, TowerWeights, build,
    half::to_half,
    int8::{LARGEST, Range, to_int8, with_ranges},
    proto::{ModelProto, TensorProto, tensor_proto::DataType},
};
use prost::Message as _;

fn tower() -> (TowerWeights, Vec<u8>) {
    let layout = ConnectFour::layout(Default::default());
    let weights = TowerWeights::random(&TowerShape::new(&layout, 2, 8), 3);
    let file = build(&weights, &Metadata { layout, step: 0 }, Input::Rows).unwrap();
    (weights, file)
}

fn ranges(file: &[u8]) -> HashMap<String, Range> {
    let tensors = with_ranges(file).unwrap().tensors;
    let range = Range { low: -1.0, high: 2.0 };
    tensors.into_iter().map(|tensor| (tensor, range)).collect()
}

fn changed(file: &[u8], change: impl FnOnce(&mut ModelProto)) -> Vec<u8> {
    let mut model = ModelProto::decode(file).unwrap();
    change(&mut model);
    model.encode_to_vec()
}

fn bytes(tensor: &TensorProto) -> Vec<i8> {
    let raw = tensor.raw_data.as_ref().unwrap();
    raw.iter().map(|&byte| byte as i8).collect()
}

#[test]
fn weights_are_rounded_to_a_127th_of_the_largest_of_their_channel() {
    let (weights, file) = tower();
    let converted = ModelProto::decode(to_int8(&file, &ranges(&file), LARGEST).unwrap().as_slice()).unwrap();
    let graph = converted.graph.unwrap();
    let constant = |name: &str| graph.initializer.iter().find(|tensor| tensor.name() == name);
    let layer = weights.layer("input");
    let size = layer.weights.len() / layer.shape.outputs;
    let first = graph
        .initializer
        .iter()
        .find(|tensor| {
            tensor.data_type() == DataType::Int8 as i32 && tensor.dims[1] == layer.shape.inputs as i64
        })
        .unwrap();
    let by = constant(&first.name().replace("/given", "/scale")).unwrap();
    let by: Vec<f32> = by
        .raw_data
        .as_ref()
        .unwrap()
        .chunks(4)
        .map(|raw| f32::from_le_bytes(raw.try_into().unwrap()))
        .collect();
    assert_eq!(
        (first.dims[0] as usize, by.len()),
        (layer.shape.outputs, layer.shape.outputs)
    );
    let all = bytes(first);
    let channels = layer.weights.chunks(size).zip(all.chunks(size)).zip(by);
    for ((weights, bytes), scale) in channels {
        assert_eq!(bytes.iter().map(|byte| byte.unsigned_abs()).max(), Some(127));
        for (weight, byte) in weights.iter().zip(bytes) {
            assert!(
                (weight - scale * f32::from(*byte)).abs() <= 0.501 * scale,
                "{weight} became {byte}"
            );
        }
    }
}

fn refused(file: &[u8]) -> String {
    with_ranges(file).unwrap_err().to_string()
}

#[test]
fn convolutions_in_half_precision_are_not_converted() {
    let half = to_half(&tower().1).unwrap();
    assert!(refused(&half).contains("no inner convolution"));
}

#[test]
fn models_that_cannot_be_converted_are_refused_with_a_reason() {
    let (_, file) = tower();
    assert!(refused(b"nonsense").contains("not an onnx file"));
    assert!(refused(&changed(&file, |model| model.graph = None)).contains("no inner convolution"));
    let old = changed(&file, |model| model.opset_import[0].version = Some(12));
    assert!(refused(&old).contains("opset 12"));
    let without = changed(&file, |model| {
        let nodes = &mut model.graph.as_mut().unwrap().node;
        nodes.retain(|node| node.op_type() != "Conv");
    });
    assert!(refused(&without).contains("no inner convolution"));
    let short = changed(&file, |model| {
        let tensors = &mut model.graph.as_mut().unwrap().initializer;
        let mut floats = tensors
            .iter_mut()
            .filter(|tensor| tensor.data_type() == DataType::Float as i32);
        floats.next().unwrap().raw_data = None;
    });
    assert!(refused(&short).ends_with("is cut short"));

    let mut some = ranges(&file);
    let name = some.keys().next().unwrap().clone();
    let no_range = format!("`{name}` has no finite range");
    for low in [f32::NEG_INFINITY, f32::NAN] {
        some.insert(name.clone(), Range { low, high: 1.0 });
        assert_eq!(to_int8(&file, &some, LARGEST).unwrap_err().to_string(), no_range);
    }
    some.remove(&name);
    assert_eq!(to_int8(&file, &some, LARGEST).unwrap_err().to_string(), no_range);
}

#[test]
fn a_file_that_claims_many_channels_takes_no_memory_for_them() {
    let (_, file) = tower();
    let claims = changed(&file, |model| {
        let graph = model.graph.as_mut().unwrap();
        let layer = graph.node.iter().find(|node| node.op_type() == "Conv").unwrap();
        let weights = layer.input[1].clone();
        let mut tensors = graph.initializer.iter_mut();
        let tensor = tensors.find(|tensor| tensor.name() == weights).unwrap();
        (tensor.dims, tensor.raw_data) = (vec![1 << 62, 0, 3, 3], None);
        tensor.float_data.clear();
    });
    assert!(to_int8(&claims, &ranges(&claims), LARGEST).is_ok());
}
