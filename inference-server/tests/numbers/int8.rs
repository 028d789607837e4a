//! Convolutions in 8-bit integers: against a plain evaluation in integers, and against f32 with the networks that come with
//! Minuet.

use std::collections::HashMap;

use config::Provider;
use games::{
    Action, Game, Symmetry, chess::Chess, connect_four::ConnectFour, gomoku::Gomoku, othello::Othello,
    paco_sako::PacoSako,
};
use network::{ModelFile, softmax::softmax};
use onnx::{
    Input, Kind, Layer, LayerShape,
    graph::{Attribute, Graph, Side},
    int8::{LARGEST, LARGEST_IN_16_BITS, Range, to_int8, with_ranges},
    proto::tensor_proto::DataType,
    sums,
};
use ort::value::Tensor;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::{
    common::{file, model_of, of_any_size, tower},
    largest_difference, load, load_file, run, session,
};

const INPUTS: usize = 3;
const OUTPUTS: usize = 5;
const SIDE: usize = 8;

/// Returns a model of a convolution (3×3, with a bias) and a ReLU: input `x`, `[1, 3, 8, 8]`, output `y`. The second convolution is the
/// last one, which is not converted.
fn model(layer: &Layer) -> Vec<u8> {
    let mut graph = Graph::new("one layer");
    let sides = |planes| [1, planes, SIDE, SIDE].map(Side::Fixed);
    let x = graph.input("x", DataType::Float, &sides(INPUTS));
    let weights = graph.floats("weights", &[OUTPUTS, INPUTS, 3, 3], &layer.weights);
    let bias = graph.floats("bias", &[OUTPUTS], &layer.bias);
    let padding = [("pads", Attribute::Ints(vec![1; 4]))];
    let sum = graph.node("Conv", "layer", &[&x, &weights, &bias], &padding);
    let y = graph.node("Relu", "layer", &[&sum], &[]);
    graph.output("y", &y, DataType::Float, &sides(OUTPUTS));
    let last = graph.floats("last", &[1, OUTPUTS, 1, 1], &[1.0; OUTPUTS]);
    let z = graph.node("Conv", "last", &[&y, &last], &[]);
    graph.output("z", &z, DataType::Float, &sides(1));
    model_of(graph, 9, 18)
}

/// Evaluates the layer as the conversion defines it: bytes times bytes of at most `most`, summed as integers. The result is in steps of the
/// output's scale, before it is rounded.
fn in_integers(layer: &Layer, x: &[f32], most: u8, input: Range, output: Range) -> Vec<f64> {
    let step = |range: Range| f64::from(range.high - range.low) / 255.0;
    let zero = (f64::from(-input.low) / step(input)).round() as i64;
    let bytes: Vec<i64> = x
        .iter()
        .map(|&x| ((f64::from(x) / step(input)).round() as i64 + zero).clamp(0, 255) - zero)
        .collect();
    let kernel = INPUTS * 9;
    let mut all = Vec::new();
    for (weights, &bias) in layer.weights.chunks(kernel).zip(&layer.bias) {
        let largest = weights
            .iter()
            .fold(0.0_f32, |largest, weight| largest.max(weight.abs()));
        let scale = f64::from(largest) / f64::from(most);
        let weights: Vec<i64> = weights
            .iter()
            .map(|&weight| (f64::from(weight) / scale).round() as i64)
            .collect();
        let bias = (f64::from(bias) / (scale * step(input))).round() as i64;
        for square in 0..SIDE * SIDE {
            let mut sum = bias;
            for plane in 0..INPUTS {
                for tap in 0..9 {
                    let (row, column) = (square / SIDE + tap / 3, square % SIDE + tap % 3);
                    if (1..=SIDE).contains(&row) && (1..=SIDE).contains(&column) {
                        let there = plane * SIDE * SIDE + (row - 1) * SIDE + column - 1;
                        sum += bytes[there] * weights[plane * 9 + tap];
                    }
                }
            }
            let steps = sum as f64 * scale * step(input) / step(output);
            all.push(steps.clamp(0.0, 255.0));
        }
    }
    all
}

/// True if this CPU adds products of bytes without error. One with AVX2 only cuts large sums off.
fn adds_in_32_bits() -> bool {
    let ones = vec![1.0_f32; sums::SHAPE.iter().product()];
    let ones = Tensor::from_array((sums::SHAPE, ones)).unwrap();
    let mut session = session(&sums::model().unwrap());
    let outputs = session.run(ort::inputs![sums::ONES => ones]).unwrap();
    let sum = outputs[sums::SUM].try_extract_tensor::<f32>().unwrap().1[0];
    (sum / sums::EXACT - 1.0).abs() < 0.01
}

#[test]
fn a_converted_layer_equals_its_evaluation_in_integers() {
    let mut random = ChaCha8Rng::seed_from_u64(4);
    let mut numbers = |count: usize, size: f32| -> Vec<f32> {
        (0..count).map(|_| random.random_range(-size..size)).collect()
    };
    let layer = Layer {
        shape: LayerShape::new("layer", Kind::Conv(3), OUTPUTS, INPUTS),
        weights: numbers(OUTPUTS * INPUTS * 9, 0.5),
        bias: numbers(OUTPUTS, 1.0),
    };
    let x = numbers(INPUTS * SIDE * SIDE, 2.0);
    let file = model(&layer);
    let probe = with_ranges(&file).unwrap();
    let given = || Tensor::from_array(([1, INPUTS, SIDE, SIDE], x.clone())).unwrap();
    let mut measured = session(&probe.file);
    let outputs = measured.run(ort::inputs!["x" => given()]).unwrap();
    let number = |name: &str| outputs[name].try_extract_tensor::<f32>().unwrap().1[0];
    let y = outputs["y"].try_extract_tensor::<f32>().unwrap().1.to_vec();
    let mut ranges = HashMap::new();
    for tensor in &probe.tensors {
        let [low, high] = onnx::int8::Probe::outputs(tensor).map(|name| number(&name));
        ranges.insert(tensor.clone(), Range { low, high });
    }
    assert_eq!(ranges.len(), 2, "{ranges:?}");
    let input = ranges["x"];
    let extreme = |of: fn(f32, f32) -> f32, numbers: &[f32]| numbers.iter().copied().reduce(of).unwrap();
    assert_eq!(
        (input.low, input.high),
        (extreme(f32::min, &x), extreme(f32::max, &x))
    );
    let (_, &output) = ranges.iter().find(|(tensor, _)| *tensor != "x").unwrap();
    assert_eq!((output.low, output.high), (0.0, extreme(f32::max, &y)));

    let step = (output.high - output.low) / 255.0;
    for most in [Some(LARGEST_IN_16_BITS), adds_in_32_bits().then_some(LARGEST)]
        .into_iter()
        .flatten()
    {
        let mut converted = session(&to_int8(&file, &ranges, most).unwrap());
        let outputs = converted.run(ort::inputs!["x" => given()]).unwrap();
        let found = outputs["y"].try_extract_tensor::<f32>().unwrap().1;
        for (found, steps) in found.iter().zip(in_integers(&layer, &x, most, input, output)) {
            let found = f64::from(found / step);
            // Half a step is lost by rounding; the rest is for sums that lie between two steps.
            assert!(
                (found - steps).abs() < 0.51,
                "{found} steps, {steps} before rounding, weights of at most {most}"
            );
        }
    }
}

#[test]
fn networks_over_boards_of_any_size_are_converted() {
    for layout in of_any_size() {
        let file = file(&tower(&layout, 2), &layout, Input::Rows);
        let rows = onnx::random::rows(&layout, 32, 0.8, 5);
        let [plain, bytes] = [Provider::Cpu, Provider::CpuInt8]
            .map(|provider| run(&load(provider, &file, &layout).unwrap(), &rows));
        let mean = |numbers: Vec<f32>| numbers.iter().sum::<f32>() / numbers.len() as f32;
        let differences = plain
            .0
            .iter()
            .zip(&bytes.0)
            .map(|(plain, bytes)| (plain - bytes).abs());
        let of_logits = mean(differences.collect()) / mean(plain.0.iter().map(|logit| logit.abs()).collect());
        let of_values = largest_difference(&plain.1, &bytes.1);
        let board = layout.stack().unwrap().shape();
        println!("{board:?}, {} actions: {of_logits} {of_values}", layout.actions);
        assert!(of_logits > 0.0, "nothing was converted");
        assert!(of_logits < 0.1 && of_values < 0.1);
    }
}

/// Plays random games and compares both forms of the network that comes with Minuet: mean KL divergence of the priors of the legal
/// actions, and mean difference of the values.
fn differences<G: Game>() -> (f64, f64) {
    let file = ModelFile::find(&G::NAME.parse().unwrap()).unwrap();
    let encoding = file.encoding::<G>().unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(2);
    let (mut rows, mut legal) = (Vec::new(), Vec::new());
    let rules = G::Rules::default();
    while legal.len() < 256 {
        let mut state = G::start(&rules, None).unwrap();
        while state.outcome().is_none() && legal.len() < 256 {
            let mut actions: Vec<Action> = Vec::new();
            state.legal_actions(&mut actions);
            if random.random_bool(0.2) {
                state.write_row(encoding, Symmetry::default(), &mut rows);
                let entries = actions.iter();
                legal.push(
                    entries
                        .map(|&action| state.policy_index(encoding, Symmetry::default(), action))
                        .collect::<Vec<u32>>(),
                );
            }
            let action = actions[random.random_range(0..actions.len())];
            state.play(action).unwrap();
        }
    }
    let width = file.layout.actions as usize;
    let mut answers = Vec::new();
    for provider in [Provider::Cpu, Provider::CpuInt8] {
        let (logits, values) = run(&load_file(provider, 1, &file).unwrap(), &rows);
        let mut priors = Vec::new();
        for (logits, legal) in logits.chunks(width).zip(&legal) {
            assert!(softmax(logits, legal, &mut priors));
        }
        answers.push((priors, values));
    }
    let [plain, bytes] = answers.try_into().unwrap();
    let positions = legal.len() as f64;
    let divergence = |(plain, bytes): (&f32, &f32)| match *plain > 0.0 {
        true => f64::from(*plain) * (f64::from(*plain) / f64::from(*bytes)).ln(),
        false => 0.0,
    };
    let divergence: f64 = plain.0.iter().zip(&bytes.0).map(divergence).sum();
    let of_values: f64 = plain
        .1
        .iter()
        .zip(&bytes.1)
        .map(|(plain, bytes)| f64::from((plain - bytes).abs()))
        .sum();
    (divergence / positions, of_values / positions)
}

#[test]
fn trained_networks_keep_their_policy_and_value() {
    for (name, (divergence, value)) in [
        (Chess::NAME, differences::<Chess>()),
        (ConnectFour::NAME, differences::<ConnectFour>()),
        (Gomoku::NAME, differences::<Gomoku>()),
        (Othello::NAME, differences::<Othello>()),
        (PacoSako::NAME, differences::<PacoSako>()),
    ] {
        println!("{name}: KL divergence {divergence:.5}, value {value:.4}");
        assert!(divergence > 0.0, "{name}: nothing was converted");
        // Twice as much on a CPU that adds products in 16 bits, with smaller weights.
        assert!(divergence < 0.01, "{name}: {divergence}");
        assert!(value < 0.05, "{name}: {value}");
    }
}
