//! Nodes of the tower: input convolution, residual blocks, both heads.

use games::planes::SQUARES;

use crate::{
    graph::{Attribute, Graph, Value},
    weights::{Block, Conv, GlobalPooling, Linear, PolicyHead, TowerWeights, ValueHead},
};

/// Outputs of a tower.
#[derive(Clone, Debug)]
pub struct Heads {
    /// Policy logits, f32 `[batch, actions]`.
    pub policy_logits: Value,
    /// Value, f32 `[batch, 1]`, in [-1, 1].
    pub value: Value,
    /// Probabilities of a win, a draw and a loss, f32 `[batch, 3]`, of a value head with three outcomes.
    pub outcomes: Option<Value>,
}

/// Adds the tower over `planes` (f32 `[batch, planes, 8, 8]`). The weights must have been checked.
pub fn tower(graph: &mut Graph, weights: &TowerWeights, planes: &Value) -> Heads {
    let input = conv(graph, "input", &weights.input, planes);
    let mut board = relu(graph, "input", &input);
    for (number, weights) in weights.blocks.iter().enumerate() {
        board = block(graph, &format!("block{number}"), weights, &board);
    }
    let policy_logits = policy(graph, &weights.policy, &board);
    let (value, outcomes) = value(graph, &weights.value, &board);
    Heads {
        policy_logits,
        value,
        outcomes,
    }
}

fn block(graph: &mut Graph, name: &str, weights: &Block, board: &Value) -> Value {
    let pooling = weights.pooling.as_ref();
    let first = pooled(graph, &format!("{name}.first"), &weights.first, pooling, board);
    let second = conv(graph, &format!("{name}.second"), &weights.second, &first);
    let sum = graph.node("Add", &format!("{name}.skip"), &[&second, board], &[]);
    relu(graph, name, &sum)
}

/// Adds `relu(conv(x))`, with the output of the global pooling added before the relu.
fn pooled(
    graph: &mut Graph,
    name: &str,
    weights: &Conv,
    pooling: Option<&GlobalPooling>,
    board: &Value,
) -> Value {
    let mut own = conv(graph, name, weights, board);
    if let Some(pooling) = pooling {
        let name = format!("{name}.pooled");
        let seen = conv(graph, &name, &pooling.conv, board);
        let seen = relu(graph, &name, &seen);
        let means = graph.node("GlobalAveragePool", &format!("{name}.mean"), &[&seen], &[]);
        let maxima = graph.node("GlobalMaxPool", &format!("{name}.max"), &[&seen], &[]);
        let axis = [("axis", Attribute::Int(1))];
        let both = graph.node("Concat", &format!("{name}.both"), &[&means, &maxima], &axis);
        let bias = conv(graph, &format!("{name}.linear"), &as_conv(&pooling.linear), &both);
        own = graph.node("Add", &format!("{name}.add"), &[&own, &bias], &[]);
    }
    relu(graph, name, &own)
}

fn policy(graph: &mut Graph, head: &PolicyHead, board: &Value) -> Value {
    match head {
        PolicyHead::Dense {
            conv: weights,
            linear: last,
        } => {
            let reduced = conv(graph, "policy.conv", weights, board);
            let reduced = relu(graph, "policy.conv", &reduced);
            let flat = flatten(graph, "policy", &reduced, weights.outputs);
            linear(graph, "policy.linear", last, &flat)
        }
        PolicyHead::Planes {
            conv: weights,
            pooling,
            planes,
        } => {
            let same = pooled(graph, "policy.conv", weights, pooling.as_ref(), board);
            let logits = conv(graph, "policy.planes", planes, &same);
            flatten(graph, "policy", &logits, planes.outputs)
        }
    }
}

/// Adds the value head: the value, and the probabilities of win, draw and loss of a head with three outcomes.
fn value(graph: &mut Graph, head: &ValueHead, board: &Value) -> (Value, Option<Value>) {
    let reduced = conv(graph, "value.conv", &head.conv, board);
    let reduced = relu(graph, "value.conv", &reduced);
    let flat = flatten(graph, "value", &reduced, head.conv.outputs);
    let hidden = linear(graph, "value.hidden", &head.hidden, &flat);
    let hidden = relu(graph, "value.hidden", &hidden);
    let output = linear(graph, "value.output", &head.output, &hidden);
    if !head.has_outcomes() {
        return (graph.node("Tanh", "value", &[&output], &[]), None);
    }
    let axis = [("axis", Attribute::Int(1))];
    let outcomes = graph.node("Softmax", "value.outcomes", &[&output], &axis);
    let worth = graph.floats("value.worth", &[3, 1], &[1.0, 0.0, -1.0]);
    let value = graph.node("MatMul", "value", &[&outcomes, &worth], &[]);
    (value, Some(outcomes))
}

pub(crate) fn conv(graph: &mut Graph, name: &str, weights: &Conv, board: &Value) -> Value {
    let kernel = weights.kernel;
    let sides = [weights.outputs, weights.inputs, kernel, kernel];
    let kernels = graph.floats(&format!("{name}.weight"), &sides, &weights.weights);
    let bias = graph.floats(&format!("{name}.bias"), &[weights.outputs], &weights.bias);
    let (side, pad) = (kernel as i64, kernel as i64 / 2);
    let attributes = [
        ("kernel_shape", Attribute::Ints(vec![side; 2])),
        ("pads", Attribute::Ints(vec![pad; 4])),
    ];
    graph.node("Conv", name, &[board, &kernels, &bias], &attributes)
}

pub(crate) fn linear(graph: &mut Graph, name: &str, weights: &Linear, values: &Value) -> Value {
    let sides = [weights.outputs, weights.inputs];
    let matrix = graph.floats(&format!("{name}.weight"), &sides, &weights.weights);
    let bias = graph.floats(&format!("{name}.bias"), &[weights.outputs], &weights.bias);
    let transposed = [("transB", Attribute::Int(1))];
    graph.node("Gemm", name, &[values, &matrix, &bias], &transposed)
}

pub(crate) fn relu(graph: &mut Graph, name: &str, value: &Value) -> Value {
    graph.node("Relu", &format!("{name}.relu"), &[value], &[])
}

pub(crate) fn flatten(graph: &mut Graph, name: &str, board: &Value, channels: usize) -> Value {
    let shape = graph.longs(&format!("{name}.flat.shape"), &[-1, (channels * SQUARES) as i64]);
    graph.node("Reshape", &format!("{name}.flat"), &[board, &shape], &[])
}

fn as_conv(linear: &Linear) -> Conv {
    Conv {
        outputs: linear.outputs,
        inputs: linear.inputs,
        kernel: 1,
        weights: linear.weights.clone(),
        bias: linear.bias.clone(),
    }
}
