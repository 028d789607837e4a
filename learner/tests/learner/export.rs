//! Exports are proven by ONNX Runtime, and the proof fails if any part of the export is changed.

use crate::common::{SIDES, all_parts, batch, batch_for, layout, model, settings, sized, trainer};
use config::{ModelConfig, ValueHead};
use games::RowLayout;
use learner::{
    network::Folded,
    publishing::export::{ExportError, Prover, export},
    training::train::Trainer,
};
use onnx::{Input, Metadata, TowerWeights, proto::ModelProto, tower_of};
use proptest::prelude::*;
use prost::Message as _;

/// Trains some steps, so that no normalisation and no block is the identity.
fn trained(layout: &RowLayout, model: &ModelConfig) -> Trainer {
    let mut trainer = trainer(layout, model, &settings(), 3);
    for number in 0..8 {
        trainer.step(&batch_for(&trainer, layout, 32, 9, number)).unwrap();
    }
    trainer
}

/// Returns the names of a file's outputs.
fn outputs(file: &[u8]) -> Vec<String> {
    let graph = ModelProto::decode(file).unwrap().graph.unwrap();
    let names = graph.output.iter().map(|output| output.name().to_owned());
    names.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn exports_of_every_combination_of_parts_are_proven(
        (planes, globals) in prop::sample::select(vec![(0_u32, 0_u32), (2, 0), (73, 0), (1, 1)]),
        blocks in 1_u32..5,
        filters in 2_u32..12,
        pooled in 0.0_f64..1.0,
        has_outcomes: bool,
    ) {
        let layout = sized([8, 8], planes, globals);
        let model = ModelConfig {
            blocks,
            filters,
            global_pooling: (pooled * f64::from(filters)) as u32,
            value_head: if has_outcomes { ValueHead::Wdl } else { ValueHead::Scalar },
            ..model()
        };
        let mut trainer = trainer(&layout, &model, &settings(), 3);
        for number in 0..3 {
            let batch = batch_for(&trainer, &layout, 16, 9, number);
            trainer.step(&batch).unwrap();
        }
        let file = export(&trainer.network, &layout, 3).unwrap();
        let rows = batch(&layout, 20, 1, 0).rows;
        let prover = Prover::load().unwrap();
        let agreement = prover.prove(&file, &trainer.network, &layout, &rows).unwrap();
        prop_assert_eq!(agreement.positions, 20);
        let metadata = onnx::metadata_of(&file).unwrap();
        prop_assert_eq!((metadata.step, metadata.layout), (3, layout));
        let expected = ["policy_logits", "value", "wdl"];
        prop_assert_eq!(outputs(&file), &expected[..if has_outcomes { 3 } else { 2 }]);
    }
}

#[test]
fn exports_for_boards_of_any_size_are_proven() {
    let prover = Prover::load().unwrap();
    for sides in SIDES {
        for (planes, globals) in [(0, 0), (2, 0), (1, 2)] {
            let layout = sized(sides, planes, globals);
            let trainer = trained(&layout, &all_parts(&model()));
            let file = export(&trainer.network, &layout, 8).unwrap();
            let rows = batch(&layout, 20, 1, 0).rows;
            let agreement = prover.prove(&file, &trainer.network, &layout, &rows);
            assert_eq!(agreement.unwrap().positions, 20, "{sides:?} {planes} {globals}");
            // The actions of the whole board have learned something too.
            let (weights, _) = tower_of(&file).unwrap();
            let of_board = &weights.layer("policy.globals").weights;
            assert_eq!(of_board.iter().any(|&weight| weight != 0.0), globals > 0);
        }
    }
}

fn layer<'a>(weights: &'a mut TowerWeights, name: &str) -> &'a mut onnx::Layer {
    weights.layer_mut(name).unwrap()
}

#[test]
fn a_wrong_number_anywhere_is_found() {
    let prover = Prover::load().unwrap();
    let layout = layout(9);
    let model = ModelConfig {
        global_pooling: 3,
        ..model()
    };
    let trainer = trained(&layout, &model);
    let rows = batch(&layout, 50, 1, 0).rows;
    let tamper = |change: &dyn Fn(&mut TowerWeights), layout_of_file: &RowLayout| {
        let Folded::Tower(weights) = trainer.network.fold().unwrap() else {
            panic!("a tower was trained");
        };
        let mut weights = *weights;
        change(&mut weights);
        let metadata = Metadata {
            layout: layout_of_file.clone(),
            step: 8,
        };
        let file = onnx::build(&weights, &metadata, Input::Rows).unwrap();
        prover.prove(&file, &trainer.network, &layout, &rows)
    };
    tamper(&|_| {}, &layout).unwrap();
    let changes: [&dyn Fn(&mut TowerWeights); 7] = [
        &|weights| {
            let pooled = &mut layer(weights, "block0.first.pooled").bias;
            pooled.iter_mut().for_each(|bias| *bias += 1.0);
        },
        &|weights| {
            // Means and maxima swapped.
            let rows = layer(weights, "block0.first.pooled.linear").weights.chunks_mut(6);
            rows.for_each(|row| row.rotate_left(3));
        },
        &|weights| layer(weights, "input").bias[0] += 0.05,
        &|weights| {
            let first = &mut layer(weights, "block0.first").weights;
            first.iter_mut().for_each(|weight| *weight *= 1.05);
        },
        &|weights| layer(weights, "policy.linear").bias[4] += 0.01,
        &|weights| layer(weights, "value.hidden").weights.reverse(),
        &|weights| layer(weights, "value.output").bias[0] += 0.001,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let error = tamper(change, &layout).unwrap_err();
        assert!(error.to_string().contains("differ in"), "{number}: {error}");
    }
    // Correct weights, wrong expansion.
    let mut swapped = layout.clone();
    if let games::RowForm::Planes(stack) = &mut swapped.form {
        stack.constants[0].divisor = 50;
    }
    let error = tamper(&|_| {}, &swapped).unwrap_err();
    assert!(error.to_string().contains("differ in"), "{error}");
}

#[test]
fn a_network_that_is_not_finite_is_not_exported() {
    let layout = layout(9);
    let mut trainer = trained(&layout, &model());
    let rows = batch(&layout, 5, 1, 0).rows;
    let good = export(&trainer.network, &layout, 8).unwrap();
    let mut tensors = trainer.network.variables.to_host().unwrap();
    tensors[0].numbers[0] = f32::NAN;
    trainer.network.variables.load(&tensors).unwrap();
    let error = export(&trainer.network, &layout, 8).unwrap_err();
    assert!(matches!(error, ExportError::NotFinite(_)), "{error}");
    let prover = Prover::load().unwrap();
    let error = prover.prove(&good, &trainer.network, &layout, &rows).unwrap_err();
    assert!(matches!(error, ExportError::NotFinite(_)), "{error}");
}

#[test]
fn an_invalid_model_and_an_invalid_runtime_are_errors() {
    let prover = Prover::load().unwrap();
    let layout = layout(9);
    let trainer = trainer(&layout, &model(), &settings(), 3);
    let rows = batch(&layout, 5, 1, 0).rows;
    let error = prover
        .prove(b"nonsense", &trainer.network, &layout, &rows)
        .unwrap_err();
    assert!(matches!(error, ExportError::Refused(_)), "{error}");
    let error = prover.prove(b"", &trainer.network, &layout, &[]).unwrap_err();
    assert!(error.to_string().contains("no position to prove"), "{error}");
}
