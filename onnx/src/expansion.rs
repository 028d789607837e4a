//! Nodes that expand index rows into planes. The graph expands them itself, so that only rows are sent to the device.
//!
//! Of the forms tried on CPUs, ScatterElements was the fastest (about 1 µs a position; OneHot takes a hundred times as
//! long). The result equals [`PlaneStack::expand`] exactly: constants are selected (Gather) and divided in the same way,
//! and nothing is summed.

use games::PlaneStack;

use crate::graph::{Attribute, Graph, Value};
use crate::proto::tensor_proto::DataType;

/// Adds the expansion of `rows` (int32 `[batch, row_len]`). Returns f32 `[batch, planes, height, width]`.
pub fn expand(graph: &mut Graph, stack: &PlaneStack, rows: &Value) -> Value {
    let entries = i64::from(stack.entries);
    let flat = stack.tensor_len() as i64;
    let columns = graph.longs("expand.columns", &[1]);
    let zero = graph.longs("expand.zero", &[0]);
    let end = graph.longs("expand.entries", &[entries]);
    let indices = graph.node("Slice", "expand.indices", &[rows, &zero, &end, &columns], &[]);
    let shape = graph.node("Shape", "expand.shape", &[&indices], &[]);

    let base = if stack.constants.is_empty() {
        constant_base(graph, stack, &shape)
    } else {
        base_with_constants(graph, stack, rows)
    };
    let to_flat = graph.longs("expand.flat", &[-1, flat]);
    let base = graph.node("Reshape", "expand.base", &[&base, &to_flat], &[]);
    let ones = graph.node(
        "ConstantOfShape",
        "expand.ones",
        &[&shape],
        &[("value", Attribute::Scalar(1.0))],
    );
    // Repeated indices write the same 1.0, so their order does not matter.
    let scattered = graph.node(
        "ScatterElements",
        "expand.scatter",
        &[&base, &indices, &ones],
        &[("axis", Attribute::Int(1))],
    );
    let [planes, height, width] = stack.shape().map(|side| side as i64);
    let to_board = graph.longs("expand.board", &[-1, planes, height, width]);
    graph.node("Reshape", "expand.planes", &[&scattered, &to_board], &[])
}

/// Adds the initial tensor of a layout without constants, `[batch, planes·squares]`.
fn constant_base(graph: &mut Graph, stack: &PlaneStack, shape: &Value) -> Value {
    let (squares, length) = (stack.squares(), stack.tensor_len());
    let mut levels = vec![0.0; length];
    for &plane in &stack.ones {
        let start = plane as usize * squares;
        if let Some(plane) = levels.get_mut(start..start + squares) {
            plane.fill(1.0);
        }
    }
    let levels = graph.floats("expand.levels", &[1, length], &levels);
    let first = graph.longs("expand.first", &[0]);
    let batch = graph.node("Gather", "expand.batch", &[shape, &first], &[]);
    let flat = graph.longs("expand.tensor", &[length as i64]);
    let target = graph.node(
        "Concat",
        "expand.target",
        &[&batch, &flat],
        &[("axis", Attribute::Int(0))],
    );
    graph.node("Expand", "expand.fill", &[&levels, &target], &[])
}

/// Adds the initial tensor of a layout with constants, `[batch, planes, squares]`: constant planes hold their value, planes of ones 1,
/// all others 0.
fn base_with_constants(graph: &mut Graph, stack: &PlaneStack, rows: &Value) -> Value {
    let planes = stack.planes as usize;
    let mut column = vec![0_i64; planes];
    let mut divisor = vec![1.0_f32; planes];
    let mut mask = vec![0.0_f32; planes];
    let mut ones = vec![0.0_f32; planes];
    for (number, constant) in stack.constants.iter().enumerate() {
        let plane = constant.plane as usize;
        if plane < planes {
            column[plane] = (stack.entries as usize + number) as i64;
            divisor[plane] = constant.divisor as f32;
            mask[plane] = 1.0;
        }
    }
    for &plane in &stack.ones {
        if let Some(level) = ones.get_mut(plane as usize) {
            *level = 1.0;
        }
    }
    let column = graph.longs("expand.column", &column);
    let axis = [("axis", Attribute::Int(1))];
    let picked = graph.node("Gather", "expand.pick", &[rows, &column], &axis);
    let to_float = [("to", Attribute::Int(DataType::Float as i64))];
    let mut level = graph.node("Cast", "expand.cast", &[&picked], &to_float);
    for (operator, name, factors) in [
        ("Div", "expand.divisor", &divisor),
        ("Mul", "expand.mask", &mask),
        ("Add", "expand.one", &ones),
    ] {
        let factors = graph.floats(name, &[1, planes], factors);
        level = graph.node(operator, name, &[&level, &factors], &[]);
    }
    let last = graph.longs("expand.last", &[2]);
    let level = graph.node("Unsqueeze", "expand.level", &[&level, &last], &[]);
    let squares = stack.squares();
    let board = graph.floats("expand.squares", &[1, 1, squares], &vec![1.0; squares]);
    graph.node("Mul", "expand.fill", &[&level, &board], &[])
}
