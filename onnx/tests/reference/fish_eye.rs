//! The network over clans, imp by imp.

use games::generator::{
    Clan, ClanPosition, Grid,
    grid::{CELLS, SIDE},
};
use onnx::{FishEyeWeights, fish_eye::VALUE_ENCODER};

use super::tower::{layer, relu};

/// Imp with its subtree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sept {
    /// One-hot value of the imp.
    pub value: usize,
    /// Role and sept of each child, in the clan's order.
    pub children: Vec<(usize, Sept)>,
    /// Symbol of each square of the picture drawn inside the sept.
    pub view: [u8; CELLS],
}

/// Input of the network for one position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkInput {
    /// Root of the clan.
    pub root: Sept,
    /// Grids: targets A and B, and the current render; a symbol for each square.
    pub grids: Vec<[u8; CELLS]>,
    /// Flags of the position.
    pub flags: Vec<bool>,
    /// Examples: input and output grid of each. Networks that take none ignore them.
    pub examples: Vec<[[u8; CELLS]; 2]>,
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

impl NetworkInput {
    /// Makes the network's input from a position of the generator game: the clan, the targets, and the clan's current
    /// render.
    pub fn of(position: &ClanPosition) -> Self {
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
pub fn evaluate(weights: &FishEyeWeights, position: &NetworkInput) -> (Vec<f32>, f32) {
    let encoder = Encoder(weights, "");
    let mut logits = Vec::new();
    policy(
        weights,
        &position.root,
        &encoder.shown(position),
        &mut Vec::new(),
        &mut Vec::new(),
        &mut logits,
    );
    let encoder = match weights.shape.shared {
        true => encoder,
        false => Encoder(weights, VALUE_ENCODER),
    };
    let input = [
        encoder.sept(&position.root),
        encoder.shown(position),
        encoder.view(&position.root),
    ]
    .concat();
    let hidden = relu(encoder.apply_own("value.hidden", &input));
    let output = encoder.apply_own("value.output", &hidden);
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
    let encoder = Encoder(weights, "");
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
        &relu(encoder.apply("context", &context)),
        &relu(encoder.apply("path", &matrix)),
        &encoder.view(imp),
        shown,
    ]
    .concat();
    let hidden = relu(encoder.apply("policy.hidden", &input));
    logits.extend(encoder.apply("policy.output", &hidden));
    ancestors.push(own);
    for (role, child) in &imp.children {
        path.push(*role);
        policy(weights, child, shown, ancestors, path, logits);
        path.pop();
    }
    ancestors.pop();
}

/// Encoder whose layers have names that begin with a prefix.
#[derive(Clone, Copy)]
struct Encoder<'a>(&'a FishEyeWeights, &'a str);

impl<'a> Encoder<'a> {
    /// Computes a layer of the encoder.
    fn apply(self, name: &str, values: &[f32]) -> Vec<f32> {
        let name = format!("{}{name}", self.1);
        layer(self.0.layer(&name), SIDE, values)
    }

    /// Computes a layer of the heads, which have no prefix.
    fn apply_own(self, name: &str, values: &[f32]) -> Vec<f32> {
        Encoder(self.0, "").apply(name, values)
    }

    /// Computes the roll-up: the vector of a sept.
    fn sept(self, imp: &Sept) -> Vec<f32> {
        let this = self.embedding(imp.value);
        if imp.children.is_empty() {
            return this.to_vec();
        }
        let mut rows = vec![self.embedding(0).to_vec(); self.0.shape.roles];
        rows[0] = this.to_vec();
        for (role, child) in &imp.children {
            rows[*role] = self.sept(child);
        }
        let hidden = relu(self.apply("rollup.hidden", &rows.concat()));
        self.apply("rollup.output", &hidden)
    }

    fn embedding(self, value: usize) -> &'a [f32] {
        let width = self.0.shape.width;
        &self.0.layer(&format!("{}embedding", self.1)).weights[value * width..][..width]
    }

    /// Computes the vectors of the grids and of the examples, one after the other.
    fn shown(self, position: &NetworkInput) -> Vec<f32> {
        let mut planes: Vec<f32> = position
            .grids
            .iter()
            .flat_map(|grid| self.one_hot(grid))
            .collect();
        for &flag in &position.flags {
            planes.extend([f32::from(u8::from(flag)); CELLS]);
        }
        let mut shown = self.board("grids", planes);
        if self.0.shape.examples > 0 {
            let mut largest = vec![0.0_f32; self.0.shape.examples];
            for example in &position.examples {
                let planes = example.iter().flat_map(|grid| self.one_hot(grid)).collect();
                for (largest, number) in largest.iter_mut().zip(self.board("examples", planes)) {
                    *largest = largest.max(number);
                }
            }
            shown.extend(largest);
        }
        shown
    }

    fn view(self, imp: &Sept) -> Vec<f32> {
        let board = relu(self.apply("view.conv", &self.one_hot(&imp.view)));
        let reduced = relu(self.apply("view.reduce", &board));
        relu(self.apply("view.output", &reduced))
    }

    /// Computes the vector of a board. `part` begins the names of the layers.
    fn board(self, part: &str, mut planes: Vec<f32>) -> Vec<f32> {
        for number in 0..self.0.shape.convolutions {
            planes = relu(self.apply(&format!("{part}.conv{number}"), &planes));
        }
        let reduced = relu(self.apply(&format!("{part}.reduce"), &planes));
        relu(self.apply(&format!("{part}.output"), &reduced))
    }

    fn one_hot(self, grid: &[u8; CELLS]) -> Vec<f32> {
        (0..self.0.shape.symbols)
            .flat_map(|symbol| {
                grid.iter()
                    .map(move |&found| f32::from(u8::from(usize::from(found) == symbol)))
            })
            .collect()
    }
}
