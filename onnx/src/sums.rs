//! A layer in 8-bit integers that shows how a CPU adds products of bytes: in 32 bits, or in 16 bits, which cuts large sums off.

use std::collections::HashMap;

use prost::Message as _;

use crate::{
    file::OnnxError,
    graph::{Graph, Side},
    int8::{LARGEST, Range, to_int8, with_ranges},
    model::OPSET,
    proto::{ModelProto, OperatorSetIdProto, tensor_proto::DataType},
};

/// Name of the input, [`SHAPE`]: all numbers 1.
pub const ONES: &str = "ones";
/// Name of the output, one number: [`EXACT`] if products are added in 32 bits, about half of it if they are added in 16 bits.
pub const SUM: &str = "sum";
/// Shape of the input.
pub const SHAPE: [usize; 4] = [1, CHANNELS, SIDE, SIDE];
/// The exact sum.
pub const EXACT: f32 = (SIDE * SIDE * CHANNELS) as f32;

const CHANNELS: usize = 16;
const SIDE: usize = 8;

/// Returns the model's file: a convolution 1×1 whose bytes and weights all have the largest value, and a sum of a channel.
///
/// # Errors
/// [`OnnxError`] if the layer cannot be converted, which is a fault of this crate.
pub fn model() -> Result<Vec<u8>, OnnxError> {
    let mut graph = Graph::new("sums of bytes");
    let ones = graph.input(ONES, DataType::Float, &SHAPE.map(Side::Fixed));
    let weights = graph.floats(
        "weights",
        &[CHANNELS, CHANNELS, 1, 1],
        &[1.0; CHANNELS * CHANNELS],
    );
    let inner = graph.node("Conv", "inner", &[&ones, &weights], &[]);
    let mut first_channel = [0.0; CHANNELS * SIDE * SIDE];
    first_channel[..SIDE * SIDE].fill(1.0);
    let squares = graph.floats("squares", &SHAPE, &first_channel);
    let sum = graph.node("Conv", "squares", &[&inner, &squares], &[]);
    graph.output(SUM, &sum, DataType::Float, &[Side::Fixed(1); 4]);
    let model = ModelProto {
        ir_version: Some(9),
        opset_import: vec![OperatorSetIdProto {
            domain: Some(String::new()),
            version: Some(OPSET),
        }],
        graph: Some(graph.finish()),
        ..ModelProto::default()
    };
    let file = model.encode_to_vec();
    let ranges = with_ranges(&file)?.tensors.into_iter().map(|tensor| {
        let high = if tensor == ONES { 1.0 } else { CHANNELS as f32 };
        (tensor, Range { low: 0.0, high })
    });
    to_int8(&file, &ranges.collect::<HashMap<_, _>>(), LARGEST)
}
