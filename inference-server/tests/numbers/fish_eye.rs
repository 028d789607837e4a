//! Compares the fish-eye graph in ONNX Runtime with its recursive definition, over rows that the generator game writes.

use crate::{
    common::{
        reference::fish_eye::{NetworkInput, evaluate},
        small,
    },
    largest_difference, load, run,
};
use config::Provider;
use games::{
    Game as _, RowLayout,
    generator::{ClanPosition, Encoding, Examples, GeneratorGame},
};
use network::model::Model;
use onnx::{FishEyeShape, FishEyeWeights, Metadata, fish_eye, random::rows};

/// Returns layout and sizes of one network without examples, which is shared by policy and value.
fn shared() -> (RowLayout, FishEyeShape) {
    let layout = GeneratorGame::layout(Encoding::Plain);
    let shape = FishEyeShape::of(&layout).unwrap();
    (layout, shape)
}

/// Returns layout and sizes of two networks, one for the policy and one for the value.
fn two(encoding: Encoding) -> (RowLayout, FishEyeShape) {
    let layout = GeneratorGame::layout(encoding);
    let shape = FishEyeShape::of(&layout).unwrap();
    (
        layout,
        FishEyeShape {
            shared: false,
            ..shape
        },
    )
}

fn build(weights: &FishEyeWeights, layout: &RowLayout) -> Result<Vec<u8>, String> {
    let metadata = Metadata {
        layout: layout.clone(),
        step: 1,
    };
    fish_eye::build(weights, &metadata).map_err(|error| error.to_string())
}

fn model(weights: &FishEyeWeights, layout: &RowLayout) -> Model {
    load(Provider::Cpu, &build(weights, layout).unwrap(), layout).unwrap()
}

#[test]
fn one_network_has_568_thousand_parameters_and_two_have_922_and_354_more_with_examples() {
    let [one, without, with] = [shared(), two(Encoding::Plain), two(Encoding::Examples)]
        .map(|(_, shape)| FishEyeWeights::random(&shape, 1).parameters());
    assert_eq!(
        (one / 1000, without / 1000, (with - without) / 1000),
        (568, 922, 354)
    );
}

#[test]
fn outputs_equal_the_definition() {
    for (layout, shape) in [shared(), two(Encoding::Plain), two(Encoding::Examples)] {
        let takes_examples = shape.examples > 0;
        let weights = FishEyeWeights::random(&shape, 6);
        let rows = rows(&layout, 14, 1.0, 5);
        let (logits, values) = run(&model(&weights, &layout), &rows);
        let (mut large, mut with_examples, mut true_values) = (0, 0, Vec::new());
        for (row, logits) in layout.split(&rows).zip(logits.chunks(layout.actions as usize)) {
            let position = ClanPosition::read(row).unwrap();
            let (true_logits, true_value) = evaluate(&weights, &NetworkInput::of(&position));
            true_values.push(true_value);
            let (own, absent) = logits.split_at(true_logits.len());
            assert!(largest_difference(own, &true_logits) < 1e-5 * range(&true_logits).max(1.0));
            assert!(absent.iter().all(|&logit| logit == f32::MIN));
            large += usize::from(position.clan.len() > 4);
            with_examples += usize::from(!position.examples.is_empty());
        }
        assert!(largest_difference(&values, &true_values) < 1e-5);
        assert!(range(&true_values) > 0.01, "the values say nothing");
        assert!(large > 3, "nearly all clans are bare");
        assert_eq!(
            (1..14).contains(&with_examples),
            takes_examples,
            "{with_examples}"
        );
    }
}

fn range(numbers: &[f32]) -> f32 {
    let most = numbers.iter().copied().fold(f32::MIN, f32::max);
    most - numbers.iter().copied().fold(f32::MAX, f32::min)
}

/// Positions with and without examples share a batch; a batch of a single position may have none at all.
#[test]
fn a_single_position_gives_bit_for_bit_the_outputs_of_a_batch() {
    for (layout, shape) in [two(Encoding::Plain), two(Encoding::Examples)] {
        let model = model(&FishEyeWeights::random(&shape, 9), &layout);
        let rows = rows(&layout, 30, 1.0, 2);
        let (logits, values) = run(&model, &rows);
        let together = logits.chunks(layout.actions as usize).zip(&values);
        for (row, (logits, &value)) in layout.split(&rows).zip(together) {
            assert!(run(&model, row) == (logits.to_vec(), vec![value]));
        }
    }
}

#[test]
fn without_its_examples_a_position_has_another_value() {
    let (layout, shape) = two(Encoding::Examples);
    let model = model(&FishEyeWeights::random(&shape, 3), &layout);
    let rows = rows(&layout, 16, 1.0, 5);
    let mut bare = Vec::new();
    for row in layout.split(&rows) {
        let position = ClanPosition {
            examples: Examples::NONE,
            ..ClanPosition::read(row).unwrap()
        };
        position.write(&mut bare);
    }
    let ((_, values), (_, others)) = (run(&model, &rows), run(&model, &bare));
    for (row, (value, other)) in layout.split(&rows).zip(values.iter().zip(&others)) {
        let is_bare = ClanPosition::read(row).unwrap().examples.is_empty();
        assert_eq!(value == other, is_bare);
    }
}

/// The value of two networks depends on no weight of the policy's network, nor the policy on one of the value's.
#[test]
fn two_networks_share_no_weight() {
    let (layout, shape) = two(Encoding::Plain);
    let rows = rows(&layout, 6, 1.0, 3);
    let of = |weights: &FishEyeWeights| run(&model(weights, &layout), &rows);
    let [weights, other] = [5, 6].map(|seed| FishEyeWeights::random(&shape, seed));
    let (logits, values) = of(&weights);
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

#[test]
fn weights_that_do_not_fit_are_refused() {
    let refused = |shape: &FishEyeShape, change: &dyn Fn(&mut FishEyeWeights)| {
        let mut weights = FishEyeWeights::random(shape, 1);
        change(&mut weights);
        build(&weights, &small()).unwrap_err()
    };
    fn layer<'a>(weights: &'a mut FishEyeWeights, name: &str) -> &'a mut onnx::Layer {
        weights.layer_mut(name).unwrap()
    }
    type Change = fn(&mut FishEyeWeights);
    let (_, one) = shared();
    let (_, two_networks) = two(Encoding::Plain);
    let (_, with_examples) = two(Encoding::Examples);
    let changes: [(&FishEyeShape, Change, &str); 8] = [
        (
            &one,
            |weights| layer(weights, "context").bias[3] = f32::NAN,
            "context: ",
        ),
        (
            &one,
            |weights| layer(weights, "embedding").weights.truncate(5),
            "embedding: 5 weights",
        ),
        (&one, |weights| weights.layers.truncate(2), "2 layers"),
        (
            &one,
            |weights| layer(weights, "policy.output").shape.outputs = 37,
            "policy.output: ",
        ),
        (&one, |weights| weights.shape.shared = false, "layers"),
        (&one, |weights| weights.shape.examples = 128, "layers"),
        (
            &two_networks,
            |weights| layer(weights, "value.view.output").bias.clear(),
            "value.view.output: ",
        ),
        (
            &with_examples,
            |weights| weights.shape.examples = 64,
            "examples.output",
        ),
    ];
    for (shape, change, words) in changes {
        let error = refused(shape, &change);
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn a_model_that_cannot_serve_clans_is_refused() {
    let (layout, shape) = shared();
    let file = build(&FishEyeWeights::random(&shape, 6), &layout).unwrap();
    // A network without examples does not serve rows that may have some, nor the other way round.
    let (others, taking) = two(Encoding::Examples);
    assert!(load(Provider::Cpu, &file, &others).is_err());
    let other = build(&FishEyeWeights::random(&taking, 6), &others).unwrap();
    assert!(load(Provider::Cpu, &other, &layout).is_err());
    // A tower does not take rows of clans, nor a fish-eye network planes.
    assert!(load(Provider::Cpu, &file, &small()).is_err());
    let tower = crate::file(&crate::tower(&small(), 1), &small(), onnx::Input::Rows);
    assert!(load(Provider::Cpu, &tower, &layout).is_err());
    let error = load(Provider::OpenvinoF32, &file, &layout).map(drop);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("openvino-f32"), "{error}");
}
