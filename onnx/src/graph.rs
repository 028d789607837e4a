//! [`Graph`]: nodes in order of computation, initialisers and generated names of a graph under construction.

use bytes::Bytes;

use crate::proto::{
    AttributeProto, GraphProto, NodeProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto,
    attribute_proto::AttributeType,
    tensor_proto::DataType,
    tensor_shape_proto::{Dimension, dimension},
    type_proto,
};

/// A value inside a graph: output of one node and input of later ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value(String);

/// Size of one axis of a graph's input or output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Size chosen at run time; all axes of one name have the same size.
    Free(&'static str),
    /// Fixed size.
    Fixed(usize),
}

/// An attribute of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    /// An integer.
    Int(i64),
    /// A list of integers.
    Ints(Vec<i64>),
    /// A tensor of one `f32`.
    Scalar(f32),
}

/// A graph under construction.
#[derive(Debug, Default)]
pub struct Graph {
    graph: GraphProto,
    made: usize,
}

impl Graph {
    /// Makes an empty graph.
    pub fn new(name: &str) -> Self {
        let graph = GraphProto {
            name: Some(name.to_owned()),
            ..GraphProto::default()
        };
        Self { graph, made: 0 }
    }

    /// Declares an input.
    pub fn input(&mut self, name: &str, kind: DataType, sides: &[Side]) -> Value {
        self.graph.input.push(value_info(name, kind, sides));
        Value(name.to_owned())
    }

    /// Declares `value` as the output `name`.
    pub fn output(&mut self, name: &str, value: &Value, kind: DataType, sides: &[Side]) {
        self.graph.node.push(node("Identity", &[&value.0], name, &[]));
        self.graph.output.push(value_info(name, kind, sides));
    }

    /// Adds a constant tensor of floats with these axes.
    pub fn floats(&mut self, name: &str, sides: &[usize], values: &[f32]) -> Value {
        self.initialiser(
            name,
            DataType::Float,
            sides,
            little_endian(values, f32::to_le_bytes),
        )
    }

    /// Adds a constant list of 64-bit integers.
    pub fn longs(&mut self, name: &str, values: &[i64]) -> Value {
        let raw = little_endian(values, i64::to_le_bytes);
        self.initialiser(name, DataType::Int64, &[values.len()], raw)
    }

    /// Adds a constant tensor of 32-bit integers with these axes.
    pub fn ints(&mut self, name: &str, sides: &[usize], values: &[i32]) -> Value {
        self.initialiser(
            name,
            DataType::Int32,
            sides,
            little_endian(values, i32::to_le_bytes),
        )
    }

    /// Adds a node with one output, and returns the output. `name` identifies the node in a profile.
    pub fn node(
        &mut self,
        operator: &str,
        name: &str,
        inputs: &[&Value],
        attributes: &[(&str, Attribute)],
    ) -> Value {
        self.made += 1;
        let output = format!("{name}.{}", self.made);
        let inputs: Vec<&str> = inputs.iter().map(|value| value.0.as_str()).collect();
        let mut made = node(operator, &inputs, &output, attributes);
        made.name = Some(format!("{name}/{operator}.{}", self.made));
        self.graph.node.push(made);
        Value(output)
    }

    /// Returns the finished graph.
    pub fn finish(self) -> GraphProto {
        self.graph
    }

    fn initialiser(&mut self, name: &str, kind: DataType, sides: &[usize], raw: Vec<u8>) -> Value {
        let sides: Vec<i64> = sides.iter().map(|&side| side as i64).collect();
        self.graph.initializer.push(constant(name, kind, &sides, raw));
        Value(name.to_owned())
    }
}

/// Returns the bytes of numbers, little-endian.
pub(crate) fn little_endian<T: Copy, const N: usize>(values: &[T], bytes: fn(T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|&value| bytes(value)).collect()
}

/// Returns a constant tensor of these bytes, little-endian.
pub(crate) fn constant(name: &str, kind: DataType, sides: &[i64], raw: Vec<u8>) -> TensorProto {
    TensorProto {
        name: Some(name.to_owned()),
        data_type: Some(kind as i32),
        dims: sides.to_vec(),
        raw_data: Some(Bytes::from(raw)),
        ..TensorProto::default()
    }
}

/// Returns a node, with the name of its output and its operator.
pub(crate) fn node(
    operator: &str,
    inputs: &[&str],
    output: &str,
    attributes: &[(&str, Attribute)],
) -> NodeProto {
    NodeProto {
        op_type: Some(operator.into()),
        name: Some(format!("{output}/{operator}")),
        input: inputs.iter().map(|name| (*name).to_owned()).collect(),
        output: vec![output.to_owned()],
        attribute: attributes
            .iter()
            .map(|(name, value)| attribute(name, value))
            .collect(),
        ..NodeProto::default()
    }
}

fn attribute(name: &str, value: &Attribute) -> AttributeProto {
    let mut attribute = AttributeProto {
        name: Some(name.to_owned()),
        ..AttributeProto::default()
    };
    let kind = match value {
        Attribute::Int(number) => {
            attribute.i = Some(*number);
            AttributeType::Int
        }
        Attribute::Ints(numbers) => {
            attribute.ints.clone_from(numbers);
            AttributeType::Ints
        }
        Attribute::Scalar(number) => {
            attribute.t = Some(TensorProto {
                data_type: Some(DataType::Float as i32),
                dims: vec![1],
                raw_data: Some(Bytes::copy_from_slice(&number.to_le_bytes())),
                ..TensorProto::default()
            });
            AttributeType::Tensor
        }
    };
    attribute.r#type = Some(kind as i32);
    attribute
}

pub(crate) fn value_info(name: &str, kind: DataType, sides: &[Side]) -> ValueInfoProto {
    let dim = sides
        .iter()
        .map(|side| Dimension {
            value: Some(match side {
                Side::Free(name) => dimension::Value::DimParam((*name).to_owned()),
                Side::Fixed(size) => dimension::Value::DimValue(*size as i64),
            }),
            ..Dimension::default()
        })
        .collect();
    let tensor = type_proto::Tensor {
        elem_type: Some(kind as i32),
        shape: Some(TensorShapeProto { dim }),
    };
    ValueInfoProto {
        name: Some(name.to_owned()),
        r#type: Some(TypeProto {
            value: Some(type_proto::Value::TensorType(tensor)),
            ..TypeProto::default()
        }),
        ..ValueInfoProto::default()
    }
}
