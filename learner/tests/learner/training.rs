//! Training steps: training resumes bit for bit, and losses that are not finite are refused.

use crate::common::{all_parts, batch, batch_for, layout, model, settings, sized, trainer};
use config::{LearnerConfig, ModelConfig, Optimizer};
use learner::{
    data::{batches::ValidationBatches, packer::Packer},
    network::{Pass, inputs::Feeder},
    publishing::snapshot::Snapshot,
    torch::{tensor_files, to_host},
    training::train::{TrainError, Trainer, Validation},
};

fn train(trainer: &mut Trainer, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let batch = batch_for(trainer, &layout(9), 32, 5, number);
        trainer.step(&batch).unwrap();
    }
}
use tch::Device;

/// With this network, the first search of a run is UCT with equal priors and values of 0.
#[test]
fn the_first_network_is_exactly_uniform() {
    let all = all_parts(&model());
    let heads = [(0, 0), (73, 0), (1, 1)];
    for ((planes, globals), model) in heads
        .iter()
        .flat_map(|&head| [(head, model()), (head, all.clone())])
    {
        let layout = sized([8, 8], planes, globals);
        let trainer = trainer(&layout, &model, &settings(), 1);
        let rows = batch(&layout, 16, 1, 0).rows;
        let inputs = Feeder::new(&layout, Device::Cpu).unwrap().rows(&rows).unwrap();
        let outputs = tch::no_grad(|| trainer.network.forward(&inputs, Pass::EVALUATE).unwrap());
        let logits = to_host(outputs.head("policy").unwrap()).unwrap();
        assert_eq!(logits.len(), 16 * layout.actions as usize);
        assert!(logits.iter().all(|&logit| logit == 0.0));
        assert_eq!(to_host(&outputs.values).unwrap(), [0.0; 16]);
    }
}

#[test]
fn memorised_games_show_as_a_gap_to_held_out_games() {
    let mut trainer = trainer(&layout(9), &model(), &settings(), 1);
    let measured = ValidationBatches {
        trained: batch(&layout(9), 32, 5, 0),
        held_out: batch(&layout(9), 256, 5, 1),
    };
    let before = Validation::measure(&trainer, &measured).unwrap();
    assert!(before.gap().policy.abs() < 0.05, "{before:?}");
    for _ in 0..200 {
        trainer.step(&measured.trained).unwrap();
    }
    let after = Validation::measure(&trainer, &measured).unwrap();
    assert!(after.trained.policy < 0.3 * before.trained.policy, "{after:?}");
    assert!(after.gap().policy > 0.3 && after.gap().value > 0.1, "{after:?}");
    // A measurement changes nothing.
    assert_eq!(Validation::measure(&trainer, &measured).unwrap(), after);
}

#[test]
fn training_resumes_bit_for_bit() {
    for (optimizer, model) in [(Optimizer::Sgd, model()), (Optimizer::Adamw, all_parts(&model()))] {
        let settings = LearnerConfig {
            optimizer,
            ..settings()
        };
        let mut through = trainer(&layout(9), &model, &settings, 1);
        train(&mut through, 0..10);

        let mut before = trainer(&layout(9), &model, &settings, 1);
        train(&mut before, 0..5);
        let half = Snapshot::take(&before, 1).unwrap();
        drop(before);
        // The weights are other ones at first, so that all of them must come from the snapshot.
        let mut after = trainer(&layout(9), &model, &settings, 2);
        half.restore(&mut after).unwrap();
        assert_eq!(after.progress.step, 5);
        assert_eq!(Snapshot::take(&after, 1).unwrap(), half);
        train(&mut after, 5..10);

        let (through, after) = (
            Snapshot::take(&through, 1).unwrap(),
            Snapshot::take(&after, 1).unwrap(),
        );
        assert!(
            through == after,
            "{optimizer:?}: the weights or the optimiser differ"
        );
        assert_ne!(half.weights, after.weights);
        assert_eq!(after.state.progress.draws.samples, 320);
        assert_eq!(after.state.progress.draws.next_batch, 10);
    }
}

#[test]
fn a_snapshot_that_does_not_fit_changes_nothing() {
    let mut small = trainer(&layout(9), &model(), &settings(), 1);
    let before = Snapshot::take(&small, 1).unwrap();
    let wider = ModelConfig {
        filters: 16,
        ..model()
    };
    let other = Snapshot::take(&trainer(&layout(9), &wider, &settings(), 1), 1).unwrap();
    let error = other.restore(&mut small).unwrap_err();
    assert!(error.to_string().contains("weights.safetensors"), "{error}");
    for change in ["missing", "unknown"] {
        let mut named = tensor_files::read(&before.weights).unwrap();
        if change == "missing" {
            named.pop();
        } else {
            named[0].name = "nobody".into();
        }
        let broken = Snapshot {
            weights: tensor_files::write(&named).unwrap().into(),
            ..before.clone()
        };
        assert!(broken.restore(&mut small).is_err());
    }
    assert_eq!(Snapshot::take(&small, 1).unwrap(), before);
}

#[test]
fn a_changed_optimiser_begins_anew_with_the_same_weights() {
    let mut adam = trainer(&layout(9), &model(), &settings(), 1);
    train(&mut adam, 0..3);
    let snapshot = Snapshot::take(&adam, 1).unwrap();
    let sgd = LearnerConfig {
        optimizer: Optimizer::Sgd,
        ..settings()
    };
    let mut other = trainer(&layout(9), &model(), &sgd, 2);
    snapshot.restore(&mut other).unwrap();
    let taken = Snapshot::take(&other, 1).unwrap();
    assert_eq!(taken.weights, snapshot.weights);
    assert_eq!((taken.state.progress.step, taken.state.optimizer.updates), (3, 0));
}

#[test]
fn a_step_that_is_not_finite_changes_no_weight() {
    let mut trainer = trainer(&layout(9), &model(), &settings(), 1);
    train(&mut trainer, 0..2);
    let before = Snapshot::take(&trainer, 1).unwrap();
    let mut bad = batch(&layout(9), 32, 5, 2);
    bad.results[7] = f32::NAN;
    assert!(matches!(
        trainer.step(&bad),
        Err(TrainError::Diverged { step: 3, .. })
    ));
    let after = Snapshot::take(&trainer, 1).unwrap();
    assert_eq!(after.optimizer, before.optimizer);
    assert_eq!(after.state, before.state);
    let trained = |snapshot: &Snapshot| {
        let mut list = tensor_files::read(&snapshot.weights).unwrap();
        list.retain(|tensor| !tensor.name.contains(".mean") && !tensor.name.contains(".variance"));
        list
    };
    assert_eq!(trained(&after), trained(&before));
}

#[test]
fn gradients_are_clipped_and_unsearched_samples_train_the_value_only() {
    let gentle = LearnerConfig {
        max_gradient_norm: 1e-9,
        optimizer: Optimizer::Sgd,
        weight_decay: 0.0,
        ..settings()
    };
    let mut trainer = trainer(&layout(9), &model(), &gentle, 1);
    let before = Snapshot::take(&trainer, 1).unwrap();
    let mut unsearched = crate::common::wire_batch(&layout(9), 8, 5, 0);
    unsearched.visit_counts = vec![0; 8];
    unsearched.visit_actions.clear();
    unsearched.visits.clear();
    let unsearched = crate::common::packer(&layout(9)).pack(&unsearched).unwrap();
    let report = trainer.step(&unsearched).unwrap();
    assert_eq!((report.of("policy"), report.target_entropy), (0.0, 0.0));
    assert!(report.of("value") > 0.0 && report.gradient_norm > 1e-6);
    let after = Snapshot::take(&trainer, 1).unwrap();
    let moved = tensor_files::read(&before.weights)
        .unwrap()
        .into_iter()
        .zip(tensor_files::read(&after.weights).unwrap())
        .filter(|(tensor, _)| !tensor.name.contains(".mean") && !tensor.name.contains(".variance"))
        .flat_map(|(before, after)| {
            assert_eq!(before.name, after.name);
            before.numbers.into_iter().zip(after.numbers).collect::<Vec<_>>()
        })
        .map(|(before, after)| f64::from(before - after).powi(2))
        .sum::<f64>()
        .sqrt();
    assert!(moved < 1e-8, "moved by {moved}");
}

#[test]
fn the_published_network_is_the_average_of_the_trained_ones() {
    let settings = LearnerConfig {
        average_decay: 0.75,
        ..settings()
    };
    let mut trainer = trainer(&layout(9), &model(), &settings, 1);
    let numbers = |network: &learner::network::Network| -> Vec<f64> {
        let tensors = network.variables.to_host().unwrap();
        tensors
            .iter()
            .flat_map(|tensor| tensor.numbers.iter().map(|&number| f64::from(number)))
            .collect()
    };
    let mut expected = numbers(&trainer.network);
    assert_eq!(numbers(trainer.published()), expected);
    for step in 1..=8 {
        trainer.step(&batch(&layout(9), 32, 5, step)).unwrap();
        // The expected average: the plain mean at first, then the moving average.
        let share = f64::max(0.25, 1.0 / step as f64);
        for (average, now) in expected.iter_mut().zip(numbers(&trainer.network)) {
            *average += share * (now - *average);
        }
        let largest = numbers(trainer.published())
            .iter()
            .zip(&expected)
            .map(|(found, expected)| (found - expected).abs() / expected.abs().max(1.0))
            .fold(0.0, f64::max);
        assert!(largest < 1e-5, "step {step}: {largest}");
    }
    assert_ne!(numbers(trainer.published()), numbers(&trainer.network));
    let without = LearnerConfig {
        average_decay: 0.0,
        ..settings
    };
    let mut plain = crate::common::trainer(&layout(9), &model(), &without, 2);
    Snapshot::take(&trainer, 1).unwrap().restore(&mut plain).unwrap();
    assert_eq!(numbers(plain.published()), numbers(&trainer.network));
}

#[test]
fn value_targets_mix_results_with_root_values_of_searched_positions() {
    let mut wire = crate::common::wire_batch(&layout(9), 4, 5, 0);
    wire.results = vec![1.0, -1.0, 0.0, 1.0];
    wire.root_values = vec![0.5, 0.5, 0.5, 0.5];
    wire.visit_counts[3] = 0;
    wire.visit_actions.truncate(6);
    wire.visits.truncate(6);
    let packer = crate::common::packer(&layout(9));
    assert_eq!(packer.pack(&wire).unwrap().results, wire.results);
    let mixing = Packer {
        root_value_share: 0.25,
        ..packer
    };
    assert_eq!(mixing.pack(&wire).unwrap().results, [0.875, -0.625, 0.125, 1.0]);
    wire.root_values[1] = f32::NAN;
    assert!(
        mixing
            .pack(&wire)
            .unwrap_err()
            .to_string()
            .contains("root value is NaN")
    );
}

#[test]
fn invalid_samples_are_left_out_of_their_batch() {
    let mut wire = crate::common::wire_batch(&layout(9), 6, 5, 0);
    let packer = crate::common::packer(&layout(9));
    let (whole, invalid) = packer.pack_valid(&wire).unwrap();
    assert_eq!((whole, invalid.len()), (packer.pack(&wire).unwrap(), 0));
    wire.root_values[1] = f32::NAN;
    wire.rows[0] = 4_000_000_000;
    let last = wire.visit_actions.len() - 1;
    wire.visit_actions[last] = 1_000_000;
    let (packed, invalid) = packer.pack_valid(&wire).unwrap();
    assert_eq!((packed.positions, invalid.len()), (3, 3));
    assert_eq!(packed.results, [2, 3, 4].map(|sample| wire.results[sample]));
    assert_eq!(packed.row_ends.len(), 3);
    // Without a valid sample the batch is unusable.
    wire.root_values.fill(f32::NAN);
    assert!(packer.pack_valid(&wire).is_err());
}
