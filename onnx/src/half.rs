//! Converts a model to half precision: weights, and all values computed from them, become IEEE 754 binary16.
//!
//! Inputs and outputs keep their types, so that programs use the model without change. A device with binary16 units moves
//! half the bytes and computes several times as fast. A device without them converts back and forth and gains nothing.

use std::collections::HashSet;

use ::half::f16;
use bytes::Bytes;
use prost::Message as _;

use crate::{
    file::{OnnxError, decode, floats},
    graph::{Attribute, node},
    proto::{
        AttributeProto, NodeProto, TensorProto, ValueInfoProto, attribute_proto::AttributeType,
        tensor_proto::DataType, type_proto,
    },
};

const FLOAT: i32 = DataType::Float as i32;
const HALF: i32 = DataType::Float16 as i32;

/// Converts a model's file.
///
/// # Errors
/// [`OnnxError`] for the first part that cannot be converted, e.g. a weight beyond ±65504.
pub fn to_half(file: &[u8]) -> Result<Vec<u8>, OnnxError> {
    let mut model = decode(file)?;
    let no_graph = || OnnxError::new("the file has no graph");
    let graph = model.graph.as_mut().ok_or_else(no_graph)?;
    for tensor in &mut graph.initializer {
        halve(tensor)?;
    }
    for node in &mut graph.node {
        convert_node(node)?;
    }
    // The runtime infers the types of inner values again.
    graph.value_info.clear();
    let weights: HashSet<&str> = graph.initializer.iter().map(TensorProto::name).collect();
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    for info in &mut graph.input {
        let name = info.name().to_owned();
        match element(info).filter(|kind| **kind == FLOAT) {
            // Old files list their weights as inputs as well.
            Some(kind) if weights.contains(name.as_str()) => *kind = HALF,
            Some(_) => inputs.push(name),
            None => {}
        }
    }
    for info in &mut graph.output {
        if element(info).is_some_and(|kind| *kind == FLOAT) {
            outputs.push(info.name().to_owned());
        }
    }
    let to = |kind: i32| [("to", Attribute::Int(kind.into()))];
    for name in inputs {
        let inside = format!("{name}/half");
        rename(
            graph.node.iter_mut().flat_map(|node| &mut node.input),
            &name,
            &inside,
        );
        graph.node.insert(0, node("Cast", &[&name], &inside, &to(HALF)));
    }
    for name in outputs {
        let inside = format!("{name}/half");
        if !graph.node.iter().any(|node| node.output.contains(&name)) {
            return Err(OnnxError::new(format!("no node computes the output `{name}`")));
        }
        let nodes = graph.node.iter_mut();
        rename(
            nodes.flat_map(|node| node.input.iter_mut().chain(&mut node.output)),
            &name,
            &inside,
        );
        graph.node.push(node("Cast", &[&inside], &name, &to(FLOAT)));
    }
    Ok(model.encode_to_vec())
}

fn convert_node(node: &mut NodeProto) -> Result<(), OnnxError> {
    let is_cast = node.op_type() == "Cast";
    let is_constant = node.op_type() == "Constant";
    for attribute in &mut node.attribute {
        if attribute.g.is_some() || !attribute.graphs.is_empty() {
            let name = node.name.clone().unwrap_or_else(|| node.output.join(", "));
            return Err(OnnxError::new(format!(
                "the node `{name}` has a graph of its own; such models are not converted"
            )));
        }
        for tensor in attribute.t.iter_mut().chain(&mut attribute.tensors) {
            halve(tensor)?;
        }
        if is_cast && attribute.name() == "to" && attribute.i == Some(FLOAT.into()) {
            attribute.i = Some(HALF.into());
        }
        if is_constant {
            constant(attribute)?;
        }
    }
    Ok(())
}

/// Replaces `value_float` and `value_floats` of a Constant, which can be f32 only, by `value`.
fn constant(attribute: &mut AttributeProto) -> Result<(), OnnxError> {
    let (dims, floats) = match attribute.name() {
        "value_float" => (Vec::new(), vec![attribute.f()]),
        "value_floats" => (vec![attribute.floats.len() as i64], attribute.floats.clone()),
        _ => return Ok(()),
    };
    let mut tensor = TensorProto {
        data_type: Some(FLOAT),
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
fn halve(tensor: &mut TensorProto) -> Result<(), OnnxError> {
    if tensor.data_type() != FLOAT {
        return Ok(());
    }
    let values = floats(tensor)?.unwrap_or_default();
    let mut raw = Vec::with_capacity(2 * values.len());
    for value in values {
        let rounded = f16::from_f32(value);
        if value.is_finite() && !rounded.is_finite() {
            return Err(OnnxError::new(format!(
                "`{}` holds {value}, which is beyond the range of half precision",
                tensor.name()
            )));
        }
        raw.extend_from_slice(&rounded.to_le_bytes());
    }
    tensor.data_type = Some(HALF);
    tensor.float_data = Vec::new();
    tensor.raw_data = Some(Bytes::from(raw));
    Ok(())
}

fn rename<'a>(names: impl Iterator<Item = &'a mut String>, from: &str, to: &str) {
    for name in names.filter(|name| *name == from) {
        to.clone_into(name);
    }
}

/// Returns the type of a tensor's numbers.
fn element(info: &mut ValueInfoProto) -> Option<&mut i32> {
    match info.r#type.as_mut()?.value.as_mut()? {
        type_proto::Value::TensorType(tensor) => tensor.elem_type.as_mut(),
        _ => None,
    }
}
