//! A small layout, and batches in it that a network can learn.
#![allow(dead_code, missing_docs)]

pub mod generator;
pub mod run;
pub mod store;

use config::{LearnerConfig, ModelConfig, ValueHead};
use games::{ConstantPlane, PlaneStack, PolicyHead, RowForm, RowLayout, RowSymmetries};
use learner::{
    data::{
        batches::{BatchError, HostBatch},
        packer::Packer,
    },
    network::NetworkShape,
    training::train::{StepReport, Trainer},
};
use proto::v1;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha20Rng;
use tch::Device;

/// Returns a layout of sparse planes, constant planes and a plane of ones, not in the tensor's order.
pub fn stack() -> PlaneStack {
    let constant = |name: &str, plane, divisor, max| ConstantPlane {
        name: name.into(),
        plane,
        divisor,
        max,
    };
    PlaneStack {
        height: 8,
        width: 8,
        entries: 6,
        planes: 7,
        sparse: vec![0, 2, 5],
        constants: vec![
            constant("counter", 4, 100, 100),
            constant("castling", 1, 1, 1),
            constant("third", 6, 3, 3),
        ],
        ones: vec![3],
    }
}

/// Returns the layout of [`stack`] for a game with this number of actions.
pub fn layout(actions: u32) -> RowLayout {
    RowLayout {
        game: "small".into(),
        options: 3,
        form: RowForm::Planes(stack()),
        actions,
        mirrored_actions: false,
        policy_head: PolicyHead::Dense,
    }
}

/// Returns the layout of [`stack`] on planes of these sides. The policy has this many planes, and actions of the whole board; without
/// planes it is dense, with nine actions.
pub fn sized([height, width]: [u32; 2], planes: u32, globals: u32) -> RowLayout {
    let stack = PlaneStack {
        height,
        width,
        ..stack()
    };
    let actions = stack.squares() as u32 * planes + globals;
    RowLayout {
        form: RowForm::Planes(stack),
        policy_head: match planes {
            0 => PolicyHead::Dense,
            _ => PolicyHead::Planes,
        },
        ..layout(if planes == 0 { 9 } else { actions })
    }
}

/// Heights and widths of boards, up to the largest.
pub const SIDES: [[u32; 2]; 6] = [[1, 9], [5, 7], [7, 6], [9, 9], [19, 19], [32, 32]];

pub fn row(layout: &RowLayout, draw: &mut ChaCha20Rng) -> Vec<u32> {
    let layout = layout.stack().unwrap();
    let mut row: Vec<u32> = (0..layout.entries)
        .map(|_| {
            let plane = layout.sparse[draw.random_range(0..layout.sparse.len())];
            let squares = layout.squares() as u32;
            plane * squares + draw.random_range(0..squares)
        })
        .collect();
    row.extend(
        layout
            .constants
            .iter()
            .map(|constant| draw.random_range(0..=constant.max)),
    );
    row
}

/// Returns batch `number` of the sequence of `seed`, as a replay store would send it. The first entry of a row determines its best
/// action and its result.
pub fn wire_batch(layout: &RowLayout, positions: usize, seed: u64, number: u64) -> v1::Batch {
    let mut draw = ChaCha20Rng::seed_from_u64(seed);
    draw.set_stream(number);
    let mut batch = v1::Batch {
        number,
        positions: positions as u32,
        game: layout.game.clone(),
        options: layout.options,
        ..v1::Batch::default()
    };
    for sample in 0..positions {
        let row = row(layout, &mut draw);
        let best = row[0] % layout.actions;
        let other = (best + 1 + draw.random_range(0..layout.actions - 1)) % layout.actions;
        batch.visit_counts.push(2);
        batch.visit_actions.extend([best, other]);
        batch.visits.extend([90, 10]);
        batch.results.push([-1.0, 0.0, 1.0][row[0] as usize % 3]);
        batch.root_values.push(0.0);
        batch.game_sequences.push(sample as u64);
        batch.plies.push(0);
        batch.rows.extend(row);
    }
    batch
}

/// Trains one step and `steps` more on a batch; returns the first and the last report.
pub fn repeat(trainer: &mut Trainer, batch: &HostBatch, steps: usize) -> [StepReport; 2] {
    let first = trainer.step(batch).unwrap();
    let mut last = first.clone();
    for _ in 0..steps {
        last = trainer.step(batch).unwrap();
    }
    [first, last]
}

/// Returns a packed batch with the targets of a network.
pub fn batch_for(
    trainer: &Trainer,
    layout: &RowLayout,
    positions: usize,
    seed: u64,
    number: u64,
) -> HostBatch {
    let packer = Packer {
        has_outcomes: trainer.network.shape.has_outcomes(),
        ..packer(layout)
    };
    packer.pack(&wire_batch(layout, positions, seed, number)).unwrap()
}

/// Switches all optional parts on.
pub fn all_parts(model: &ModelConfig) -> ModelConfig {
    ModelConfig {
        blocks: 2,
        global_pooling: 3,
        value_head: ValueHead::Wdl,
        ..model.clone()
    }
}

pub fn batch(layout: &RowLayout, positions: usize, seed: u64, number: u64) -> HostBatch {
    packer(layout)
        .pack(&wire_batch(layout, positions, seed, number))
        .unwrap()
}

pub fn packer(layout: &RowLayout) -> Packer {
    Packer::new(layout.clone(), RowSymmetries::none(), 1)
}

pub fn model() -> ModelConfig {
    ModelConfig {
        blocks: 1,
        filters: 8,
        value_hidden: 16,
        ..ModelConfig::default()
    }
}

pub fn settings() -> LearnerConfig {
    LearnerConfig {
        batch_size: 32,
        learning_rate: 5e-3,
        warmup_steps: 3,
        threads: 1,
        ..LearnerConfig::default()
    }
}

pub fn trainer(layout: &RowLayout, model: &ModelConfig, settings: &LearnerConfig, seed: u64) -> Trainer {
    learner::torch::device::set_threads(1);
    let shape = NetworkShape::new(model, layout).unwrap();
    Trainer::new(&shape, layout, settings, seed, Device::Cpu).unwrap()
}

pub type Change<'a> = &'a dyn Fn(&mut v1::Batch);

/// Checks that a packer refuses a batch with a changed length by the column's name, and one with an invalid sample by its number.
pub fn assert_refused(
    packer: &Packer,
    batch: &v1::Batch,
    lengths: &[(&str, Change<'_>)],
    samples: &[(usize, Change<'_>)],
) {
    let fault = |change: Change<'_>| {
        let mut batch = batch.clone();
        change(&mut batch);
        packer.pack(&batch).unwrap_err()
    };
    for &(field, change) in lengths {
        let error = fault(change);
        assert!(
            matches!(error, BatchError::Length(found) if found.column == field),
            "{field}: {error}"
        );
    }
    for &(sample, change) in samples {
        let error = fault(change);
        assert!(
            matches!(error, BatchError::Sample { sample: found, .. } if found == sample),
            "{sample}: {error}"
        );
    }
}
