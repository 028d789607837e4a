//! Converts the convolutions of a model to 8-bit integers (static quantisation, in the QDQ form of ONNX): numbers between the
//! layers become unsigned bytes with one scale for each tensor, weights become integers with one scale for each output
//! channel, and biases 32-bit integers. The last convolution before
//! each output and all other nodes compute in f32 as before, and inputs and outputs are the same.
//!
//! The scales of the numbers between the layers follow from their ranges on a batch of positions: [`with_ranges`] makes a model
//! that gives them, [`to_int8`] takes them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use prost::Message as _;

use crate::{
    file::{self, OnnxError, floats},
    graph::{Attribute, constant, little_endian, node, value_info},
    proto::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, tensor_proto::DataType},
};

/// Largest magnitude of a weight where two products of bytes are added in 16 bits: 2 · 255 · 64 fits, 2 · 255 · 127 does not.
pub const LARGEST_IN_16_BITS: u8 = 64;
/// Largest magnitude of a weight where products of bytes are added in 32 bits.
pub const LARGEST: u8 = 127;
/// First opset with a scale for each channel.
const LEAST_OPSET: i64 = 13;

/// Smallest and largest number of a tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The smallest number.
    pub low: f32,
    /// The largest number.
    pub high: f32,
}

/// A model with outputs that give the ranges of tensors.
#[derive(Clone, Debug)]
pub struct Probe {
    /// The file.
    pub file: Vec<u8>,
    /// Names of the tensors whose ranges [`to_int8`] needs.
    pub tensors: Vec<String>,
}

impl Probe {
    /// Returns the names of the outputs, f32 scalars, with the smallest and the largest number of a tensor.
    pub fn outputs(tensor: &str) -> [String; 2] {
        ["low", "high"].map(|end| format!("{tensor}/{end}"))
    }
}

/// Adds outputs with the ranges of all tensors that [`to_int8`] makes bytes of.
///
/// # Errors
/// [`OnnxError`] if the model cannot be converted.
pub fn with_ranges(file: &[u8]) -> Result<Probe, OnnxError> {
    let mut model = decode(file)?;
    let graph = model.graph.as_mut().ok_or_else(no_convolution)?;
    let tensors = Plan::of(graph)?.tensors();
    for tensor in &tensors {
        for (operator, output) in ["ReduceMin", "ReduceMax"].into_iter().zip(Probe::outputs(tensor)) {
            let keeps = [("keepdims", Attribute::Int(0))];
            graph.node.push(node(operator, &[tensor], &output, &keeps));
            graph.output.push(value_info(&output, DataType::Float, &[]));
        }
    }
    Ok(Probe {
        file: model.encode_to_vec(),
        tensors,
    })
}

/// Converts a model's file. `ranges` has the range of each tensor of [`with_ranges`]; numbers beyond it are cut off. `largest` is the
/// largest magnitude of a weight, 1 to 127: [`LARGEST`], or [`LARGEST_IN_16_BITS`] on a CPU that needs it.
///
/// # Errors
/// [`OnnxError`] for the first part that cannot be converted.
pub fn to_int8(file: &[u8], ranges: &HashMap<String, Range>, largest: u8) -> Result<Vec<u8>, OnnxError> {
    let mut model = decode(file)?;
    let graph = model.graph.as_mut().ok_or_else(no_convolution)?;
    let plan = Plan::of(graph)?;
    let mut scales = BTreeMap::new();
    for tensor in plan.tensors() {
        let range = ranges.get(&tensor).copied();
        let scale = range
            .and_then(Scale::of)
            .ok_or_else(|| OnnxError::new(format!("`{tensor}` has no finite range")))?;
        scales.insert(tensor, scale);
    }
    let mut written = Written {
        largest: f32::from(largest),
        ..Written::default()
    };
    // Bytes of the graph's own inputs and of constants come first, the others behind the node that computes them.
    let computed: HashSet<&String> = graph.node.iter().flat_map(|node| &node.output).collect();
    for (tensor, scale) in &scales {
        if !computed.contains(tensor) {
            written.bytes_of(tensor, *scale);
        }
    }
    for (number, mut node) in std::mem::take(&mut graph.node).into_iter().enumerate() {
        match plan.convolutions.get(&number) {
            Some(convolution) => written.convolution(&mut node, convolution, &scales),
            None => {
                for input in &mut node.input {
                    if plan.replaced.contains(input) {
                        *input = rounded(input);
                    }
                }
            }
        }
        let made: Vec<_> = node
            .output
            .iter()
            .filter_map(|output| scales.get_key_value(output))
            .collect();
        written.nodes.push(node);
        for (tensor, scale) in made {
            written.bytes_of(tensor, *scale);
        }
    }
    graph.node = written.nodes;
    graph.initializer.extend(written.constants);
    // The runtime infers the types of inner values again.
    graph.value_info.clear();
    Ok(model.encode_to_vec())
}

/// A convolution that is converted.
struct Convolution {
    input: String,
    weights: Vec<f32>,
    sides: Vec<i64>,
    bias: Option<Vec<f32>>,
}

/// Convolutions that are converted, and tensors that become bytes.
struct Plan {
    /// By the number of the node.
    convolutions: HashMap<usize, Convolution>,
    /// Outputs of convolutions, behind the ReLU if nothing else takes them: all nodes take them as bytes.
    replaced: BTreeSet<String>,
}

impl Plan {
    fn of(graph: &GraphProto) -> Result<Self, OnnxError> {
        let constants = constants(graph)?;
        let mut takers: HashMap<&str, Vec<&NodeProto>> = HashMap::new();
        for node in &graph.node {
            for input in &node.input {
                takers.entry(input).or_default().push(node);
            }
        }
        let outputs: HashSet<&str> = graph.output.iter().map(|output| output.name()).collect();
        let last = last_convolutions(graph);
        let mut plan = Self {
            convolutions: HashMap::new(),
            replaced: BTreeSet::new(),
        };
        for (number, node) in graph
            .node
            .iter()
            .enumerate()
            .filter(|(number, node)| is_convolution(node) && !last.contains(number))
        {
            let [input, weights, bias @ ..] = node.input.as_slice() else {
                continue;
            };
            let bias = bias.first().filter(|name| !name.is_empty());
            let (Some((sides, weights)), Some(output)) = (constants.get(weights), node.output.first()) else {
                continue;
            };
            let bias = match bias.map(|bias| constants.get(bias)) {
                None => None,
                Some(Some((_, bias))) => Some(bias.clone()),
                Some(None) => continue,
            };
            plan.convolutions.insert(
                number,
                Convolution {
                    input: input.clone(),
                    weights: weights.clone(),
                    sides: sides.clone(),
                    bias,
                },
            );
            let only = match takers.get(output.as_str()).map(Vec::as_slice) {
                Some([only]) if only.op_type() == "Relu" && !outputs.contains(output.as_str()) => {
                    only.output.first()
                }
                _ => None,
            };
            plan.replaced.insert(only.unwrap_or(output).clone());
        }
        match plan.convolutions.is_empty() {
            true => Err(no_convolution()),
            false => Ok(plan),
        }
    }

    /// Returns the names of all tensors that become bytes, in order.
    fn tensors(&self) -> Vec<String> {
        let inputs = self
            .convolutions
            .values()
            .map(|convolution| convolution.input.clone());
        let all: BTreeSet<String> = inputs.chain(self.replaced.iter().cloned()).collect();
        all.into_iter().collect()
    }
}

fn is_convolution(node: &NodeProto) -> bool {
    node.op_type() == "Conv"
}

/// Returns the numbers of the convolutions whose outputs reach no other convolution. They stay in f32: an error of theirs is an error of
/// the model's outputs. In chess a policy in bytes has ten times the KL divergence.
fn last_convolutions(graph: &GraphProto) -> HashSet<usize> {
    let (mut reaching, mut last) = (HashSet::new(), HashSet::new());
    for (number, node) in graph.node.iter().enumerate().rev() {
        let reaches = node.output.iter().any(|output| reaching.contains(output));
        if is_convolution(node) && !reaches {
            last.insert(number);
        }
        if is_convolution(node) || reaches {
            reaching.extend(&node.input);
        }
    }
    last
}

/// Shape and numbers of a tensor.
type Constant = (Vec<i64>, Vec<f32>);

/// Returns every constant tensor of f32: initialisers, and casts of initialisers of half precision.
fn constants(graph: &GraphProto) -> Result<HashMap<String, Constant>, OnnxError> {
    let (mut found, mut half) = (HashMap::new(), HashMap::new());
    for tensor in &graph.initializer {
        if let Some(values) = floats(tensor)? {
            let those = match tensor.data_type() == DataType::Float as i32 {
                true => &mut found,
                false => &mut half,
            };
            those.insert(tensor.name().to_owned(), (tensor.dims.clone(), values));
        }
    }
    let is_to_float =
        |attribute: &AttributeProto| attribute.name() == "to" && attribute.i() == DataType::Float as i64;
    for node in graph.node.iter().filter(|node| node.op_type() == "Cast") {
        let constant = node.input.first().and_then(|input| half.get(input));
        if let (Some(constant), Some(output)) = (constant, node.output.first())
            && node.attribute.iter().any(is_to_float)
        {
            found.insert(output.clone(), constant.clone());
        }
    }
    Ok(found)
}

/// Scale and zero point of a tensor of unsigned bytes: number = scale · (byte - zero).
#[derive(Clone, Copy)]
struct Scale {
    scale: f32,
    zero: u8,
}

impl Scale {
    /// Returns the scale of a range, which is widened to hold 0. `None` if it is not finite.
    fn of(range: Range) -> Option<Self> {
        let (low, high) = (range.low.min(0.0), range.high.max(0.0));
        let width = high - low;
        // `min` and `max` pass over NaN.
        if range.low.is_nan() || range.high.is_nan() || !width.is_finite() {
            return None;
        }
        let scale = match width / 255.0 {
            scale if scale > 0.0 => scale,
            _ => 1.0,
        };
        Some(Self {
            scale,
            zero: (-low / scale).round() as u8,
        })
    }
}

/// Nodes and constants of the converted graph.
#[derive(Default)]
struct Written {
    /// Largest magnitude of a weight.
    largest: f32,
    nodes: Vec<NodeProto>,
    constants: Vec<TensorProto>,
}

impl Written {
    /// Adds the nodes that round a tensor to bytes and back.
    fn bytes_of(&mut self, tensor: &str, scale: Scale) {
        let (by, zero, bytes) = (
            format!("{tensor}/scale"),
            format!("{tensor}/zero"),
            format!("{tensor}/bytes"),
        );
        self.floats(&by, &[scale.scale], &[]);
        self.constants
            .push(constant(&zero, DataType::Uint8, &[], vec![scale.zero]));
        self.nodes
            .push(node("QuantizeLinear", &[tensor, &by, &zero], &bytes, &[]));
        self.nodes.push(node(
            "DequantizeLinear",
            &[&bytes, &by, &zero],
            &rounded(tensor),
            &[],
        ));
    }

    /// Gives a convolution its rounded input, weights and bias.
    fn convolution(
        &mut self,
        node: &mut NodeProto,
        convolution: &Convolution,
        scales: &BTreeMap<String, Scale>,
    ) {
        let name = node.output.first().cloned().unwrap_or_default();
        let input_scale = scales.get(&convolution.input).map_or(1.0, |scale| scale.scale);
        let channels = convolution
            .sides
            .first()
            .map_or(1, |&side| (side as usize).max(1));
        let size = (convolution.weights.len() / channels).max(1);
        // No room is made for `channels`: a file may claim any number of them.
        let (mut bytes, mut by) = (Vec::with_capacity(convolution.weights.len()), Vec::new());
        for weights in convolution.weights.chunks(size) {
            let largest = weights
                .iter()
                .fold(0.0_f32, |largest, weight| largest.max(weight.abs()));
            let scale = if largest > 0.0 {
                largest / self.largest
            } else {
                1.0
            };
            bytes.extend(weights.iter().map(|weight| (weight / scale).round() as i8 as u8));
            by.push(scale);
        }
        node.input = vec![rounded(&convolution.input)];
        let sides = convolution.sides.clone();
        node.input
            .push(self.weights(&format!("{name}/weights"), DataType::Int8, &sides, bytes, &by));
        if let Some(bias) = &convolution.bias {
            let by: Vec<f32> = by.iter().map(|scale| scale * input_scale).collect();
            let numbers = bias
                .iter()
                .zip(&by)
                .flat_map(|(bias, scale)| ((bias / scale).round() as i32).to_le_bytes());
            let (numbers, sides) = (numbers.collect(), [bias.len() as i64]);
            node.input
                .push(self.weights(&format!("{name}/bias"), DataType::Int32, &sides, numbers, &by));
        }
    }

    /// Adds constant weights with a scale for each channel, and the node that makes floats of them. Returns its output.
    fn weights(&mut self, name: &str, kind: DataType, sides: &[i64], bytes: Vec<u8>, by: &[f32]) -> String {
        let (scale, given) = (format!("{name}/scale"), format!("{name}/given"));
        self.floats(&scale, by, &[by.len() as i64]);
        self.constants.push(constant(&given, kind, sides, bytes));
        self.nodes.push(node(
            "DequantizeLinear",
            &[&given, &scale],
            name,
            &[("axis", Attribute::Int(0))],
        ));
        name.to_owned()
    }

    fn floats(&mut self, name: &str, values: &[f32], sides: &[i64]) {
        let bytes = little_endian(values, f32::to_le_bytes);
        self.constants.push(constant(name, DataType::Float, sides, bytes));
    }
}

/// Reads a file, whose operators must be new enough.
fn decode(file: &[u8]) -> Result<ModelProto, OnnxError> {
    let model = file::decode(file)?;
    let opset = model.opset_import.iter().find(|opset| opset.domain().is_empty());
    match opset.map_or(1, |opset| opset.version()) {
        LEAST_OPSET.. => Ok(model),
        older => Err(OnnxError::new(format!(
            "the model has opset {older}, 8-bit integers need {LEAST_OPSET}"
        ))),
    }
}

fn no_convolution() -> OnnxError {
    OnnxError::new("the model has no inner convolution with constant weights")
}

/// Name of a tensor after it was rounded to bytes.
fn rounded(tensor: &str) -> String {
    format!("{tensor}/rounded")
}
