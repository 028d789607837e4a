//! Nodes of the graph.

use games::planes::SQUARES;

use super::{FishEyeShape, FishEyeWeights};
use crate::{
    graph::{Attribute, Graph, Side, Value},
    model::{self, Metadata},
    proto::tensor_proto::DataType,
    tower::{conv, flatten, linear, relu},
    weights::{Linear, TowerError},
};

/// Opset version of the newest operator in use.
const OPSET: i64 = 17;

const BATCH: Side = Side::Free("batch");
const IMPS: Side = Side::Free("imps");
const VIEWS: Side = Side::Free("views");

/// Writes the file of a fish-eye network. [`super`] documents its inputs and outputs.
///
/// # Errors
/// [`TowerError`] if the weights do not fit their shape.
pub fn build(weights: &FishEyeWeights, metadata: &Metadata) -> Result<Vec<u8>, TowerError> {
    weights.check()?;
    let shape = &weights.shape;
    let mut graph = Graph::new("minuet-fish-eye");
    let inputs = Inputs::declare(&mut graph, shape);
    let into = &mut graph;
    let table = rollup(into, weights, &inputs);
    let sept = gather(into, "sept", &table, &inputs.sept);
    let context = context(into, weights, &table, &inputs);
    let path = path(into, weights, &inputs.path);
    let position = grids(into, weights, &inputs);
    let views = views(into, weights, &inputs.views);
    let view = gather(into, "view", &views, &inputs.view);
    let logits = policy(into, weights, &inputs, [&sept, &context, &path, &view], &position);
    let value = value(into, weights, &inputs, [&sept, &view], &position);
    graph.output(
        model::POLICY,
        &logits,
        DataType::Float,
        &[IMPS, Side::Fixed(shape.moves)],
    );
    graph.output(model::VALUE, &value, DataType::Float, &[BATCH, Side::Fixed(1)]);
    model::file(graph, metadata, OPSET)
}

struct Inputs {
    roles: Value,
    levels: Value,
    ancestors: Value,
    sept: Value,
    parent: Value,
    path: Value,
    position: Value,
    view: Value,
    root: Value,
    grids: Value,
    flags: Value,
    views: Value,
}

impl Inputs {
    fn declare(graph: &mut Graph, shape: &FishEyeShape) -> Self {
        let mut input = |name: &str, sides: &[Side]| graph.input(name, DataType::Int32, sides);
        let (interior, contexts) = (Side::Free("interior"), Side::Free("contexts"));
        let depth = Side::Fixed(shape.depth);
        Self {
            roles: input(super::ROLES, &[interior, Side::Fixed(shape.roles)]),
            levels: input(super::LEVELS, &[Side::Fixed(shape.depth + 1)]),
            ancestors: input(super::ANCESTORS, &[contexts, depth]),
            sept: input(super::SEPT, &[IMPS]),
            parent: input(super::PARENT, &[IMPS]),
            path: input(super::PATH, &[IMPS, depth]),
            position: input(super::POSITION, &[IMPS]),
            view: input(super::VIEW, &[IMPS]),
            root: input(super::ROOT, &[BATCH]),
            grids: input(
                super::GRIDS,
                &[BATCH, Side::Fixed(shape.grids), Side::Fixed(SQUARES)],
            ),
            flags: input(super::FLAGS, &[BATCH, Side::Fixed(shape.flags)]),
            views: input(super::VIEWS, &[VIEWS, Side::Fixed(SQUARES)]),
        }
    }
}

/// Adds the table: the embedding, then all interior imps, level by level. A level may be empty.
fn rollup(graph: &mut Graph, weights: &FishEyeWeights, inputs: &Inputs) -> Value {
    let shape = &weights.shape;
    let hidden = Dense::new(graph, "rollup.hidden", &weights.rollup_hidden);
    let output = Dense::new(graph, "rollup.output", &weights.rollup_output);
    let flat = graph.longs("rollup.flat", &[-1, (shape.roles * shape.width) as i64]);
    let axis = graph.ints("rollup.axis", &[0]);
    let ends: Vec<Value> = (0..=shape.depth as i32 + 1)
        .map(|number| graph.ints(&format!("rollup.level{number}"), &[number]))
        .collect();
    let sides = [shape.values, shape.width];
    let mut table = graph.floats("embedding", &sides, &weights.embedding);
    for height in 0..shape.depth {
        let name = format!("rollup{}", height + 1);
        let mut bound = |at: usize| {
            let inputs = [&inputs.levels, &ends[at], &ends[at + 1], &axis];
            graph.node("Slice", &format!("{name}.bound"), &inputs, &[])
        };
        let (from, to) = (bound(height), bound(height + 1));
        let level = graph.node("Slice", &name, &[&inputs.roles, &from, &to, &axis], &[]);
        let rows = gather(graph, &name, &table, &level);
        let matrices = graph.node("Reshape", &name, &[&rows, &flat], &[]);
        let matrices = hidden.apply(graph, &name, &matrices);
        let matrices = relu(graph, &name, &matrices);
        let septs = output.apply(graph, &name, &matrices);
        table = concat(graph, &name, &[&table, &septs], 0);
    }
    table
}

/// Adds the context of every imp, `[M, context]`. A context is computed once for each parent, whose children share it.
fn context(graph: &mut Graph, weights: &FishEyeWeights, table: &Value, inputs: &Inputs) -> Value {
    let shape = &weights.shape;
    let rows = gather(graph, "context", table, &inputs.ancestors);
    let flat = graph.longs("context.flat", &[-1, (shape.depth * shape.width) as i64]);
    let matrices = graph.node("Reshape", "context", &[&rows, &flat], &[]);
    let contexts = linear(graph, "context", &weights.context, &matrices);
    let contexts = relu(graph, "context", &contexts);
    gather(graph, "context.imp", &contexts, &inputs.parent)
}

/// Adds the path of every imp, `[M, path]`. The path matrix has at most a single 1 in each column, so its product with the
/// layer's weights is a sum of columns of these: one for each depth, zero after the end of the path.
fn path(graph: &mut Graph, weights: &FishEyeWeights, path: &Value) -> Value {
    let (shape, layer) = (&weights.shape, &weights.path);
    let mut columns = vec![0.0; shape.depth * shape.roles * shape.path];
    for depth in 0..shape.depth {
        for role in 0..shape.roles - 1 {
            let column = &mut columns[(depth * shape.roles + role) * shape.path..][..shape.path];
            for (number, weights) in column.iter_mut().zip(layer.weights.chunks(layer.inputs)) {
                *number = weights[role * shape.depth + depth];
            }
        }
    }
    let columns = graph.floats("path.columns", &[shape.depth * shape.roles, shape.path], &columns);
    let offsets: Vec<i32> = (0..shape.depth)
        .map(|depth| (depth * shape.roles) as i32)
        .collect();
    let offsets = graph.ints("path.offsets", &offsets);
    let rows = graph.node("Add", "path.rows", &[path, &offsets], &[]);
    let rows = gather(graph, "path", &columns, &rows);
    let axis = graph.longs("path.axis", &[1]);
    let keep = [("keepdims", Attribute::Int(0))];
    let sum = graph.node("ReduceSum", "path", &[&rows, &axis], &keep);
    let bias = graph.floats("path.bias", &[shape.path], &layer.bias);
    let sum = graph.node("Add", "path", &[&sum, &bias], &[]);
    relu(graph, "path", &sum)
}

/// Adds the vector of every position's grids, `[B, position]`.
fn grids(graph: &mut Graph, weights: &FishEyeWeights, inputs: &Inputs) -> Value {
    let shape = &weights.shape;
    let planes = one_hot(
        graph,
        "grids",
        shape,
        &inputs.grids,
        &[-1, shape.grids as i64, 1, SQUARES as i64],
    );
    let to_board = graph.longs("grids.board", &[-1, (shape.grids * shape.symbols) as i64, 8, 8]);
    let planes = graph.node("Reshape", "grids.board", &[&planes, &to_board], &[]);
    let mut board = if shape.flags == 0 {
        planes
    } else {
        let flags = graph.node("Cast", "grids.flags", &[&inputs.flags], &[to_float()]);
        let sides = graph.longs("grids.flags.sides", &[-1, shape.flags as i64, 1, 1]);
        let flags = graph.node("Reshape", "grids.flags", &[&flags, &sides], &[]);
        let ones = graph.floats("grids.ones", &[1, 1, 8, 8], &[1.0; SQUARES]);
        let flags = graph.node("Mul", "grids.flags", &[&flags, &ones], &[]);
        concat(graph, "grids", &[&planes, &flags], 1)
    };
    for (number, layer) in weights.grids.iter().enumerate() {
        let name = format!("grids.conv{number}");
        board = conv(graph, &name, layer, &board);
        board = relu(graph, &name, &board);
    }
    let reduced = conv(graph, "grids.reduce", &weights.grids_reduce, &board);
    let reduced = relu(graph, "grids.reduce", &reduced);
    let reduced = flatten(graph, "grids", &reduced, shape.reduced);
    let output = linear(graph, "grids.output", &weights.grids_output, &reduced);
    relu(graph, "grids.output", &output)
}

/// Adds the vector of every view, `[V, view]`.
fn views(graph: &mut Graph, weights: &FishEyeWeights, views: &Value) -> Value {
    let shape = &weights.shape;
    let planes = one_hot(graph, "views", shape, views, &[-1, 1, SQUARES as i64]);
    let to_board = graph.longs("views.board", &[-1, shape.symbols as i64, 8, 8]);
    let planes = graph.node("Reshape", "views.board", &[&planes, &to_board], &[]);
    let board = conv(graph, "view.conv", &weights.view, &planes);
    let board = relu(graph, "view.conv", &board);
    let reduced = conv(graph, "view.reduce", &weights.view_reduce, &board);
    let reduced = relu(graph, "view.reduce", &reduced);
    let reduced = flatten(graph, "view", &reduced, shape.view_reduced);
    let output = linear(graph, "view.output", &weights.view_output, &reduced);
    relu(graph, "view.output", &output)
}

/// Adds one plane for each symbol, 1 on the squares with that symbol. `sides` has an axis of size 1 in place of the planes.
fn one_hot(graph: &mut Graph, name: &str, shape: &FishEyeShape, symbols: &Value, sides: &[i64]) -> Value {
    let sides = graph.longs(&format!("{name}.sides"), sides);
    let symbols = graph.node("Reshape", name, &[symbols, &sides], &[]);
    let all: Vec<i32> = (0..shape.symbols as i32).collect();
    let all = graph.int_column(&format!("{name}.symbols"), &all);
    let planes = graph.node("Equal", name, &[&symbols, &all], &[]);
    graph.node("Cast", name, &[&planes], &[to_float()])
}

/// Adds the policy head. The position's part of its hidden layer is computed once for all imps of the position.
fn policy(
    graph: &mut Graph,
    weights: &FishEyeWeights,
    inputs: &Inputs,
    own: [&Value; 4],
    position: &Value,
) -> Value {
    let layer = &weights.policy_hidden;
    let (of_imp, of_position) = split(layer, weights.shape.own());
    let own = concat(graph, "policy.own", &own, 1);
    let own = linear(graph, "policy.own", &of_imp, &own);
    let shared = linear(graph, "policy.position", &of_position, position);
    let shared = gather(graph, "policy.position", &shared, &inputs.position);
    let hidden = graph.node("Add", "policy.hidden", &[&own, &shared], &[]);
    let hidden = relu(graph, "policy.hidden", &hidden);
    linear(graph, "policy.output", &weights.policy_output, &hidden)
}

fn value(
    graph: &mut Graph,
    weights: &FishEyeWeights,
    inputs: &Inputs,
    [sept, view]: [&Value; 2],
    position: &Value,
) -> Value {
    let sept = gather(graph, "value.sept", sept, &inputs.root);
    let view = gather(graph, "value.view", view, &inputs.root);
    let input = concat(graph, "value", &[&sept, position, &view], 1);
    let hidden = linear(graph, "value.hidden", &weights.value_hidden, &input);
    let hidden = relu(graph, "value.hidden", &hidden);
    let output = linear(graph, "value.output", &weights.value_output, &hidden);
    graph.node("Sigmoid", "value", &[&output], &[])
}

/// Splits a fully connected layer into one for its first inputs (with the bias) and one for the others (without).
fn split(layer: &Linear, first: usize) -> (Linear, Linear) {
    let part = |range: std::ops::Range<usize>, bias: Vec<f32>| Linear {
        outputs: layer.outputs,
        inputs: range.len(),
        weights: layer
            .weights
            .chunks(layer.inputs)
            .flat_map(|row| row[range.clone()].to_vec())
            .collect(),
        bias,
    };
    (
        part(0..first, layer.bias.clone()),
        part(first..layer.inputs, vec![0.0; layer.outputs]),
    )
}

/// Fully connected layer that is applied more than once.
struct Dense {
    matrix: Value,
    bias: Value,
}

impl Dense {
    fn new(graph: &mut Graph, name: &str, layer: &Linear) -> Self {
        let sides = [layer.outputs, layer.inputs];
        Self {
            matrix: graph.floats(&format!("{name}.weight"), &sides, &layer.weights),
            bias: graph.floats(&format!("{name}.bias"), &[layer.outputs], &layer.bias),
        }
    }

    fn apply(&self, graph: &mut Graph, name: &str, values: &Value) -> Value {
        let transposed = [("transB", Attribute::Int(1))];
        graph.node("Gemm", name, &[values, &self.matrix, &self.bias], &transposed)
    }
}

fn gather(graph: &mut Graph, name: &str, table: &Value, rows: &Value) -> Value {
    graph.node("Gather", name, &[table, rows], &[("axis", Attribute::Int(0))])
}

fn concat(graph: &mut Graph, name: &str, parts: &[&Value], axis: i64) -> Value {
    graph.node("Concat", name, parts, &[("axis", Attribute::Int(axis))])
}

fn to_float() -> (&'static str, Attribute) {
    ("to", Attribute::Int(DataType::Float as i64))
}
