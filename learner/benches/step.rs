//! Training steps and their parts, in samples per second: `cargo bench -p learner -- [threads] [blocks] [filters] [batch] [bf16]`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../tests/learner/common/mod.rs"]
mod common;

use std::time::Instant;

use games::{PlaneStack, RowForm, RowLayout};
use learner::{device, network::NetworkShape, precision::Precision, train::Trainer};
use service::config::{LearnerConfig, ModelConfig};
use tch::Device;

fn main() {
    let numbers: Vec<usize> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    let number = |at: usize, default: usize| numbers.get(at).copied().unwrap_or(default);
    let (threads, blocks, filters, size) = (number(0, 0), number(1, 4), number(2, 64), number(3, 256));
    device::set_threads(threads);
    // As wide as Paco Ŝako's: 30 planes, 132 actions.
    let layout = RowLayout {
        form: RowForm::Planes(PlaneStack {
            planes: 30,
            sparse: (0..26).collect(),
            constants: common::stack()
                .constants
                .into_iter()
                .zip(26..)
                .map(|(mut constant, plane)| {
                    constant.plane = plane;
                    constant
                })
                .collect(),
            ones: vec![29],
            entries: 38,
        }),
        ..common::layout(132)
    };
    let model = ModelConfig {
        blocks: blocks as u32,
        filters: filters as u32,
        ..ModelConfig::default()
    };
    let settings = LearnerConfig::default();
    let shape = NetworkShape::new(&model, &layout).unwrap();
    let mut trainer = Trainer::new(&shape, &layout, &settings, 1, Device::Cpu).unwrap();
    let batches: Vec<_> = (0..4)
        .map(|number| common::batch(&layout, size, 1, number))
        .collect();
    if std::env::args().any(|word| word == "bf16") {
        trainer.set_precision(Precision::Bf16);
    }
    let mut losses = Vec::new();
    for batch in &batches {
        losses.push(trainer.step(batch).unwrap().loss);
    }
    let cpu = || service::process::usage(std::process::id()).map_or(0.0, |usage| usage.cpu_seconds);
    let (begun, cpu_begun) = (Instant::now(), cpu());
    let mut steps = 0;
    while begun.elapsed().as_secs_f64() < 5.0 {
        losses.push(trainer.step(&batches[steps % batches.len()]).unwrap().loss);
        steps += 1;
    }
    let samples = (steps * size) as f64;
    let (rate, cpu_rate) = (
        samples / begun.elapsed().as_secs_f64(),
        samples / (cpu() - cpu_begun).max(0.01),
    );
    println!(
        "{blocks}x{filters}, batches of {size}, {} threads: {rate:.0} samples/s, {cpu_rate:.0} a second of CPU, loss {:.3} after {} steps",
        tch::get_num_threads(),
        losses.last().unwrap(),
        losses.len()
    );
}
