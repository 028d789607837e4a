//! Nodes of the graph.

use games::generator::{grid::CELLS, problem::MAX_EXAMPLES};

use super::{
    FishEyeShape, FishEyeWeights,
    encoder::{Encoder, boards},
    weights::{EXAMPLE_GRIDS, VALUE_ENCODER},
};
use crate::{
    file::OnnxError,
    graph::{Attribute, Graph, Side, Value},
    model::{self, Metadata},
    proto::tensor_proto::DataType,
    tower::{layer, relu},
    weights::{Kind, Layer, LayerShape},
};

const BATCH: Side = Side::Free("batch");
const IMPS: Side = Side::Free("imps");
const VIEWS: Side = Side::Free("views");

/// Writes the file of a fish-eye network. [`super`] documents its inputs and outputs.
///
/// # Errors
/// [`OnnxError`] if the weights do not fit their shape.
pub fn build(weights: &FishEyeWeights, metadata: &Metadata) -> Result<Vec<u8>, OnnxError> {
    weights.check()?;
    let shape = &weights.shape;
    let mut graph = Graph::new("minuet-fish-eye");
    let inputs = Inputs::declare(&mut graph, shape);
    let into = &mut graph;
    let policy_net = Encoder { weights, prefix: "" };
    let boards = boards(into, shape, &inputs);
    let table = policy_net.rollup(into, &inputs);
    let sept = gather(into, "sept", &table, &inputs.sept);
    let context = context(into, weights, &table, &inputs);
    let path = path(into, weights, &inputs.path);
    let position = policy_net.shown(into, &inputs, &boards);
    let views = policy_net.views(into, &inputs.views);
    let view = gather(into, "view", &views, &inputs.view);
    let logits = policy(into, weights, &inputs, [&sept, &context, &path, &view], &position);
    let value = match shape.shared {
        true => {
            let sept = gather(into, "value.sept", &sept, &inputs.root);
            let view = gather(into, "value.view", &view, &inputs.root);
            value(into, weights, [&sept, &position, &view])
        }
        false => {
            let prefix = VALUE_ENCODER;
            let value_net = Encoder { weights, prefix };
            let [sept, position, view] = value_net.roots(into, &inputs, &boards);
            value(into, weights, [&sept, &position, &view])
        }
    };
    graph.output(
        model::POLICY,
        &logits,
        DataType::Float,
        &[IMPS, Side::Fixed(shape.moves)],
    );
    graph.output(model::VALUE, &value, DataType::Float, &[BATCH, Side::Fixed(1)]);
    model::file(graph, metadata)
}

pub(super) struct Inputs {
    pub roles: Value,
    pub levels: Value,
    ancestors: Value,
    pub sept: Value,
    parent: Value,
    path: Value,
    position: Value,
    pub view: Value,
    pub root: Value,
    pub grids: Value,
    pub flags: Value,
    pub views: Value,
    pub examples: Option<ExampleInputs>,
}

/// Inputs of networks that take examples.
pub(super) struct ExampleInputs {
    pub symbols: Value,
    pub of: Value,
}

impl Inputs {
    fn declare(graph: &mut Graph, shape: &FishEyeShape) -> Self {
        let mut input = |name: &str, sides: &[Side]| graph.input(name, DataType::Int32, sides);
        let (interior, contexts) = (Side::Free("interior"), Side::Free("contexts"));
        let (examples, depth) = (Side::Free("examples"), Side::Fixed(shape.depth));
        let squares = Side::Fixed(CELLS);
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
            grids: input(super::GRIDS, &[BATCH, Side::Fixed(shape.grids), squares]),
            flags: input(super::FLAGS, &[BATCH, Side::Fixed(shape.flags)]),
            views: input(super::VIEWS, &[VIEWS, squares]),
            examples: (shape.examples > 0).then(|| ExampleInputs {
                symbols: input(super::EXAMPLES, &[examples, Side::Fixed(EXAMPLE_GRIDS), squares]),
                of: input(super::EXAMPLES_OF, &[BATCH, Side::Fixed(MAX_EXAMPLES)]),
            }),
        }
    }
}

/// Adds the context of every imp, `[M, context]`. A context is computed once for each parent, whose children share it.
fn context(graph: &mut Graph, weights: &FishEyeWeights, table: &Value, inputs: &Inputs) -> Value {
    let shape = &weights.shape;
    let rows = gather(graph, "context", table, &inputs.ancestors);
    let flat = graph.longs("context.flat", &[-1, (shape.depth * shape.width) as i64]);
    let matrices = graph.node("Reshape", "context", &[&rows, &flat], &[]);
    let contexts = layer(graph, "context", weights.layer("context"), &matrices);
    let contexts = relu(graph, "context", &contexts);
    gather(graph, "context.imp", &contexts, &inputs.parent)
}

/// Adds the path of every imp, `[M, path]`. The path matrix has at most a single 1 in each column, so its product with the
/// layer's weights is a sum of columns of these: one for each depth, zero after the end of the path.
fn path(graph: &mut Graph, weights: &FishEyeWeights, path: &Value) -> Value {
    let (shape, layer) = (&weights.shape, weights.layer("path"));
    let mut columns = vec![0.0; shape.depth * shape.roles * shape.path];
    for depth in 0..shape.depth {
        for role in 0..shape.roles - 1 {
            let column = &mut columns[(depth * shape.roles + role) * shape.path..][..shape.path];
            for (number, weights) in column.iter_mut().zip(layer.weights.chunks(layer.shape.inputs)) {
                *number = weights[role * shape.depth + depth];
            }
        }
    }
    let columns = graph.floats("path.columns", &[shape.depth * shape.roles, shape.path], &columns);
    let offsets: Vec<i32> = (0..shape.depth)
        .map(|depth| (depth * shape.roles) as i32)
        .collect();
    let offsets = graph.ints("path.offsets", &[shape.depth], &offsets);
    let rows = graph.node("Add", "path.rows", &[path, &offsets], &[]);
    let rows = gather(graph, "path", &columns, &rows);
    let axis = graph.longs("path.axis", &[1]);
    let keep = [("keepdims", Attribute::Int(0))];
    let sum = graph.node("ReduceSum", "path", &[&rows, &axis], &keep);
    let bias = graph.floats("path.bias", &[shape.path], &layer.bias);
    let sum = graph.node("Add", "path", &[&sum, &bias], &[]);
    relu(graph, "path", &sum)
}

/// Adds the policy head. The position's part of its hidden layer is computed once for all imps of the position.
fn policy(
    graph: &mut Graph,
    weights: &FishEyeWeights,
    inputs: &Inputs,
    own: [&Value; 4],
    position: &Value,
) -> Value {
    let (of_imp, of_position) = split(weights.layer("policy.hidden"), weights.shape.own());
    let own = concat(graph, "policy.own", &own, 1);
    let own = layer(graph, "policy.own", &of_imp, &own);
    let shared = layer(graph, "policy.position", &of_position, position);
    let shared = gather(graph, "policy.position", &shared, &inputs.position);
    let hidden = graph.node("Add", "policy.hidden", &[&own, &shared], &[]);
    let hidden = relu(graph, "policy.hidden", &hidden);
    layer(graph, "policy.output", weights.layer("policy.output"), &hidden)
}

/// Adds the value head over sept, what is shown, and view of the roots.
fn value(graph: &mut Graph, weights: &FishEyeWeights, of_roots: [&Value; 3]) -> Value {
    let input = concat(graph, "value", &of_roots, 1);
    let hidden = layer(graph, "value.hidden", weights.layer("value.hidden"), &input);
    let hidden = relu(graph, "value.hidden", &hidden);
    let output = layer(graph, "value.output", weights.layer("value.output"), &hidden);
    graph.node("Sigmoid", "value", &[&output], &[])
}

/// Splits a fully connected layer into one for its first inputs (with the bias) and one for the others (without).
fn split(layer: &Layer, first: usize) -> (Layer, Layer) {
    let LayerShape { outputs, inputs, .. } = layer.shape;
    let part = |range: std::ops::Range<usize>, bias: Vec<f32>| Layer {
        shape: LayerShape::new("", Kind::Linear, outputs, range.len()),
        weights: layer
            .weights
            .chunks(inputs)
            .flat_map(|row| row[range.clone()].to_vec())
            .collect(),
        bias,
    };
    (
        part(0..first, layer.bias.clone()),
        part(first..inputs, vec![0.0; outputs]),
    )
}

/// Fully connected layer that is applied more than once.
pub(super) struct Dense {
    matrix: Value,
    bias: Value,
}

impl Dense {
    pub fn new(graph: &mut Graph, name: &str, layer: &Layer) -> Self {
        Self {
            matrix: graph.floats(&format!("{name}.weight"), &layer.shape.dims(), &layer.weights),
            bias: graph.floats(&format!("{name}.bias"), &[layer.shape.outputs], &layer.bias),
        }
    }

    pub fn apply(&self, graph: &mut Graph, name: &str, values: &Value) -> Value {
        let transposed = [("transB", Attribute::Int(1))];
        graph.node("Gemm", name, &[values, &self.matrix, &self.bias], &transposed)
    }
}

pub(super) fn gather(graph: &mut Graph, name: &str, table: &Value, rows: &Value) -> Value {
    graph.node("Gather", name, &[table, rows], &[("axis", Attribute::Int(0))])
}

pub(super) fn concat(graph: &mut Graph, name: &str, parts: &[&Value], axis: i64) -> Value {
    graph.node("Concat", name, parts, &[("axis", Attribute::Int(axis))])
}

pub(super) fn to_float() -> (&'static str, Attribute) {
    ("to", Attribute::Int(DataType::Float as i64))
}
