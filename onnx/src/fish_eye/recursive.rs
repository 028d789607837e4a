//! A second implementation of the network, which follows its definition imp by imp. Tests compare the graph with it. Sums
//! are computed in f64, so that its rounding error is negligible.

use games::{
    generator::{self, Clan, Grid},
    planes::SQUARES,
};

use super::{EncoderWeights, FishEyeShape, FishEyeWeights, weights::EXAMPLE_GRIDS};
use crate::reference::{conv, linear, relu};

/// Imp with its subtree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sept {
    /// One-hot value of the imp.
    pub value: usize,
    /// Role and sept of each child, in the clan's order.
    pub children: Vec<(usize, Sept)>,
    /// Symbol of each square of the picture drawn inside the sept.
    pub view: [u8; SQUARES],
}

/// Input of the network for one position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// Root of the clan.
    pub root: Sept,
    /// Grids: targets A and B, and the current render; a symbol for each square.
    pub grids: Vec<[u8; SQUARES]>,
    /// Flags of the position.
    pub flags: Vec<bool>,
    /// Examples: input and output grid of each. Networks that take none ignore them.
    pub examples: Vec<[[u8; SQUARES]; EXAMPLE_GRIDS]>,
}

impl Sept {
    /// Returns the sept of the imp with this number (in preorder) of a clan.
    pub fn of(clan: &Clan, imp: usize) -> Self {
        let parent_of = |child: usize| clan.parents().get(child).copied().map(usize::from);
        let children = (imp + 1..clan.len()).filter(|&child| parent_of(child) == Some(imp));
        let own = |numbers: &[u8], imp: usize| numbers.get(imp).copied().map_or(0, usize::from);
        Self {
            value: own(clan.values(), imp),
            children: children
                .map(|child| (own(clan.roles(), child), Self::of(clan, child)))
                .collect(),
            view: *clan.imp_view(imp).cells(),
        }
    }
}

impl Position {
    /// Makes the network's input from a position of the generator game: the clan, the targets, and the clan's current
    /// render.
    pub fn of(position: &generator::Position) -> Self {
        let targets = [position.problem.target(), position.problem.second_target()];
        let grids = targets.map(|target| *target.unwrap_or(&Grid::ABSENT));
        let grids = grids.into_iter().chain([position.clan.render()]);
        Self {
            root: Sept::of(&position.clan, 0),
            grids: grids.map(|grid| *grid.cells()).collect(),
            flags: vec![position.step_marked],
            examples: (position.examples.as_slice().iter())
                .map(|example| [*example.input.cells(), *example.output.cells()])
                .collect(),
        }
    }
}

/// Evaluates one position: the logits of every imp, in preorder, `[imps][moves]`, and the value.
pub fn evaluate(weights: &FishEyeWeights, position: &Position) -> (Vec<f32>, f32) {
    let encoder = Encoder(&weights.shape, &weights.encoder);
    let mut logits = Vec::new();
    policy(
        weights,
        &position.root,
        &encoder.shown(position),
        &mut Vec::new(),
        &mut Vec::new(),
        &mut logits,
    );
    let of_value = weights.value_encoder.as_ref();
    let encoder = of_value.map_or(encoder, |own| Encoder(&weights.shape, own));
    let input = [
        encoder.sept(&position.root),
        encoder.shown(position),
        encoder.view(&position.root),
    ]
    .concat();
    let hidden = relu(linear(&weights.value_hidden, &input));
    let output = linear(&weights.value_output, &hidden);
    let value = output.first().copied().unwrap_or(f32::NAN);
    (logits, 1.0 / (1.0 + (-value).exp()))
}

/// Appends the logits of an imp and then of all imps below it.
fn policy(
    weights: &FishEyeWeights,
    imp: &Sept,
    shown: &[f32],
    ancestors: &mut Vec<Vec<f32>>,
    path: &mut Vec<usize>,
    logits: &mut Vec<f32>,
) {
    let shape = &weights.shape;
    let encoder = Encoder(shape, &weights.encoder);
    let own = encoder.sept(imp);
    let none = encoder.embedding(0);
    let context: Vec<f32> = (0..shape.depth)
        .flat_map(|step| {
            let at = ancestors.len().checked_sub(step + 1);
            at.map_or(none, |at| ancestors[at].as_slice()).iter().copied()
        })
        .collect();
    let mut matrix = vec![0.0; (shape.roles - 1) * shape.depth];
    for (depth, &role) in path.iter().enumerate() {
        matrix[role * shape.depth + depth] = 1.0;
    }
    let input = [
        own.as_slice(),
        &relu(linear(&weights.context, &context)),
        &relu(linear(&weights.path, &matrix)),
        &encoder.view(imp),
        shown,
    ]
    .concat();
    let hidden = relu(linear(&weights.policy_hidden, &input));
    logits.extend(linear(&weights.policy_output, &hidden));
    ancestors.push(own);
    for (role, child) in &imp.children {
        path.push(*role);
        policy(weights, child, shown, ancestors, path, logits);
        path.pop();
    }
    ancestors.pop();
}

/// Encoder of the policy or of the value, with the sizes of the network.
#[derive(Clone, Copy)]
struct Encoder<'a>(&'a FishEyeShape, &'a EncoderWeights);

impl<'a> Encoder<'a> {
    /// Computes the roll-up: the vector of a sept.
    fn sept(self, imp: &Sept) -> Vec<f32> {
        let this = self.embedding(imp.value);
        if imp.children.is_empty() {
            return this.to_vec();
        }
        let mut rows = vec![self.embedding(0).to_vec(); self.0.roles];
        rows[0] = this.to_vec();
        for (role, child) in &imp.children {
            rows[*role] = self.sept(child);
        }
        linear(
            &self.1.rollup_output,
            &relu(linear(&self.1.rollup_hidden, &rows.concat())),
        )
    }

    fn embedding(self, value: usize) -> &'a [f32] {
        let width = self.0.width;
        &self.1.embedding[value * width..][..width]
    }

    /// Computes the vectors of the grids and of the examples, one after the other.
    fn shown(self, position: &Position) -> Vec<f32> {
        let mut shown = self.grids(position);
        if let Some(weights) = &self.1.examples {
            let mut greatest = vec![0.0_f32; self.0.examples];
            for example in &position.examples {
                let mut planes: Vec<f32> = example.iter().flat_map(|grid| self.one_hot(grid)).collect();
                for layer in &weights.convolutions {
                    planes = relu(conv(layer, &planes));
                }
                let numbers = relu(linear(&weights.output, &relu(conv(&weights.reduce, &planes))));
                for (greatest, number) in greatest.iter_mut().zip(numbers) {
                    *greatest = greatest.max(number);
                }
            }
            shown.extend(greatest);
        }
        shown
    }

    fn grids(self, position: &Position) -> Vec<f32> {
        let mut planes: Vec<f32> = position
            .grids
            .iter()
            .flat_map(|grid| self.one_hot(grid))
            .collect();
        for &flag in &position.flags {
            planes.extend([f32::from(u8::from(flag)); SQUARES]);
        }
        for layer in &self.1.grids {
            planes = relu(conv(layer, &planes));
        }
        relu(linear(
            &self.1.grids_output,
            &relu(conv(&self.1.grids_reduce, &planes)),
        ))
    }

    fn view(self, imp: &Sept) -> Vec<f32> {
        let planes = relu(conv(&self.1.view, &self.one_hot(&imp.view)));
        relu(linear(
            &self.1.view_output,
            &relu(conv(&self.1.view_reduce, &planes)),
        ))
    }

    fn one_hot(self, grid: &[u8; SQUARES]) -> Vec<f32> {
        (0..self.0.symbols)
            .flat_map(|symbol| {
                grid.iter()
                    .map(move |&found| f32::from(u8::from(usize::from(found) == symbol)))
            })
            .collect()
    }
}
