//! Converts a model to half precision: weights, and all values computed from them, become IEEE 754 binary16.
//!
//! Inputs and outputs keep their types, so that programs use the model without change. A device with binary16 units moves
//! half the bytes and computes several times as fast. A device without them converts back and forth and gains nothing.

use std::collections::HashSet;

use ::half::f16;
use bytes::Bytes;
use prost::Message as _;

use crate::{
    proto::{
        AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto,
        attribute_proto::AttributeType, tensor_proto::DataType, type_proto,
    },
    tensor::{TensorError, floats},
};

/// Error: a model cannot be converted.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum HalfError {
    /// The bytes are not an ONNX file.
    #[error("not an onnx file: {0}")]
    File(prost::DecodeError),
    /// The file has no graph.
    #[error("the file has no graph")]
    NoGraph,
    /// A weight is beyond the range of half precision, ±65504.
    #[error("`{name}` holds {value}, which is beyond the range of half precision")]
    TooLarge {
        /// Name of the tensor.
        name: String,
        /// Weight that is out of range.
        value: f32,
    },
    /// The numbers of a tensor cannot be read.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// A loop or a branch contains a graph of its own.
    #[error("the node `{0}` has a graph of its own; such models are not converted")]
    Nested(String),
    /// No node computes an output of the graph.
    #[error("no node computes the output `{0}`")]
    NoProducer(String),
}

// The message holds the cause, so that `source` does not return it again.
impl From<prost::DecodeError> for HalfError {
    fn from(error: prost::DecodeError) -> Self {
        Self::File(error)
    }
}

/// Converts a model's file.
///
/// # Errors
/// [`HalfError`] for the first part that cannot be converted.
pub fn to_half(file: &[u8]) -> Result<Vec<u8>, HalfError> {
    let mut model = ModelProto::decode(file)?;
    let graph = model.graph.as_mut().ok_or(HalfError::NoGraph)?;
    for tensor in &mut graph.initializer {
        halve(tensor)?;
    }
    for node in &mut graph.node {
        convert_node(node)?;
    }
    // The runtime infers the types of inner values again.
    graph.value_info.clear();
    let weights: HashSet<&str> = graph.initializer.iter().map(TensorProto::name).collect();
    let is_float = |info: &&ValueInfoProto| element(info) == Some(DataType::Float as i32);
    let inputs: Vec<String> = graph
        .input
        .iter()
        .filter(is_float)
        .map(|input| input.name().to_owned())
        // Old files list their weights as inputs as well.
        .filter(|name| !weights.contains(name.as_str()))
        .collect();
    let outputs: Vec<String> = graph
        .output
        .iter()
        .filter(is_float)
        .map(|output| output.name().to_owned())
        .collect();
    for info in &mut graph.input {
        if element(info) == Some(DataType::Float as i32) && !inputs.iter().any(|name| name == info.name()) {
            set_element(info, DataType::Float16);
        }
    }
    for name in inputs {
        let inside = format!("{name}/half");
        rename(graph, &name, &inside, Ends::Inputs);
        graph.node.insert(0, cast(&name, &inside, DataType::Float16));
    }
    for name in outputs {
        let inside = format!("{name}/half");
        if !graph.node.iter().any(|node| node.output.contains(&name)) {
            return Err(HalfError::NoProducer(name));
        }
        rename(graph, &name, &inside, Ends::Both);
        graph.node.push(cast(&inside, &name, DataType::Float));
    }
    Ok(model.encode_to_vec())
}

fn convert_node(node: &mut NodeProto) -> Result<(), HalfError> {
    let is_cast = node.op_type() == "Cast";
    let is_constant = node.op_type() == "Constant";
    for attribute in &mut node.attribute {
        if attribute.g.is_some() || !attribute.graphs.is_empty() {
            return Err(HalfError::Nested(
                node.name.clone().unwrap_or_else(|| node.output.join(", ")),
            ));
        }
        if let Some(tensor) = &mut attribute.t {
            halve(tensor)?;
        }
        for tensor in &mut attribute.tensors {
            halve(tensor)?;
        }
        if is_cast && attribute.name() == "to" && attribute.i == Some(DataType::Float as i64) {
            attribute.i = Some(DataType::Float16 as i64);
        }
        if is_constant {
            constant(attribute)?;
        }
    }
    Ok(())
}

/// Replaces `value_float` and `value_floats` of a Constant, which can be f32 only, by `value`.
fn constant(attribute: &mut AttributeProto) -> Result<(), HalfError> {
    let (dims, floats) = match attribute.name() {
        "value_float" => (Vec::new(), vec![attribute.f()]),
        "value_floats" => (vec![attribute.floats.len() as i64], attribute.floats.clone()),
        _ => return Ok(()),
    };
    let mut tensor = TensorProto {
        data_type: Some(DataType::Float as i32),
        dims,
        float_data: floats,
        ..TensorProto::default()
    };
    halve(&mut tensor)?;
    *attribute = AttributeProto {
        name: Some("value".into()),
        r#type: Some(AttributeType::Tensor as i32),
        t: Some(tensor),
        ..AttributeProto::default()
    };
    Ok(())
}

/// Rounds a tensor of f32 to the nearest binary16; leaves other types unchanged.
fn halve(tensor: &mut TensorProto) -> Result<(), HalfError> {
    if tensor.data_type() != DataType::Float as i32 {
        return Ok(());
    }
    let name = tensor.name().to_owned();
    let values = floats(tensor)?.unwrap_or_default();
    let mut raw = Vec::with_capacity(2 * values.len());
    for value in values {
        let rounded = f16::from_f32(value);
        if value.is_finite() && !rounded.is_finite() {
            return Err(HalfError::TooLarge { name, value });
        }
        raw.extend_from_slice(&rounded.to_le_bytes());
    }
    tensor.data_type = Some(DataType::Float16 as i32);
    tensor.float_data = Vec::new();
    tensor.raw_data = Some(Bytes::from(raw));
    Ok(())
}

/// Ends of nodes at which a value is renamed.
#[derive(Clone, Copy, PartialEq)]
enum Ends {
    Inputs,
    Both,
}

fn rename(graph: &mut GraphProto, from: &str, to: &str, ends: Ends) {
    for node in &mut graph.node {
        let outputs = if ends == Ends::Both {
            node.output.as_mut_slice()
        } else {
            &mut []
        };
        for name in node.input.iter_mut().chain(outputs) {
            if name == from {
                *name = to.to_owned();
            }
        }
    }
}

fn cast(from: &str, to: &str, kind: DataType) -> NodeProto {
    NodeProto {
        op_type: Some("Cast".into()),
        name: Some(format!("{from}/Cast")),
        input: vec![from.to_owned()],
        output: vec![to.to_owned()],
        attribute: vec![AttributeProto {
            name: Some("to".into()),
            i: Some(kind as i64),
            r#type: Some(AttributeType::Int as i32),
            ..AttributeProto::default()
        }],
        ..NodeProto::default()
    }
}

fn element(info: &ValueInfoProto) -> Option<i32> {
    match info.r#type.as_ref()?.value.as_ref()? {
        type_proto::Value::TensorType(tensor) => tensor.elem_type,
        _ => None,
    }
}

fn set_element(info: &mut ValueInfoProto, kind: DataType) {
    if let Some(type_proto::Value::TensorType(tensor)) =
        info.r#type.as_mut().and_then(|kind| kind.value.as_mut())
    {
        tensor.elem_type = Some(kind as i32);
    }
}
