//! Exports are proven by ONNX Runtime, and the proof fails when anything was tampered with.

use std::path::Path;

use crate::common::{batch, layout, model, settings, trainer};
use games::RowLayout;
use learner::{
    export::export,
    network::Folded,
    proof::{ProofError, Prover},
    train::Trainer,
};
use onnx::{Input, Metadata, PolicyHead, TowerWeights};
use service::config::ModelConfig;

/// Some steps, so that no normalisation is the identity and no block is empty.
fn trained(layout: &RowLayout, model: &ModelConfig) -> Trainer {
    let mut trainer = trainer(layout, model, &settings(), 3);
    for number in 0..8 {
        trainer.step(&batch(layout, 32, 9, number)).unwrap();
    }
    trainer
}

#[test]
fn every_form_of_network_is_exported_as_it_is() {
    let prover = Prover::load(Path::new("")).unwrap();
    for (actions, squeeze_excitation) in [(9, 0), (9, 3), (73 * 64, 2)] {
        let layout = layout(actions);
        let model = ModelConfig {
            blocks: 2,
            squeeze_excitation,
            ..model()
        };
        let trainer = trained(&layout, &model);
        let file = export(trainer.network(), &layout, trainer.progress.step).unwrap();
        let rows = batch(&layout, 50, 1, 0).rows;
        let agreement = prover.prove(&file, trainer.network(), &layout, &rows).unwrap();
        assert_eq!(agreement.positions, 50);
        let metadata = onnx::metadata_of(&file).unwrap();
        assert_eq!((metadata.step, metadata.layout), (8, layout));
    }
}

#[test]
fn a_wrong_number_anywhere_is_found() {
    let prover = Prover::load(Path::new("")).unwrap();
    let layout = layout(9);
    let model = ModelConfig {
        squeeze_excitation: 3,
        ..model()
    };
    let trainer = trained(&layout, &model);
    let rows = batch(&layout, 50, 1, 0).rows;
    let tamper = |change: &dyn Fn(&mut TowerWeights), layout_of_file: &RowLayout| {
        let Folded::Tower(weights) = trainer.network().fold().unwrap() else {
            panic!("a tower was trained");
        };
        let mut weights = *weights;
        change(&mut weights);
        let metadata = Metadata {
            layout: layout_of_file.clone(),
            step: 8,
        };
        let file = onnx::build(&weights, &metadata, Input::Rows).unwrap();
        prover.prove(&file, trainer.network(), &layout, &rows)
    };
    tamper(&|_| {}, &layout).unwrap();
    let changes: [&dyn Fn(&mut TowerWeights); 6] = [
        &|weights| weights.input.bias[0] += 0.05,
        &|weights| {
            weights.blocks[0]
                .first
                .weights
                .iter_mut()
                .for_each(|w| *w *= 1.05)
        },
        &|weights| {
            if let Some(gate) = &mut weights.blocks[0].gate {
                gate.excite.bias.iter_mut().for_each(|bias| *bias += 0.5);
            }
        },
        &|weights| {
            if let PolicyHead::Dense { linear, .. } = &mut weights.policy {
                linear.bias[4] += 0.01;
            }
        },
        &|weights| weights.value.hidden.weights.reverse(),
        &|weights| weights.value.output.bias[0] += 0.001,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let error = tamper(change, &layout).unwrap_err();
        assert!(matches!(error, ProofError::Differs { .. }), "{number}: {error}");
    }
    // The right weights behind a wrong expansion.
    let mut swapped = layout.clone();
    if let games::RowForm::Planes(stack) = &mut swapped.form {
        stack.constants[0].divisor = 50;
    }
    let error = tamper(&|_| {}, &swapped).unwrap_err();
    assert!(matches!(error, ProofError::Differs { .. }), "{error}");
}

#[test]
fn what_is_not_finite_is_not_exported() {
    let layout = layout(9);
    let mut trainer = trained(&layout, &model());
    let rows = batch(&layout, 5, 1, 0).rows;
    let good = export(trainer.network(), &layout, 8).unwrap();
    let mut tensors = trainer.network().variables().to_host().unwrap();
    tensors[0].numbers[0] = f32::NAN;
    trainer.network_mut().variables_mut().load(&tensors).unwrap();
    assert!(export(trainer.network(), &layout, 8).unwrap_err().is_not_finite());
    let prover = Prover::load(Path::new("")).unwrap();
    let error = prover
        .prove(&good, trainer.network(), &layout, &rows)
        .unwrap_err();
    assert!(
        matches!(error, ProofError::NotFinite { by: "libtorch", .. }),
        "{error}"
    );
}

#[test]
fn what_is_no_model_and_no_runtime_says_so() {
    let prover = Prover::load(Path::new("")).unwrap();
    let layout = layout(9);
    let trainer = trainer(&layout, &model(), &settings(), 3);
    let rows = batch(&layout, 5, 1, 0).rows;
    let error = prover
        .prove(b"nonsense", trainer.network(), &layout, &rows)
        .unwrap_err();
    assert!(matches!(error, ProofError::Run(_)), "{error}");
    assert!(matches!(
        prover.prove(b"", trainer.network(), &layout, &[]),
        Err(ProofError::NoRows)
    ));
}
