//! Optional parts of a network: each one learns and is exported.

use crate::common::{
    all_parts, batch, batch_for, layout, model, packer, repeat, settings, trainer, wire_batch,
};
use config::{LearnerConfig, ModelConfig, Optimizer, ValueHead};
use learner::{
    data::{batches::BatchError, packer::Packer},
    network::{Folded, NetworkShape},
    publishing::export::{Prover, export},
    training::{
        precision::Precision,
        train::{StepReport, Trainer},
    },
};
use onnx::{Input, Metadata};

/// Trains `steps` steps on the same batch; returns the first and the last report.
fn train_on_one_batch(trainer: &mut Trainer, actions: u32, steps: usize) -> [StepReport; 2] {
    let batch = batch_for(trainer, &layout(actions), 32, 5, 0);
    repeat(trainer, &batch, steps)
}

#[test]
fn every_part_can_memorise_one_batch() {
    let quick = LearnerConfig {
        learning_rate: 1e-2,
        ..settings()
    };
    let pooling = ModelConfig {
        global_pooling: 4,
        ..model()
    };
    let outcomes = ModelConfig {
        value_head: ValueHead::Wdl,
        ..model()
    };
    let sgd = LearnerConfig {
        optimizer: Optimizer::Sgd,
        learning_rate: 5e-2,
        ..settings()
    };
    for (name, model, settings, actions) in [
        ("nothing", &model(), &quick, &[9][..]),
        ("nothing, with SGD", &model(), &sgd, &[9]),
        ("pooling", &pooling, &quick, &[9, 128]),
        ("outcomes", &outcomes, &quick, &[9, 128]),
        ("all", &all_parts(&model()), &quick, &[9, 128]),
    ] {
        for &actions in actions {
            let mut trainer = trainer(&layout(actions), model, settings, 1);
            let [first, last] = train_on_one_batch(&mut trainer, actions, 200);
            let figures = format!("{name}, {actions} actions: {first:?} {last:?}");
            // The policy is nearly uniform at first.
            assert!(
                (first.of("policy") - f64::from(actions).ln()).abs() < 0.3,
                "{figures}"
            );
            let above = |report: &StepReport| report.of("policy") - report.target_entropy;
            assert!(above(&last) < 0.3 * above(&first), "{figures}");
            assert!(last.of("value") < 0.1 * first.of("value"), "{figures}");
            let has_outcomes = model.value_head == ValueHead::Wdl;
            assert_eq!(first.losses.len(), if has_outcomes { 3 } else { 2 }, "{figures}");
            if has_outcomes {
                assert!((first.of("value") - 3f64.ln()).abs() < 0.2, "{figures}");
                let error = "value_squared_error";
                assert!(last.of(error) < 0.2 * first.of(error), "{figures}");
            }
            let sum = last.of("policy") + last.of("value");
            assert!((last.loss - sum).abs() < 1e-4, "{figures}");
        }
    }
}

/// The value head of AlphaZero and dlchess: a 1×1 convolution to one plane, and a hidden layer over its squares. Its export is proven.
#[test]
fn one_plane_of_the_value_head_is_one_number_for_each_square() {
    let layout = layout(9);
    let model = ModelConfig {
        value_channels: 1,
        ..model()
    };
    let trainer = trainer(&layout, &model, &settings(), 1);
    let file = export(&trainer.network, &layout, 0).unwrap();
    let rows = batch(&layout, 30, 1, 0).rows;
    let prover = Prover::load().unwrap();
    prover.prove(&file, &trainer.network, &layout, &rows).unwrap();
    let Folded::Tower(weights) = trainer.network.fold().unwrap() else {
        panic!("a tower was made");
    };
    let inputs = |name: &str| weights.layer(name).shape.inputs;
    assert_eq!(weights.layer("value.conv").shape.outputs, 1);
    assert_eq!(inputs("value.hidden"), weights.shape.squares());
}

/// All parts together in bf16: the losses are near those of f32, and they fall.
#[test]
fn every_part_is_trained_in_bf16_too() {
    let model = all_parts(&model());
    let mut exact = trainer(&layout(128), &model, &settings(), 1);
    let mut rounded = trainer(&layout(128), &model, &settings(), 1);
    rounded.set_precision(Precision::Bf16);
    let [first, _] = train_on_one_batch(&mut exact, 128, 0);
    let [first_rounded, last] = train_on_one_batch(&mut rounded, 128, 60);
    assert!(
        (first.loss - first_rounded.loss).abs() < 0.05,
        "{first:?} {first_rounded:?}"
    );
    assert!(last.loss < 0.8 * first_rounded.loss, "{first_rounded:?} {last:?}");
}

#[test]
fn probabilities_are_exported_and_proven() {
    let layout = layout(9);
    let mut trainer = trainer(&layout, &all_parts(&model()), &settings(), 1);
    for number in 0..6 {
        let batch = batch_for(&trainer, &layout, 32, 5, number);
        trainer.step(&batch).unwrap();
    }
    let rows = batch(&layout, 30, 1, 0).rows;
    let prover = Prover::load().unwrap();
    let file = export(&trainer.network, &layout, 6).unwrap();
    prover.prove(&file, &trainer.network, &layout, &rows).unwrap();
    let Folded::Tower(weights) = trainer.network.fold().unwrap() else {
        panic!("a tower was trained");
    };
    let metadata = Metadata {
        layout: layout.clone(),
        step: 6,
    };
    let tamper = |change: &dyn Fn(&mut onnx::TowerWeights)| {
        let mut weights = (*weights).clone();
        change(&mut weights);
        let file = onnx::build(&weights, &metadata, Input::Rows).unwrap();
        prover.prove(&file, &trainer.network, &layout, &rows).unwrap_err()
    };
    // Win and loss both become likelier: the value hardly changes, the probabilities do.
    let error = tamper(&|weights| {
        let output = weights.layer_mut("value.output").unwrap();
        output.bias[0] += 0.01;
        output.bias[2] += 0.01;
    });
    assert!(error.to_string().contains("differ in"), "{error}");
    let error = tamper(&|weights| {
        weights.shape.outcomes = false;
        let output = weights.layer_mut("value.output").unwrap();
        output.shape.outputs = 1;
        output.weights.truncate(output.shape.inputs);
        output.bias.truncate(1);
    });
    assert!(error.to_string().contains("`wdl`"), "{error}");
}

#[test]
fn targets_of_outcomes_are_mixed_and_scores_are_refused() {
    let layout = layout(9);
    let wdl = ModelConfig {
        value_head: ValueHead::Wdl,
        ..model()
    };
    let shape = NetworkShape::new(&wdl, &layout).unwrap();
    let packer = Packer {
        root_value_share: 0.25,
        has_outcomes: shape.has_outcomes(),
        ..packer(&layout)
    };
    let mut wire = wire_batch(&layout, 3, 5, 0);
    wire.results = vec![1.0, -1.0, 0.0];
    wire.root_values = vec![0.5, 0.5, -1.0];
    let packed = packer.pack(&wire).unwrap();
    assert_eq!(
        packed.outcomes.unwrap(),
        [0.875, 0.125, 0.0, 0.125, 0.125, 0.75, 0.0, 0.75, 0.25]
    );
    assert_eq!(packed.results, [0.875, -0.625, -0.25]);
    wire.results[1] = 0.9;
    let error = packer.pack(&wire).unwrap_err();
    assert!(
        matches!(error, BatchError::Sample { sample: 1, .. })
            && error.to_string().contains("model.value_head"),
        "{error}"
    );
}
