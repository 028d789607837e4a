//! Compares the fish-eye graph in ONNX Runtime with its recursive definition, over random trees of imps.

use crate::{common::small, largest_difference, load};
use config::Provider;
use games::{
    Game as _,
    generator::{Encoding, GeneratorGame},
};
use network::batch::Batch;
use onnx::{
    FishEyeShape, FishEyeWeights, Metadata,
    fish_eye::{
        self,
        recursive::{self, Position, Sept},
    },
};
use ort::{session::Session, value::Tensor};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

fn shape() -> FishEyeShape {
    FishEyeShape::new(64, 20, 6, 38)
}

/// Returns the shape of two networks, one for the policy and one for the value.
fn two() -> FishEyeShape {
    FishEyeShape {
        shared: false,
        ..shape()
    }
}

/// Returns the shape of two networks that take examples.
fn with_examples() -> FishEyeShape {
    FishEyeShape {
        examples: 128,
        ..two()
    }
}

fn session(weights: &FishEyeWeights) -> Session {
    let metadata = Metadata {
        layout: small(),
        step: 1,
    };
    let file = fish_eye::build(weights, &metadata).unwrap();
    crate::session(&file)
}

fn grid(random: &mut ChaCha8Rng) -> [u8; 64] {
    std::array::from_fn(|_| random.random_range(0..11))
}

/// Returns a random tree of at most `depth` edges from root to leaf; any imp may be a leaf.
fn sept(random: &mut ChaCha8Rng, depth: usize) -> Sept {
    let mut children = Vec::new();
    if depth > 0 {
        for role in 1..19 {
            if random.random_bool(0.09) {
                children.push((role, sept(random, depth - 1)));
            }
        }
    }
    Sept {
        value: random.random_range(1..64),
        children,
        view: grid(random),
    }
}

fn positions(count: usize, seed: u64) -> Vec<Position> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    (0..count)
        .map(|number| Position {
            root: sept(&mut random, number % 7),
            grids: (0..3).map(|_| grid(&mut random)).collect(),
            flags: vec![random.random()],
            // 0 to 3 examples: the first position has none.
            examples: (0..number % 4)
                .map(|_| [grid(&mut random), grid(&mut random)])
                .collect(),
        })
        .collect()
}

/// Inputs of the graph, made by a simple implementation.
#[derive(Default)]
struct Arrays {
    /// Height, role matrix and context of each interior imp, in preorder.
    interior: Vec<(usize, [Row; 20], [Row; 6])>,
    /// All imps, in preorder.
    imps: Vec<Imp>,
    roots: Vec<i32>,
    views: Vec<i32>,
}

/// Row, interior number of the parent, path and position.
type Imp = (Row, Option<usize>, Vec<i32>, usize);

/// A row of the table.
#[derive(Clone, Copy, Default)]
enum Row {
    #[default]
    NotPresent,
    Leaf(usize),
    Interior(usize),
}

impl Arrays {
    fn add(&mut self, sept: &Sept, parent: Option<usize>, path: &[i32], position: usize) -> (Row, usize) {
        let imp = self.imps.len();
        self.imps
            .push((Row::Leaf(sept.value), parent, path.to_vec(), position));
        self.views.extend(sept.view.map(i32::from));
        if sept.children.is_empty() {
            return (Row::Leaf(sept.value), 0);
        }
        let number = self.interior.len();
        let row = Row::Interior(number);
        self.imps[imp].0 = row;
        let mut context = [row; 6];
        let above = parent.map_or([Row::NotPresent; 6], |parent| self.interior[parent].2);
        context[1..].copy_from_slice(&above[..5]);
        self.interior.push((0, [Row::NotPresent; 20], context));
        let mut rows = [Row::NotPresent; 20];
        rows[0] = Row::Leaf(sept.value);
        let mut height = 0;
        for (role, child) in &sept.children {
            let path: Vec<i32> = path.iter().copied().chain([*role as i32]).collect();
            let (row, below) = self.add(child, Some(number), &path, position);
            rows[*role] = row;
            height = height.max(below + 1);
        }
        self.interior[number].0 = height;
        self.interior[number].1 = rows;
        (row, height)
    }

    fn run(&self, session: &mut Session, positions: &[Position]) -> (Vec<f32>, Vec<f32>) {
        let mut order: Vec<usize> = (0..self.interior.len()).collect();
        order.sort_by_key(|&number| self.interior[number].0);
        let mut place = vec![0; order.len()];
        for (at, &number) in order.iter().enumerate() {
            place[number] = at;
        }
        let row = |row: &Row| match *row {
            Row::NotPresent => 0,
            Row::Leaf(value) => value as i32,
            Row::Interior(number) => 64 + place[number] as i32,
        };
        let interior = || order.iter().map(|&number| &self.interior[number]);
        let levels: Vec<i32> = (0..7)
            .map(|height| interior().filter(|(found, ..)| *found <= height).count() as i32)
            .collect();
        let roles: Vec<i32> = interior().flat_map(|(_, rows, _)| rows.iter().map(row)).collect();
        let ancestors: Vec<i32> = [0; 6]
            .into_iter()
            .chain(interior().flat_map(|(.., rows)| rows.iter().map(row)))
            .collect();
        let of_imps = |of: &dyn Fn(&Imp) -> Vec<i32>| -> Vec<i32> { self.imps.iter().flat_map(of).collect() };
        let path = |path: &[i32]| -> Vec<i32> {
            (0..6)
                .map(|depth| path.get(depth).copied().unwrap_or(19))
                .collect()
        };
        let (imps, batch, count) = (self.imps.len(), positions.len(), order.len());
        let input =
            |sides: &[usize], numbers: Vec<i32>| Tensor::from_array((sides.to_vec(), numbers)).unwrap();
        let grids = positions
            .iter()
            .flat_map(|position| position.grids.concat())
            .map(i32::from)
            .collect();
        let flags = positions
            .iter()
            .map(|position| i32::from(position.flags[0]))
            .collect();
        let mut inputs = ort::inputs![
            fish_eye::ROLES => input(&[count, 20], roles),
            fish_eye::LEVELS => input(&[7], levels),
            fish_eye::ANCESTORS => input(&[count + 1, 6], ancestors),
            fish_eye::SEPT => input(&[imps], of_imps(&|(sept, ..)| vec![row(sept)])),
            fish_eye::PARENT => input(&[imps], of_imps(&|(_, parent, ..)| vec![parent.map_or(0, |parent| 1 + place[parent] as i32)])),
            fish_eye::PATH => input(&[imps, 6], of_imps(&|(_, _, roles, _)| path(roles))),
            fish_eye::POSITION => input(&[imps], of_imps(&|(.., position)| vec![*position as i32])),
            fish_eye::VIEW => input(&[imps], (0..imps as i32).collect()),
            fish_eye::ROOT => input(&[batch], self.roots.clone()),
            fish_eye::GRIDS => input(&[batch, 3, 64], grids),
            fish_eye::FLAGS => input(&[batch, 1], flags),
            fish_eye::VIEWS => input(&[imps, 64], self.views.clone()),
        ];
        if session
            .inputs()
            .iter()
            .any(|input| input.name() == fish_eye::EXAMPLES)
        {
            let all = positions.iter().flat_map(|position| &position.examples);
            let symbols: Vec<i32> = all
                .clone()
                .flat_map(|example| example.concat())
                .map(i32::from)
                .collect();
            let mut next = 0;
            let rows = positions.iter().flat_map(|position| {
                let mut rows = [0; 3];
                for row in rows.iter_mut().take(position.examples.len()) {
                    next += 1;
                    *row = next;
                }
                rows
            });
            let rows = rows.collect();
            inputs.push((
                fish_eye::EXAMPLES.into(),
                input(&[all.count(), 2, 64], symbols).into(),
            ));
            inputs.push((fish_eye::EXAMPLES_OF.into(), input(&[batch, 3], rows).into()));
        }
        let outputs = session.run(inputs).unwrap();
        let numbers = |name: &str| outputs[name].try_extract_tensor::<f32>().unwrap().1.to_vec();
        (numbers("policy_logits"), numbers("value"))
    }
}

fn run(session: &mut Session, positions: &[Position]) -> (Vec<f32>, Vec<f32>) {
    let mut arrays = Arrays::default();
    for (number, position) in positions.iter().enumerate() {
        arrays.roots.push(arrays.imps.len() as i32);
        arrays.add(&position.root, None, &[], number);
    }
    arrays.run(session, positions)
}

#[test]
fn one_network_has_568_thousand_parameters_and_two_have_922_and_354_more_with_examples() {
    let parameters = |shape: &FishEyeShape| FishEyeWeights::random(shape, 1).parameters();
    assert_eq!(
        (parameters(&shape()) / 1000, parameters(&two()) / 1000),
        (568, 922)
    );
    assert_eq!((parameters(&with_examples()) - parameters(&two())) / 1000, 354);
}

#[test]
fn the_graph_equals_the_definition() {
    equals_the_definition(&FishEyeWeights::random(&shape(), 4));
}

#[test]
fn the_graph_of_two_networks_equals_the_definition() {
    equals_the_definition(&FishEyeWeights::random(&two(), 4));
}

#[test]
fn the_graph_with_examples_equals_the_definition() {
    equals_the_definition(&FishEyeWeights::random(&with_examples(), 4));
}

/// Positions with and without examples share a batch; a batch of the first position alone has none at all.
#[test]
fn a_single_position_gives_bit_for_bit_the_outputs_of_a_batch_with_examples() {
    alone_as_in_a_batch(&FishEyeWeights::random(&with_examples(), 9));
}

#[test]
fn the_order_of_the_examples_does_not_matter_but_the_examples_do() {
    let mut session = session(&FishEyeWeights::random(&with_examples(), 3));
    let before = positions(16, 5);
    let (logits, values) = run(&mut session, &before);
    let mut turned = before.clone();
    for position in &mut turned {
        position.examples.reverse();
    }
    assert!(turned != before);
    assert!(run(&mut session, &turned) == (logits, values.clone()));
    // Without examples the values of the positions that have some are others, and only those.
    for position in &mut turned {
        position.examples.clear();
    }
    let (_, others) = run(&mut session, &turned);
    for ((position, value), other) in before.iter().zip(values).zip(others) {
        assert_eq!(value == other, position.examples.is_empty());
    }
}

/// The value of two networks depends on no weight of the policy's network, nor the policy on one of the value's.
#[test]
fn two_networks_share_no_weight() {
    let weights = FishEyeWeights::random(&two(), 5);
    let positions = positions(6, 3);
    let of = |weights: &FishEyeWeights| run(&mut session(weights), &positions);
    let (logits, values) = of(&weights);
    let other = FishEyeWeights::random(&two(), 6);
    // Layers of the value come from one network, those of the policy from the other.
    let joined = |policy: &FishEyeWeights, value: &FishEyeWeights| {
        let pairs = policy.layers.iter().zip(&value.layers);
        let chosen = pairs.map(|(policy, value)| match policy.shape.name.starts_with("value.") {
            true => value.clone(),
            false => policy.clone(),
        });
        FishEyeWeights {
            shape: policy.shape.clone(),
            layers: chosen.collect(),
        }
    };
    let (other_logits, same_values) = of(&joined(&other, &weights));
    assert!(values == same_values && logits != other_logits);
    let (same_logits, other_values) = of(&joined(&weights, &other));
    assert!(logits == same_logits && values != other_values);
}

fn equals_the_definition(weights: &FishEyeWeights) {
    let mut session = session(weights);
    let positions = positions(14, 1);
    let (logits, values) = run(&mut session, &positions);
    let (mut true_logits, mut true_values) = (Vec::new(), Vec::new());
    for position in &positions {
        let (logits, value) = recursive::evaluate(weights, position);
        true_logits.extend(logits);
        true_values.push(value);
    }
    assert!(
        logits.len() > 38 * 100,
        "the trees are too small: {}",
        logits.len() / 38
    );
    let spread = true_values.iter().fold([1.0_f32, 0.0], |[least, most], &value| {
        [least.min(value), most.max(value)]
    });
    assert!(spread[1] - spread[0] > 0.01, "the values say nothing: {spread:?}");
    let difference = largest_difference(&logits, &true_logits);
    assert!(
        difference < 1e-5 * range(&true_logits).max(1.0),
        "logits: {difference}"
    );
    let difference = largest_difference(&values, &true_values);
    assert!(difference < 1e-5, "values: {difference}");
}

fn range(numbers: &[f32]) -> f32 {
    let most = numbers.iter().copied().fold(f32::MIN, f32::max);
    most - numbers.iter().copied().fold(f32::MAX, f32::min)
}

#[test]
fn a_single_position_gives_bit_for_bit_the_outputs_of_a_batch() {
    alone_as_in_a_batch(&FishEyeWeights::random(&two(), 9));
}

fn alone_as_in_a_batch(weights: &FishEyeWeights) {
    let mut session = session(weights);
    let positions = positions(30, 2);
    let (logits, values) = run(&mut session, &positions);
    let mut rest = logits.as_slice();
    for (number, position) in positions.iter().enumerate() {
        let (alone, value) = run(&mut session, std::slice::from_ref(position));
        let (together, others) = rest.split_at(alone.len());
        rest = others;
        assert!(alone == together, "position {number}");
        assert!(value == values[number..=number], "position {number}");
    }
    assert!(rest.is_empty());
}

#[test]
fn weights_that_do_not_fit_are_refused() {
    let metadata = Metadata {
        layout: small(),
        step: 1,
    };
    let refused = |change: &dyn Fn(&mut FishEyeWeights)| {
        let mut weights = FishEyeWeights::random(&shape(), 1);
        change(&mut weights);
        fish_eye::build(&weights, &metadata).unwrap_err().to_string()
    };
    fn layer<'a>(weights: &'a mut FishEyeWeights, name: &str) -> &'a mut onnx::Layer {
        weights.layer_mut(name).unwrap()
    }
    assert!(refused(&|weights| layer(weights, "context").bias[3] = f32::NAN).starts_with("context: "));
    let short = |weights: &mut FishEyeWeights| layer(weights, "embedding").weights.truncate(5);
    assert!(refused(&short).starts_with("embedding: 5 weights"));
    assert!(refused(&|weights| weights.layers.truncate(2)).contains("2 layers"));
    let narrow = |weights: &mut FishEyeWeights| layer(weights, "policy.output").shape.outputs = 37;
    assert!(refused(&narrow).starts_with("policy.output: "));
    assert!(refused(&|weights| weights.shape.shared = false).contains("layers"));
    let unequal = |weights: &mut FishEyeWeights| {
        *weights = FishEyeWeights::random(&two(), 1);
        layer(weights, "value.view.output").bias.pop();
    };
    assert!(refused(&unequal).starts_with("value.view.output: "));
    assert!(refused(&|weights| weights.shape.examples = 128).contains("layers"));
    let resized = |weights: &mut FishEyeWeights| {
        *weights = FishEyeWeights::random(&with_examples(), 1);
        weights.shape.examples = 64;
    };
    assert!(refused(&resized).contains("examples.output"));
}

/// Rows of the generator game, written by the game, are read, expanded and run by the server's runner.
#[test]
fn outputs_for_rows_of_the_game_equal_the_definition() {
    rows_equal_the_definition(Encoding::Plain);
}

#[test]
fn outputs_for_rows_with_examples_equal_the_definition() {
    rows_equal_the_definition(Encoding::Examples);
}

fn rows_equal_the_definition(encoding: Encoding) {
    let layout = GeneratorGame::layout(encoding);
    let metadata = Metadata {
        layout: layout.clone(),
        step: 3,
    };
    let shape = FishEyeShape::of(&layout).unwrap();
    assert_eq!(shape.examples > 0, encoding == Encoding::Examples);
    let weights = FishEyeWeights::random(&shape, 6);
    let file = fish_eye::build(&weights, &metadata).unwrap();
    let model = load(Provider::Cpu, &file, &layout).unwrap();
    let rows = onnx::random::rows(&layout, 9, 1.0, 5);
    let numbers = rows.iter().map(|&number| number as i32).collect();
    let outputs = model.run(Batch::new(numbers, 9)).unwrap();
    let actions = layout.actions as usize;
    assert_eq!(outputs.logits().len(), 9 * actions);
    let (mut moved, mut with_examples) = (0, 0);
    for ((row, logits), &value) in layout
        .split(&rows)
        .zip(outputs.logits().chunks(actions))
        .zip(outputs.values())
    {
        let read = games::generator::ClanPosition::read(row).unwrap();
        let position = Position::of(&read);
        let (true_logits, true_value) = recursive::evaluate(&weights, &position);
        let (own, absent) = logits.split_at(true_logits.len());
        assert!(largest_difference(own, &true_logits) < 1e-5 * range(&true_logits).max(1.0));
        assert!((value - true_value).abs() < 1e-5, "{value} {true_value}");
        assert!(absent.iter().all(|&logit| logit == f32::MIN));
        moved += usize::from(read.clan.len() > 4);
        with_examples += usize::from(!read.examples.is_empty());
    }
    let is_mixed = (1..9).contains(&with_examples);
    assert_eq!(
        is_mixed,
        encoding == Encoding::Examples,
        "{with_examples} rows with examples"
    );
    assert!(moved > 3, "nearly all clans are bare");
}

#[test]
fn a_model_that_cannot_serve_clans_is_refused() {
    let layout = GeneratorGame::layout(Encoding::Plain);
    let metadata = Metadata {
        layout: layout.clone(),
        step: 3,
    };
    let weights = FishEyeWeights::random(&shape(), 6);
    let file = fish_eye::build(&weights, &metadata).unwrap();
    // A network without examples does not serve rows that may have some, nor the other way round.
    let others = GeneratorGame::layout(Encoding::Examples);
    assert!(load(Provider::Cpu, &file, &others).is_err());
    let taking = FishEyeWeights::random(&with_examples(), 6);
    let metadata = Metadata {
        layout: others,
        step: 3,
    };
    let other = fish_eye::build(&taking, &metadata).unwrap();
    assert!(load(Provider::Cpu, &other, &layout).is_err());
    // A tower does not take rows of clans, nor a fish-eye network planes.
    assert!(load(Provider::Cpu, &file, &small()).is_err());
    let tower = crate::file(&crate::tower(&small(), 1), &small(), onnx::Input::Rows);
    assert!(load(Provider::Cpu, &tower, &layout).is_err());
    let error = load(Provider::OpenvinoF32, &file, &layout)
        .map(drop)
        .unwrap_err()
        .to_string();
    assert!(error.contains("openvino-f32"), "{error}");
}
