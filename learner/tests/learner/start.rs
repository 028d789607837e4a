//! A run that begins with the weights of a file continues from what the file computes.

use std::fs;

use crate::common::{
    all_parts, batch_for, layout, model,
    run::{Learner, Place},
    settings, trainer,
};
use checkpoints::{LATEST, MODEL};
use config::{LearnerConfig, ModelConfig};
use games::RowLayout;
use learner::{
    network::Folded,
    publishing::export::{Prover, export},
    training::train::Trainer,
};
use onnx::{TowerWeights, half::to_half, tower_of};

/// Trains a network with every part for some steps, and returns its file and its weights.
fn trained(layout: &RowLayout, model: &ModelConfig, settings: &LearnerConfig) -> (Vec<u8>, TowerWeights) {
    let mut trainer = trainer(layout, model, settings, 3);
    for number in 0..8 {
        trainer.step(&batch_for(&trainer, layout, 32, 9, number)).unwrap();
    }
    let file = export(&trainer.network, layout, 8).unwrap();
    let (weights, metadata) = tower_of(&file).unwrap();
    assert_eq!(metadata.step, 8);
    (file, weights)
}

fn fold(trainer: &Trainer) -> TowerWeights {
    match trainer.published().fold().unwrap() {
        Folded::Tower(weights) => *weights,
        Folded::FishEye(_) => panic!("a tower was trained"),
    }
}

fn assert_close(found: &TowerWeights, expected: &TowerWeights, tolerance: f32) {
    let distance = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    for (found, expected) in found.layers.iter().zip(&expected.layers) {
        assert_eq!(found.shape, expected.shape);
        assert!(distance(&found.weights, &expected.weights) < tolerance);
        assert!(distance(&found.bias, &expected.bias) < tolerance);
    }
}

#[test]
fn the_first_network_computes_what_the_file_computes_before_and_after_its_statistics_are_measured() {
    let prover = Prover::load().unwrap();
    for actions in [9, 128] {
        let layout = layout(actions);
        let (model, settings) = (all_parts(&model()), settings());
        let (file, weights) = trained(&layout, &model, &settings);
        let mut next = trainer(&layout, &model, &settings, 77);
        assert_ne!(fold(&next), weights);
        next.begin_with(&weights).unwrap();
        assert_close(&fold(&next), &weights, 1e-6);
        let batch = batch_for(&next, &layout, 64, 9, 50);
        // ONNX Runtime evaluates the file, and libtorch the network.
        prover
            .prove(&file, next.published(), &layout, &batch.rows)
            .unwrap();

        let before = next.fit(&batch).unwrap();
        next.calibrate(&batch).unwrap();
        prover
            .prove(&file, next.published(), &layout, &batch.rows)
            .unwrap();
        let after = next.fit(&batch).unwrap();
        assert!(
            (before.policy - after.policy).abs() < 1e-4,
            "{before:?} {after:?}"
        );
        assert!((before.value - after.value).abs() < 1e-4, "{before:?} {after:?}");

        // Training normalises by the batch's statistics, which are now the running ones, so its first losses are those of the file.
        let mut uncalibrated = trainer(&layout, &model, &settings, 77);
        uncalibrated.begin_with(&weights).unwrap();
        let [with, without] = [&mut next, &mut uncalibrated].map(|trainer| {
            let loss = trainer.step(&batch).unwrap().of("value");
            (loss - before.value).abs()
        });
        assert!(with < 1e-5 && without > 1e-4, "{with} {without}");
    }
}

#[test]
fn a_network_of_another_size_is_refused_with_the_differences() {
    let layout = layout(9);
    let (_, weights) = trained(&layout, &ModelConfig { blocks: 2, ..model() }, &settings());
    let larger = ModelConfig {
        blocks: 3,
        filters: model().filters + 4,
        ..model()
    };
    let mut next = trainer(&layout, &larger, &settings(), 1);
    let before = fold(&next);
    let error = next.begin_with(&weights).unwrap_err().to_string();
    assert!(
        error.contains("blocks is 2, [model] has 3; filters is"),
        "{error}"
    );
    assert_eq!(fold(&next), before);
}

/// The whole role: the first checkpoint has the weights of the file, and a restart resumes from the newest one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_begins_with_the_network_of_a_finished_one() {
    let place = Place::new(96).await;
    let learner = Learner::start(place.config_in("first"));
    learner.reaches(6).await;
    let repository = learner.repository.clone();
    learner.stop().await;
    let manifest = repository.resolve(LATEST).await.unwrap();
    let file = to_half(&repository.fetch(&manifest, MODEL).await.unwrap()).unwrap();
    let path = place.home.path().join("finished.onnx");
    fs::write(&path, &file).unwrap();

    let mut second = place.config_in("second");
    second.learner.start_from = path.display().to_string();
    let learner = Learner::start(second.clone());
    learner.reaches(0).await;
    let repository = learner.repository.clone();
    learner.stop().await;
    let versions = repository.list().await.unwrap();
    assert_eq!(versions[0].draft.step, 0);
    let begun = tower_of(&repository.fetch(&versions[0], MODEL).await.unwrap())
        .unwrap()
        .0;
    assert_close(&begun, &tower_of(&file).unwrap().0, 1e-6);

    // The file is not needed any more.
    fs::remove_file(&path).unwrap();
    place.store.insert(96);
    let learner = Learner::start(second);
    learner.reaches(12).await;
    learner.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_that_cannot_be_begun_with_is_refused_by_name() {
    for (start_from, reason) in [
        ("chess", "it plays chess on 8×8 squares, not paco-sako on 8×8"),
        ("generator", "the rows of generator are not planes"),
        (
            "paco-sako",
            "[model] must have the sizes of that network: blocks is 6, [model] has 1; filters is 72, [model] has 8",
        ),
        ("paco-sako@best", "unknown network"),
        ("http://localhost:1", "is an inference server, not a file"),
        ("nowhere/model.onnx", "cannot read nowhere/model.onnx"),
    ] {
        let place = Place::new(0).await;
        let mut config = place.config();
        config.learner.start_from = start_from.into();
        let message = Learner::start(config).fails().await;
        let beginning = format!("`learner.start_from`: cannot begin with {start_from}: ");
        assert!(message.starts_with(&beginning), "{message}");
        assert!(message.contains(reason), "{message}");
    }
}
