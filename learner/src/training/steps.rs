//! The command `minuet-learner bench-steps [forward] KEY=VALUE…`, which measures training steps for `minuet bench training`, or with the
//! word `forward` the network's outputs alone.
//!
//! The command prints a line of JSON about the network. Each line of its input is a number of seconds: the command works for that time
//! and prints the number of samples. The batches are positions of random play with random targets, packed in advance.

use std::{
    io::BufRead as _,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use config::{self, Override, RunConfig};
use games::{RowLayout, RowSymmetries};
use proto::v1;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha20Rng;
use serde::Serialize;

use crate::{
    data::{batches::HostBatch, game::TrainingGame, packer::Packer},
    network::{Network, NetworkShape, POLICY, Pass, inputs::Feeder},
    torch::{device, to_host},
    training::{precision::Precision, train::Trainer},
};

/// Name of the command, the program's first argument.
pub const COMMAND: &str = "bench-steps";
/// Batches that are trained on in turn.
const BATCHES: usize = 4;
/// Policy targets of a sample.
const TARGETS: u32 = 8;
/// First argument if no step is made.
const FORWARD: &str = "forward";

/// Description of the network and its training, for a program that measures the same in another framework.
#[derive(Serialize)]
struct Description {
    shape: NetworkShape,
    parameters: usize,
    batch: usize,
    learning_rate: f64,
    weight_decay: f64,
    max_gradient_norm: f64,
    threads: i32,
}

/// Runs the command until the input ends.
pub fn main(arguments: impl Iterator<Item = String>) -> ExitCode {
    match work(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("minuet-learner {COMMAND}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn work(arguments: impl Iterator<Item = String>) -> anyhow::Result<()> {
    let mut arguments = arguments.peekable();
    let is_forward = arguments.next_if(|first| first == FORWARD).is_some();
    let overrides: Vec<Override> = arguments
        .map(|argument| argument.parse())
        .collect::<Result<_, _>>()?;
    let config = config::load_with(None, &overrides)?;
    let device = device::choose(config.learner.device)?;
    device::set_threads(config.learner.threads);
    let game = TrainingGame::new(&config.game, BATCHES * config.learner.batch_size, config.run.seed)?;
    let shape = NetworkShape::new(&config.model, &game.layout)?;
    let batches = batches(&config, &game, &shape)?;
    let mut trainer = Trainer::new(&shape, &game.layout, &config.learner, config.run.seed, device)?;
    let precision = Precision::configured(config.learner.precision)
        .context("set learner.precision to f32 or bf16; the command measures one of them")?;
    trainer.set_precision(precision);
    for batch in &batches {
        trainer.step(batch)?;
    }
    let description = Description {
        parameters: trainer.network.variables.parameters(),
        shape,
        batch: config.learner.batch_size,
        learning_rate: config.learner.learning_rate,
        weight_decay: config.learner.weight_decay,
        max_gradient_norm: config.learner.max_gradient_norm,
        threads: tch::get_num_threads(),
    };
    println!("{}", serde_json::to_string(&description)?);
    let feeder = Feeder::new(&game.layout, device)?;
    let mut next = 0;
    for line in std::io::stdin().lock().lines() {
        let time = Duration::from_secs_f64(line?.trim().parse().context("seconds are expected")?);
        let (began, mut samples) = (Instant::now(), 0);
        while began.elapsed() < time {
            let batch = &batches[next % BATCHES];
            samples += match is_forward {
                true => outputs(&trainer.network, &feeder, batch)?,
                false => trainer.step(batch)?.samples,
            };
            next += 1;
        }
        println!("{samples}");
    }
    Ok(())
}

/// Computes the outputs of a batch in f32 and brings them to the host. Returns the number of positions.
fn outputs(network: &Network, feeder: &Feeder, batch: &HostBatch) -> anyhow::Result<usize> {
    let _guard = tch::no_grad_guard();
    let outputs = network.forward(&feeder.batch(&batch.inputs)?, Pass::EVALUATE)?;
    to_host(outputs.head(POLICY)?)?;
    Ok(to_host(&outputs.values)?.len())
}

/// Packs batches of the game's positions, with targets drawn from the run's seed.
fn batches(config: &RunConfig, game: &TrainingGame, shape: &NetworkShape) -> anyhow::Result<Vec<HostBatch>> {
    let size = config.learner.batch_size;
    let stack = game
        .layout
        .stack()
        .context("only towers over planes are measured")?;
    let row_len = stack.row_len();
    let mut draw = ChaCha20Rng::seed_from_u64(config.run.seed);
    let packer = Packer {
        has_outcomes: shape.has_outcomes(),
        ..Packer::new(game.layout.clone(), RowSymmetries::none(), config.run.seed)
    };
    (0..BATCHES)
        .map(|number| {
            let rows = game.rows.chunks(row_len).cycle().skip(number * size).take(size);
            let batch = targets(&game.layout, rows.flatten().copied().collect(), size, &mut draw);
            Ok(packer.pack(&batch)?)
        })
        .collect()
}

fn targets(layout: &RowLayout, rows: Vec<u32>, positions: usize, draw: &mut ChaCha20Rng) -> v1::Batch {
    let count = TARGETS.min(layout.actions);
    let mut batch = v1::Batch {
        positions: positions as u32,
        game: layout.game.clone(),
        options: layout.options,
        rows,
        visit_counts: vec![count; positions],
        root_values: vec![0.0; positions],
        game_sequences: vec![1; positions],
        plies: vec![0; positions],
        ..v1::Batch::default()
    };
    for _ in 0..positions {
        let first = draw.random_range(0..layout.actions);
        batch
            .visit_actions
            .extend((0..count).map(|place| (first + place) % layout.actions));
        batch.visits.extend((0..count).map(|_| draw.random_range(1..100)));
        batch.results.push(f32::from(draw.random_range(-1i8..=1)));
    }
    batch
}
