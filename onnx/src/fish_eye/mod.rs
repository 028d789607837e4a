//! The fish-eye network over clans, as one graph without loops over imps. The codec of the generator game expands rows into
//! the graph's inputs.
//!
//! A clan is a tree of *imps*; a *sept* is the subtree below one. Every imp has a one-hot value and fills a role of its
//! parent. The network (after the "fish-eye imp view" of wisdom-parts' ARC-raider notes, 2020):
//!
//! ```text
//! bottom-up  sept(leaf) = E[value]
//!            sept(imp)  = linear(relu(linear(role matrix))), one row per role: `this` = E[value], then the septs
//!                         at its roles, E[0] ("not present") where it has none
//! top-down   context    = relu(linear(context matrix)): the septs of parent, grandparent, …, E[0] beyond the root
//! path       path       = relu(linear(path matrix)): for each depth the role on the path from the root
//! grids      position   = relu(linear(relu(conv1×1(3 × relu(conv3×3(target A, target B, current))))))
//!            view       = relu(linear(relu(conv1×1(relu(conv3×3(the drawing of the imp's sept))))))
//! examples   the largest number at each place of relu(linear(relu(conv1×1(3 × relu(conv3×3(input, output)))))), over the
//!            examples of the position; 0 without any
//! policy     for every imp: linear(relu(linear(sept, context, path, view, position, examples))), one logit per move
//! value      sigmoid(linear(relu(linear(the root's sept, position, examples, the root's view))))
//! ```
//!
//! Policy and value are two networks, as those notes say: each has an encoder of its own (E, the roll-up, the layers over grids
//! and view), and that of the value encodes only the root's view. A shape can say that the value shares the policy's encoder.
//!
//! Equal values are computed once: leaves are rows of `E`; interior imps are computed level by level for the whole batch
//! (sorted by height, so that children are in the table before their parents); contexts are computed once for each parent,
//! views once for each shape, examples once for all positions that share them. A batch is the concatenation of its clans, so nothing is padded.
//!
//! Examples are pairs of grids of the position's task; their order does not matter. Only networks of runs with examples take
//! them (`examples` of the shape is above 0).
//!
//! **The contract** (int32 unless stated; B positions, M imps, I interior imps, V views, E different examples, all of the whole batch)
//!
//! | | name | shape | meaning |
//! |---|---|---|---|
//! | input | `roles` | `[I, roles]` | role matrices, heights ascending: rows of the table below |
//! | input | `levels` | `[depth + 1]` | interior imps of height ≤ k, for k = 0 (none) to depth |
//! | input | `ancestors` | `[I + 1, depth]` | context matrices of the children of each interior imp; row 0 is the root's: all 0 |
//! | input | `sept` | `[M]` | row of the imp's sept in the table |
//! | input | `parent` | `[M]` | row of `ancestors` with the imp's context |
//! | input | `path` | `[M, depth]` | role on the path at each depth, `roles - 1` after its end |
//! | input | `position` | `[M]` | position of the imp |
//! | input | `view` | `[M]` | view of the imp |
//! | input | `root` | `[B]` | the position's root imp |
//! | input | `grids` | `[B, grids, 64]` | symbols: targets A and B, the current render |
//! | input | `flags` | `[B, flags]` | 0 or 1 each, a constant plane each |
//! | input | `views` | `[V, 64]` | symbols drawn inside one sept |
//! | input, with examples | `examples` | `[E, 2, 64]` | symbols of input and output grid |
//! | input, with examples | `examples_of` | `[B, 3]` | 1 + number of each example of the position; 0 in place of those that it lacks |
//! | output | `policy_logits` | f32 `[M, moves]` | imps in the order of `sept` |
//! | output | `value` | f32 `[B, 1]` | in [0, 1] |
//!
//! The *table* holds the embedding's rows first (a leaf's value is its row, 0 is "not present") and after them the
//! interior imps, so that row `values + i` is interior imp `i`.

mod encoder;
mod nodes;
mod weights;

pub use nodes::build;
pub use weights::{FishEyeShape, FishEyeWeights, VALUE_ENCODER};

/// Name of the input with the role matrices.
pub const ROLES: &str = "roles";
/// Name of the input with the ends of the levels of interior imps.
pub const LEVELS: &str = "levels";
/// Name of the input with the context matrices.
pub const ANCESTORS: &str = "ancestors";
/// Name of the input with each imp's row of the table.
pub const SEPT: &str = "sept";
/// Name of the input with each imp's context.
pub const PARENT: &str = "parent";
/// Name of the input with the path matrices, as the role at each depth.
pub const PATH: &str = "path";
/// Name of the input with each imp's position.
pub const POSITION: &str = "position";
/// Name of the input with each imp's view.
pub const VIEW: &str = "view";
/// Name of the input with each position's root.
pub const ROOT: &str = "root";
/// Name of the input with each position's grids.
pub const GRIDS: &str = "grids";
/// Name of the input with each position's flags.
pub const FLAGS: &str = "flags";
/// Name of the input with the views.
pub const VIEWS: &str = "views";
/// Name of the input with the examples.
pub const EXAMPLES: &str = "examples";
/// Name of the input with each position's examples.
pub const EXAMPLES_OF: &str = "examples_of";

#[cfg(test)]
mod tests {
    use games::{
        Game as _,
        generator::{Encoding, GeneratorGame},
    };
    use prost::Message as _;

    use crate::{
        FishEyeShape, FishEyeWeights, Metadata,
        proto::{ModelProto, tensor_shape_proto::dimension::Value, type_proto},
    };

    /// Returns the name and the inner sizes of each input of a graph.
    fn inputs(file: &[u8]) -> Vec<(String, Vec<usize>)> {
        let graph = ModelProto::decode(file).unwrap().graph.unwrap();
        graph
            .input
            .iter()
            .map(|input| {
                let Some(type_proto::Value::TensorType(tensor)) = input.r#type.clone().unwrap().value else {
                    panic!("{} is not a tensor", input.name());
                };
                let sizes = tensor.shape.unwrap().dim.into_iter().skip(1);
                let sizes = sizes.map(|size| match size.value.unwrap() {
                    Value::DimValue(size) => size as usize,
                    Value::DimParam(name) => panic!("{name} is free"),
                });
                (input.name().to_owned(), sizes.collect())
            })
            .collect()
    }

    #[test]
    fn the_codec_gives_the_inputs_of_the_graph() {
        for encoding in [Encoding::Plain, Encoding::Examples] {
            check_inputs(encoding);
        }
    }

    fn check_inputs(encoding: Encoding) {
        let layout = GeneratorGame::layout(encoding);
        let shape = FishEyeShape::of(&layout).unwrap().sized(1, 8);
        let metadata = Metadata {
            layout: layout.clone(),
            step: 1,
        };
        let file = super::build(&FishEyeWeights::random(&shape, 1), &metadata).unwrap();
        let mut expander = layout.codec().expander();
        let expected: Vec<_> = expander
            .inputs()
            .iter()
            .map(|input| (input.name.to_owned(), input.inner.to_vec()))
            .collect();
        assert_eq!(inputs(&file), expected);
        let names = [
            super::ROLES,
            super::LEVELS,
            super::ANCESTORS,
            super::SEPT,
            super::PARENT,
            super::PATH,
            super::POSITION,
            super::VIEW,
            super::ROOT,
            super::GRIDS,
            super::FLAGS,
            super::VIEWS,
            super::EXAMPLES,
            super::EXAMPLES_OF,
        ];
        let names = match encoding {
            Encoding::Plain => &names[..12],
            Encoding::Examples => &names[..],
        };
        assert!(
            expected
                .iter()
                .map(|(name, _)| name.as_str())
                .eq(names.iter().copied())
        );
    }
}
