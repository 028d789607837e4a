//! The network of the generator game: forward pass, gradients, resumption bit for bit, packed batches.

use crate::{
    common::{Change, assert_refused, generator, model, settings, trainer},
    reference::fish_eye::{NetworkInput, evaluate},
};
use config::{LearnerConfig, ModelConfig, Optimizer};
use games::{
    Game as _,
    generator::{ClanPosition, Encoding, Example, Examples, GeneratorGame, Problem, moves::MOVES},
};
use learner::{
    data::packer::Packer,
    network::{Folded, Pass, inputs::Feeder},
    publishing::{
        export::{Prover, export, with_pairs},
        snapshot::Snapshot,
    },
    torch::{tensor_files, to_host},
    training::train::Trainer,
};
use onnx::{
    fish_eye,
    model::{PAIRS_KEY, entry_of},
};
use tch::Device;

/// Largest allowed difference from the definition, as a share of the range, or of 1 if that is more.
const TOLERANCE: f32 = 1e-5;

fn fresh(settings: &LearnerConfig, seed: u64) -> Trainer {
    trainer(&GeneratorGame::layout(Encoding::Plain), &model(), settings, seed)
}

/// Returns a trainer of a network with separate encoders for policy and value. With fewer filters all views of roots can fall on the flat
/// side of a ReLU.
fn fresh_two(encoding: Encoding, settings: &LearnerConfig, seed: u64) -> Trainer {
    let model = ModelConfig {
        shared: false,
        filters: 64,
        ..model()
    };
    trainer(&GeneratorGame::layout(encoding), &model, settings, seed)
}

fn trained(encoding: Encoding, mut trainer: Trainer) -> Trainer {
    for number in 0..8 {
        trainer.step(&generator::batch(encoding, 32, 9, number)).unwrap();
    }
    trainer
}

fn largest_difference(left: &[f32], right: &[f32]) -> f32 {
    assert_eq!(left.len(), right.len());
    let pairs = left.iter().zip(right);
    pairs
        .map(|(left, right)| (left - right).abs())
        .fold(0.0, f32::max)
}

#[test]
fn libtorch_onnx_runtime_and_the_definition_agree() {
    let encoding = Encoding::Plain;
    for trainer in [fresh(&settings(), 3), fresh_two(encoding, &settings(), 3)] {
        agree(encoding, &trained(encoding, trainer));
    }
}

#[test]
fn libtorch_onnx_runtime_and_the_definition_agree_on_examples() {
    let encoding = Encoding::Examples;
    let trainer = trained(encoding, fresh_two(encoding, &settings(), 3));
    agree(encoding, &trainer);
    // The examples matter: without them the logits are others.
    let layout = GeneratorGame::layout(encoding);
    let rows = generator::batch(encoding, 48, 1, 0).rows;
    let mut bare = Vec::new();
    let (mut with, mut without) = (0, 0);
    for row in layout.split(&rows) {
        let mut position = ClanPosition::read(row).unwrap();
        match position.examples.len() {
            0 => without += 1,
            _ => with += 1,
        }
        position.examples = Examples::NONE;
        position.write(&mut bare);
    }
    assert!(
        with > 5 && without > 3,
        "{with} positions with examples, {without} without"
    );
    let feeder = Feeder::new(&layout, Device::Cpu).unwrap();
    let [shown, hidden] = [&rows, &bare].map(|rows| {
        let inputs = feeder.rows(rows).unwrap();
        let outputs = tch::no_grad(|| trainer.network.forward(&inputs, Pass::EVALUATE).unwrap());
        to_host(outputs.head("policy").unwrap()).unwrap()
    });
    assert!(largest_difference(&shown, &hidden) > 1e-3);
}

fn agree(encoding: Encoding, trainer: &Trainer) {
    let layout = GeneratorGame::layout(encoding);
    let rows = generator::batch(encoding, 48, 1, 0).rows;
    let inputs = Feeder::new(&layout, Device::Cpu).unwrap().rows(&rows).unwrap();
    let outputs = tch::no_grad(|| trainer.network.forward(&inputs, Pass::EVALUATE).unwrap());
    let (logits, values) = (
        to_host(outputs.head("policy").unwrap()).unwrap(),
        to_host(&outputs.values).unwrap(),
    );
    let Folded::FishEye(weights) = trainer.network.fold().unwrap() else {
        panic!("a fish-eye network was trained");
    };
    let (mut true_logits, mut true_values) = (Vec::new(), Vec::new());
    for row in layout.split(&rows) {
        let (logits, value) = evaluate(&weights, &NetworkInput::of(&ClanPosition::read(row).unwrap()));
        true_logits.extend(logits);
        true_values.push(value);
    }
    let bounds = |numbers: &[f32]| {
        let least = numbers.iter().copied().fold(f32::MAX, f32::min);
        numbers.iter().copied().fold(f32::MIN, f32::max) - least
    };
    assert!(bounds(&true_values) > 0.01 && bounds(&true_logits) > 1.0);
    assert!(largest_difference(&logits, &true_logits) < TOLERANCE * bounds(&true_logits).max(1.0));
    assert!(largest_difference(&values, &true_values) < TOLERANCE);

    let prover = Prover::load().unwrap();
    let file = export(&trainer.network, &layout, 8).unwrap();
    let agreement = prover.prove(&file, &trainer.network, &layout, &rows).unwrap();
    assert!(
        agreement.policy < TOLERANCE && agreement.value < TOLERANCE && agreement.positions == 48,
        "{agreement:?}"
    );
    let metadata = onnx::metadata_of(&file).unwrap();
    assert_eq!((metadata.step, &metadata.layout), (8, &layout));

    // Some of the samples were pairs, and the file says how many.
    let pairs = trainer.progress.pairs;
    assert!(pairs > 0 && pairs < trainer.progress.draws.samples, "{pairs}");
    let noted = with_pairs(file, &layout, pairs).unwrap();
    let entry = entry_of(&noted, PAIRS_KEY).unwrap();
    assert_eq!(entry, Some(pairs.to_string()));
    assert_eq!(onnx::metadata_of(&noted).unwrap(), metadata);

    // The proof finds every changed weight.
    let changes: [&dyn Fn(&mut onnx::FishEyeWeights); 4] = [
        &|weights| weights.layer_mut("embedding").unwrap().weights.reverse(),
        &|weights| weights.layer_mut("rollup.output").unwrap().bias[0] += 0.5,
        &|weights| weights.layer_mut("path").unwrap().weights.reverse(),
        &|weights| weights.layer_mut("value.output").unwrap().bias[0] += 0.01,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut wrong = (*weights).clone();
        change(&mut wrong);
        let file = fish_eye::build(&wrong, &metadata).unwrap();
        let error = prover.prove(&file, &trainer.network, &layout, &rows).unwrap_err();
        assert!(error.to_string().contains("differ in"), "{number}: {error}");
    }
}

#[test]
fn gradients_reach_every_variable() {
    let plain = LearnerConfig {
        optimizer: Optimizer::Sgd,
        weight_decay: 0.0,
        warmup_steps: 0,
        ..settings()
    };
    // Each layer has a weight and a bias; 14 layers and an embedding, or 22 layers and two embeddings. Each of two encoders of examples has
    // three layers.
    let (alone, examples) = (Encoding::Plain, Encoding::Examples);
    for (encoding, mut trainer, variables) in [
        (alone, fresh(&plain, 1), 1 + 2 * 14),
        (alone, fresh_two(alone, &plain, 1), 2 + 2 * 22),
        (examples, fresh_two(examples, &plain, 1), 2 + 2 * (22 + 2 * 3)),
    ] {
        let before = Snapshot::take(&trainer, 1).unwrap();
        trainer.step(&generator::batch(encoding, 64, 5, 0)).unwrap();
        let after = Snapshot::take(&trainer, 1).unwrap();
        let (before, after) = (
            tensor_files::read(&before.weights).unwrap(),
            tensor_files::read(&after.weights).unwrap(),
        );
        assert_eq!(before.len(), variables);
        for (before, after) in before.iter().zip(&after) {
            let moved = largest_difference(&before.numbers, &after.numbers);
            assert!(moved > 0.0, "{} does not learn", before.name);
        }
    }
}

#[test]
fn one_batch_is_learned_by_heart() {
    let settings = LearnerConfig {
        learning_rate: 1e-2,
        ..settings()
    };
    let mut trainer = fresh(&settings, 1);
    let batch = generator::batch(Encoding::Plain, 32, 5, 0);
    let first = trainer.step(&batch).unwrap();
    let candidates = batch.candidates.as_ref().unwrap().logits.len() as f64 / 32.0;
    // At first the policy is nearly uniform over a position's candidates, and the value nearly one half.
    assert!(
        (first.of("policy") - candidates.ln()).abs() < 0.5,
        "{first:?}, {candidates}"
    );
    assert!((first.of("value") - 2f64.ln()).abs() < 0.1, "{first:?}");
    let mut last = first.clone();
    for _ in 0..150 {
        last = trainer.step(&batch).unwrap();
    }
    assert!(last.of("policy") < 0.3 * first.of("policy"), "{first:?} {last:?}");
    let floor = batch
        .results
        .iter()
        .map(|&result| f64::from(result))
        .map(|result| -result * result.ln() - (1.0 - result) * (1.0 - result).ln())
        .sum::<f64>()
        / 32.0;
    assert!(
        last.of("value") > floor && last.of("value") < floor + 0.1 * (first.of("value") - floor),
        "{floor}: {first:?} {last:?}"
    );
}

#[test]
fn training_resumes_bit_for_bit() {
    let encoding = Encoding::Examples;
    let run = |trainer: &mut Trainer, numbers: std::ops::Range<u64>| {
        for number in numbers {
            trainer.step(&generator::batch(encoding, 24, 5, number)).unwrap();
        }
    };
    let mut through = fresh_two(encoding, &settings(), 1);
    run(&mut through, 0..6);
    let mut before = fresh_two(encoding, &settings(), 1);
    run(&mut before, 0..3);
    let half = Snapshot::take(&before, 1).unwrap();
    let mut after = fresh_two(encoding, &settings(), 2);
    half.restore(&mut after).unwrap();
    run(&mut after, 3..6);
    let after = Snapshot::take(&after, 1).unwrap();
    assert!(
        Snapshot::take(&through, 1).unwrap() == after,
        "the weights differ"
    );
    assert_ne!(half.weights, after.weights);
}

/// Each policy target has the place of its own imp and move, under any permutation of the colours.
#[test]
fn candidates_are_the_moves_that_the_imps_have() {
    let encoding = Encoding::Examples;
    let layout = GeneratorGame::layout(encoding);
    let wire = generator::wire_batch(encoding, 60, 2, 3);
    let symmetries = GeneratorGame::row_symmetries(encoding);
    let packed = Packer::new(layout.clone(), symmetries, 7).pack(&wire).unwrap();
    assert_ne!(packed.rows, wire.rows, "no sample has other colours");
    let candidates = packed.candidates.as_ref().unwrap();
    let (mut imps, mut seen) = (0, 0);
    for (sample, row) in layout.split(&packed.rows).enumerate() {
        let clan = ClanPosition::read(row).unwrap().clan;
        let expected: Vec<i64> = (0..clan.len())
            .flat_map(|imp| (0..MOVES).map(move |made| (imp, made)))
            .filter(|&(imp, made)| clan.mask(imp) >> made & 1 != 0)
            .map(|(imp, made)| ((imps + imp) * MOVES + made) as i64)
            .collect();
        let own = seen..seen + expected.len();
        assert_eq!(candidates.logits[own.clone()], expected);
        let places: Vec<i64> = (0..expected.len())
            .map(|place| (sample * candidates.width + place) as i64)
            .collect();
        assert_eq!(candidates.places[own], places);
        let at = packed.policy.at[sample] as usize - sample * candidates.width;
        let action = expected[at] as usize - imps * MOVES;
        let wanted = wire.visit_actions[sample] as usize;
        let colors = 25..35;
        if colors.contains(&(wanted % MOVES)) {
            assert!(colors.contains(&(action % MOVES)) && action / MOVES == wanted / MOVES);
        } else {
            assert_eq!(action, wanted);
        }
        imps += clan.len();
        seen += expected.len();
    }
    assert_eq!(candidates.logits.len(), seen);
    let sept = packed.inputs.iter().find(|input| input.name == fish_eye::SEPT);
    assert_eq!(sept.unwrap().numbers.len(), imps);
}

#[test]
fn invalid_samples_are_named() {
    let lengths: [(&str, Change<'_>); 3] = [
        ("row_lengths", &|batch| batch.row_lengths.clear()),
        ("rows", &|batch| batch.row_lengths[2] += 1),
        ("rows", &|batch| batch.row_lengths[0] = u32::MAX),
    ];
    let samples: [(usize, Change<'_>); 6] = [
        // Examples in a row of a representation without them.
        (0, &|batch| {
            let first = batch.row_lengths[0] as usize;
            let mut position = ClanPosition::read(&batch.rows[..first]).unwrap();
            let grid = position.clan.render();
            let example = Example {
                input: grid,
                output: grid,
            };
            position.problem = Problem::Pair(grid, grid);
            position.examples = Examples::new(vec![example]).unwrap();
            let mut row = Vec::new();
            position.write(&mut row);
            batch.row_lengths[0] = row.len() as u32;
            batch.rows.splice(..first, row);
        }),
        // The faults are: an invalid tree, lengths of other rows, a move that the imp does not have, an imp that does not exist, and a
        // result below the lowest value.
        (0, &|batch| batch.rows[2] = 0),
        (0, &|batch| {
            batch.row_lengths[0] -= 1;
            batch.row_lengths[1] += 1;
        }),
        (1, &|batch| batch.visit_actions[1] = 3 * MOVES as u32 + 2),
        (2, &|batch| batch.visit_actions[2] = 95 * MOVES as u32),
        (3, &|batch| batch.results[3] = -0.1),
    ];
    let batch = generator::wire_batch(Encoding::Plain, 4, 1, 0);
    assert_refused(&generator::packer(Encoding::Plain), &batch, &lengths, &samples);
}
