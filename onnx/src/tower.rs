//! Nodes of the tower, which are added step by step.

use crate::{
    graph::{Attribute, Graph, Value},
    network::{Step, TowerLayer, TowerWeights},
    weights::{Kind, Layer},
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

/// Adds the tower over `planes` (f32 `[batch, planes, height, width]`). The weights must have been checked.
pub fn tower(graph: &mut Graph, weights: &TowerWeights, planes: &Value) -> Heads {
    let shape = &weights.shape;
    let board = walk(graph, weights, &shape.trunk(), planes);
    let policy_logits = walk(graph, weights, &shape.policy(), &board);
    let output = walk(graph, weights, &shape.value(), &board);
    if !shape.outcomes {
        return Heads {
            policy_logits,
            value: graph.node("Tanh", "value", &[&output], &[]),
            outcomes: None,
        };
    }
    let axis = [("axis", Attribute::Int(1))];
    let outcomes = graph.node("Softmax", "value.outcomes", &[&output], &axis);
    let worth = graph.floats("value.worth", &[3, 1], &[1.0, 0.0, -1.0]);
    Heads {
        policy_logits,
        value: graph.node("MatMul", "value", &[&outcomes, &worth], &[]),
        outcomes: Some(outcomes),
    }
}

fn walk(graph: &mut Graph, weights: &TowerWeights, steps: &[Step], board: &Value) -> Value {
    let (mut now, mut kept) = (board.clone(), board.clone());
    for step in steps {
        match step {
            Step::Layer(step) => now = apply(graph, weights, step, &now),
            Step::Flatten(name, length) => now = flatten(graph, name, &now, *length),
            Step::Keep => kept = now.clone(),
            Step::Add(name) => {
                let sum = graph.node("Add", &format!("{name}.skip"), &[&now, &kept], &[]);
                now = relu(graph, name, &sum);
            }
            Step::Append(step) => {
                let name = &step.shape.name;
                let both = means_and_maxima(graph, name, &kept);
                let both = flatten(graph, name, &both, step.shape.inputs);
                let more = layer(graph, name, weights.layer(name), &both);
                let axis = [("axis", Attribute::Int(1))];
                now = graph.node("Concat", &format!("{name}.append"), &[&now, &more], &axis);
            }
        }
    }
    now
}

/// Adds a layer with its pooling and its ReLU.
fn apply(graph: &mut Graph, weights: &TowerWeights, step: &TowerLayer, values: &Value) -> Value {
    let name = &step.shape.name;
    let mut own = layer(graph, name, weights.layer(name), values);
    if step.pooled > 0 {
        let name = format!("{name}.pooled");
        let seen = layer(graph, &name, weights.layer(&name), values);
        let seen = relu(graph, &name, &seen);
        let both = means_and_maxima(graph, &name, &seen);
        let linear = format!("{name}.linear");
        let bias = layer(graph, &linear, weights.layer(&linear), &both);
        own = graph.node("Add", &format!("{name}.add"), &[&own, &bias], &[]);
    }
    match step.has_relu {
        true => relu(graph, name, &own),
        false => own,
    }
}

/// Adds the nodes that pool a board: f32 `[batch, 2·channels, 1, 1]`, the means of its channels, then the maxima.
fn means_and_maxima(graph: &mut Graph, name: &str, board: &Value) -> Value {
    let means = graph.node("GlobalAveragePool", &format!("{name}.mean"), &[board], &[]);
    let maxima = graph.node("GlobalMaxPool", &format!("{name}.max"), &[board], &[]);
    let axis = [("axis", Attribute::Int(1))];
    graph.node("Concat", &format!("{name}.both"), &[&means, &maxima], &axis)
}

/// Adds the node of a layer and its weights, under this name.
pub(crate) fn layer(graph: &mut Graph, name: &str, layer: &Layer, values: &Value) -> Value {
    let weights = graph.floats(&format!("{name}.weight"), &layer.shape.dims(), &layer.weights);
    let bias = graph.floats(&format!("{name}.bias"), &[layer.shape.outputs], &layer.bias);
    let inputs = [values, &weights, &bias];
    let kernel = match layer.shape.kind {
        Kind::Conv(kernel) => kernel as i64,
        Kind::LinearAsConv => 1,
        Kind::Linear | Kind::Table => {
            return graph.node("Gemm", name, &inputs, &[("transB", Attribute::Int(1))]);
        }
    };
    let attributes = [
        ("kernel_shape", Attribute::Ints(vec![kernel; 2])),
        ("pads", Attribute::Ints(vec![kernel / 2; 4])),
    ];
    graph.node("Conv", name, &inputs, &attributes)
}

pub(crate) fn relu(graph: &mut Graph, name: &str, value: &Value) -> Value {
    graph.node("Relu", &format!("{name}.relu"), &[value], &[])
}

/// Adds the reshaping of boards to lists of `length` numbers.
pub(crate) fn flatten(graph: &mut Graph, name: &str, board: &Value, length: usize) -> Value {
    let shape = graph.longs(&format!("{name}.flat.shape"), &[-1, length as i64]);
    graph.node("Reshape", &format!("{name}.flat"), &[board, &shape], &[])
}
