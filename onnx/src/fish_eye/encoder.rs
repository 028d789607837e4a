//! Nodes of an encoder: septs rolled up level by level, grids of positions, views.

use games::generator::grid::{CELLS, SIDE};

use super::{
    FishEyeShape, FishEyeWeights,
    nodes::{Dense, Inputs, concat, gather, to_float},
    weights::EXAMPLE_GRIDS,
};
use crate::{
    graph::{Attribute, Graph, Value},
    tower::{flatten, layer, relu},
};

/// Encoder whose nodes and initialisers have names that begin with `prefix`.
pub(super) struct Encoder<'a> {
    pub weights: &'a FishEyeWeights,
    pub prefix: &'static str,
}

/// Planes that all encoders of a network take.
pub(super) struct Boards {
    /// Every position's grids and flags, `[B, planes, 8, 8]`.
    grids: Value,
    /// Every example's grids, `[E, 2 · symbols, 8, 8]`, if the network takes examples.
    examples: Option<Value>,
}

/// Adds the planes of grids, flags and examples.
pub(super) fn boards(graph: &mut Graph, shape: &FishEyeShape, inputs: &Inputs) -> Boards {
    let examples = inputs
        .examples
        .as_ref()
        .map(|examples| planes(graph, "examples", shape, &examples.symbols, EXAMPLE_GRIDS));
    let grids = planes(graph, "grids", shape, &inputs.grids, shape.grids);
    if shape.flags == 0 {
        return Boards { grids, examples };
    }
    let flags = graph.node("Cast", "grids.flags", &[&inputs.flags], &[to_float()]);
    let sides = graph.longs("grids.flags.sides", &[-1, shape.flags as i64, 1, 1]);
    let flags = graph.node("Reshape", "grids.flags", &[&flags, &sides], &[]);
    let ones = graph.floats("grids.ones", &[1, 1, SIDE, SIDE], &[1.0; CELLS]);
    let flags = graph.node("Mul", "grids.flags", &[&flags, &ones], &[]);
    Boards {
        grids: concat(graph, "grids", &[&grids, &flags], 1),
        examples,
    }
}

/// Adds one plane for each symbol of each of `grids` grids, 1 on the squares with that symbol: `[…, grids · symbols, 8, 8]`.
fn planes(graph: &mut Graph, name: &str, shape: &FishEyeShape, symbols: &Value, grids: usize) -> Value {
    let sides = graph.longs(&format!("{name}.sides"), &[-1, grids as i64, 1, CELLS as i64]);
    let symbols = graph.node("Reshape", name, &[symbols, &sides], &[]);
    let all: Vec<i32> = (0..shape.symbols as i32).collect();
    let all = graph.ints(&format!("{name}.symbols"), &[all.len(), 1], &all);
    let planes = graph.node("Equal", name, &[&symbols, &all], &[]);
    let planes = graph.node("Cast", name, &[&planes], &[to_float()]);
    let side = SIDE as i64;
    let sides = [-1, (grids * shape.symbols) as i64, side, side];
    let to_board = graph.longs(&format!("{name}.board"), &sides);
    graph.node("Reshape", &format!("{name}.board"), &[&planes, &to_board], &[])
}

impl Encoder<'_> {
    fn name(&self, layer: &str) -> String {
        format!("{}{layer}", self.prefix)
    }

    /// Adds the table: the embedding, then all interior imps, level by level. A level may be empty.
    pub fn rollup(&self, graph: &mut Graph, inputs: &Inputs) -> Value {
        let shape = &self.weights.shape;
        let dense = |graph: &mut Graph, name: &str| {
            let name = self.name(name);
            Dense::new(graph, &name, self.weights.layer(&name))
        };
        let hidden = dense(graph, "rollup.hidden");
        let output = dense(graph, "rollup.output");
        let sides = [-1, (shape.roles * shape.width) as i64];
        let flat = graph.longs(&self.name("rollup.flat"), &sides);
        let axis = graph.ints(&self.name("rollup.axis"), &[1], &[0]);
        let ends: Vec<Value> = (0..=shape.depth as i32 + 1)
            .map(|number| graph.ints(&self.name(&format!("rollup.level{number}")), &[1], &[number]))
            .collect();
        let name = self.name("embedding");
        let embedding = self.weights.layer(&name);
        let mut table = graph.floats(&name, &embedding.shape.dims(), &embedding.weights);
        for height in 0..shape.depth {
            let name = self.name(&format!("rollup{}", height + 1));
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

    /// Adds the vector of what every position shows, `[B, position + examples]`: its grids, and the largest numbers of its examples.
    pub fn shown(&self, graph: &mut Graph, inputs: &Inputs, boards: &Boards) -> Value {
        let grids = self.board(graph, "grids", &boards.grids);
        let (Some(boards), Some(inputs)) = (&boards.examples, &inputs.examples) else {
            return grids;
        };
        let examples = self.examples(graph, boards, &inputs.of);
        concat(graph, &self.name("shown"), &[&grids, &examples], 1)
    }

    /// Adds the vector of every position's examples, `[B, examples]`. The table of all examples of the batch begins with zeros, which
    /// take the place of an example that a position does not have. No number of an example is less, because ReLU is last.
    fn examples(&self, graph: &mut Graph, boards: &Value, of: &Value) -> Value {
        let vectors = self.board(graph, "examples", boards);
        let name = self.name("examples.table");
        let size = self.weights.shape.examples;
        let none = graph.floats(&name, &[1, size], &vec![0.0; size]);
        let table = concat(graph, &name, &[&none, &vectors], 0);
        let name = self.name("examples.largest");
        let of_position = gather(graph, &name, &table, of);
        let axis = graph.longs(&format!("{name}.axis"), &[1]);
        let keep = [("keepdims", Attribute::Int(0))];
        graph.node("ReduceMax", &name, &[&of_position, &axis], &keep)
    }

    /// Adds the vector of each board: convolutions over its planes, a convolution to few channels, and a fully connected layer, each
    /// with ReLU. `part` begins the names of the layers.
    fn board(&self, graph: &mut Graph, part: &str, planes: &Value) -> Value {
        let apply = |graph: &mut Graph, name: &str, values: &Value| {
            let values = layer(graph, name, self.weights.layer(name), values);
            relu(graph, name, &values)
        };
        let mut board = planes.clone();
        if part == "view" {
            board = apply(graph, &self.name("view.conv"), &board);
        } else {
            for number in 0..self.weights.shape.convolutions {
                board = apply(graph, &self.name(&format!("{part}.conv{number}")), &board);
            }
        }
        let name = self.name(&format!("{part}.reduce"));
        board = apply(graph, &name, &board);
        let length = self.weights.layer(&name).shape.outputs * CELLS;
        let flat = flatten(graph, &self.name(part), &board, length);
        apply(graph, &self.name(&format!("{part}.output")), &flat)
    }

    /// Adds the vector of every view, `[V, view]`, of `views` as symbols, `[V, 64]`.
    pub fn views(&self, graph: &mut Graph, views: &Value) -> Value {
        let planes = planes(graph, &self.name("views"), &self.weights.shape, views, 1);
        self.board(graph, "view", &planes)
    }

    /// Adds sept, what is shown, and view of every position's root, `[B, …]` each. Only the views of roots are encoded.
    pub fn roots(&self, graph: &mut Graph, inputs: &Inputs, boards: &Boards) -> [Value; 3] {
        let table = self.rollup(graph, inputs);
        let rows = gather(graph, &self.name("root"), &inputs.sept, &inputs.root);
        let sept = gather(graph, &self.name("root.sept"), &table, &rows);
        let shown = self.shown(graph, inputs, boards);
        let numbers = gather(graph, &self.name("root.view"), &inputs.view, &inputs.root);
        let symbols = gather(graph, &self.name("root.view"), &inputs.views, &numbers);
        let view = self.views(graph, &symbols);
        [sept, shown, view]
    }
}
