//! `minuet bench training`: complete training steps of the learner in f32 and bf16, and of the same network in PyTorch, eager and
//! compiled by `torch.compile`.
//!
//! Each is a process on one core with one thread; they are measured in turn for several rounds, while the others are idle. The
//! learner's steps expand rows and average weights; the steps in PyTorch get dense planes and do neither.
//!
//! With `--forward` no step is made: libtorch computes the outputs of the learner's network, which is not folded, and ONNX Runtime those
//! of a tower of the same size.

use std::{path::PathBuf, process::Command};

use anyhow::Context as _;
use clap::builder::PossibleValuesParser;
use games::registry;
use serde::Serialize;
use service::role::Role;

use crate::harness::{
    child::DrivenChild,
    compared::Compared,
    direct,
    measure::{Cores, Measured},
    model,
    report::{median_of, median_ratio, print},
};

const PRECISIONS: [&str; 2] = ["f32", "bf16"];
/// Forms of the network in PyTorch.
const FORMS: [&str; 2] = ["eager", "compiled"];

/// Arguments of `minuet bench training`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  minuet bench training --json
  minuet bench training --blocks 6 --batch 512
  minuet bench training --forward --game chess --batch 1
  minuet bench training --set model.global_pooling=16 --set model.value_head=wdl
  minuet bench training --python \"$(python3 scripts/python_env.py torch)\"   (against PyTorch; fetches 3 GB the first time)")]
pub struct Arguments {
    /// Game whose positions are trained on.
    #[arg(long, default_value = "paco-sako", value_parser = PossibleValuesParser::new(registry::NAMES))]
    game: String,
    /// Residual blocks.
    #[arg(long, default_value_t = 4)]
    blocks: u32,
    /// Filters.
    #[arg(long, default_value_t = 64)]
    filters: u32,
    /// Positions per step.
    #[arg(long, default_value_t = 256)]
    batch: u32,
    /// Device, as in `learner.device`.
    #[arg(long, default_value = "cpu", value_parser = ["cpu", "cuda"])]
    device: String,
    /// Set another key of the learner, e.g. model.value_head="wdl". (The network in PyTorch is the plain tower.)
    #[arg(long = "set", value_name = "KEY=VALUE", conflicts_with = "python")]
    settings: Vec<String>,
    /// Python interpreter with PyTorch, for the comparison.
    #[arg(long)]
    python: Option<PathBuf>,
    /// Measure the network's outputs without training, in libtorch and in ONNX Runtime, in f32 on the CPU.
    #[arg(long, conflicts_with_all = ["python", "device"])]
    forward: bool,
    /// Number of rounds; results are medians.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..))]
    rounds: u8,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    bench: &'static str,
    game: String,
    network: String,
    device: String,
    batch: u32,
    rounds: u8,
    figures: Vec<Figures>,
    /// Ratio of samples per second in bf16 to f32, by processor time.
    bf16_gain: f64,
}

#[derive(Serialize)]
struct Figures {
    precision: &'static str,
    /// Samples per second.
    samples: f64,
    samples_per_cpu_second: f64,
    /// Samples per second in PyTorch, and the ratio to it (median over the rounds).
    pytorch: Option<Compared>,
    /// Rates and ratio of a network compiled by `torch.compile`.
    pytorch_compiled: Option<Compared>,
}

/// Result of `--forward`.
#[derive(Serialize)]
struct Forward {
    bench: &'static str,
    game: String,
    network: String,
    batch: u32,
    rounds: u8,
    /// Positions per second in libtorch.
    libtorch: f64,
    libtorch_per_cpu_second: f64,
    /// Rates of ONNX Runtime, and the ratios of libtorch to it.
    onnxruntime: Option<Compared>,
}

/// Processes of one precision.
struct Pair {
    precision: &'static str,
    learner: DrivenChild,
    /// PyTorch, eager and compiled. Empty without a Python interpreter.
    pytorches: Vec<DrivenChild>,
}

/// Runs the benchmark and prints the result.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let cores = Cores::find()?;
    cores.use_first()?;
    if arguments.forward {
        return forward(arguments);
    }
    let mut pairs = Vec::new();
    for precision in PRECISIONS {
        pairs.push(start(&arguments, precision)?);
    }
    for _ in 0..arguments.rounds {
        for pair in &mut pairs {
            pair.learner.measure(arguments.seconds)?;
            for pytorch in &mut pair.pytorches {
                pytorch.measure(arguments.seconds)?;
            }
        }
    }
    let bf16_gain = match pairs.as_slice() {
        [f32, bf16] => {
            let (f32, bf16) = (&f32.learner.rounds, &bf16.learner.rounds);
            median_ratio(bf16, f32, Measured::per_cpu_second)
        }
        _ => 0.0,
    };
    let report = Report {
        bench: "training",
        network: format!("{}x{}", arguments.blocks, arguments.filters),
        game: arguments.game,
        device: arguments.device,
        batch: arguments.batch,
        rounds: arguments.rounds,
        figures: pairs.iter().map(figures).collect(),
        bf16_gain,
    };
    print(&report, arguments.json)
}

/// Measures the outputs alone, and prints the result.
fn forward(arguments: Arguments) -> anyhow::Result<()> {
    let size = (arguments.blocks as usize, arguments.filters as usize);
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("model.onnx");
    std::fs::write(&file, model::find(&arguments.game, None, None, size)?.0.bytes)?;
    let mut libtorch = start_learner(&arguments, Some("forward"), "f32")?;
    let mut runtime = direct::start(&arguments.game, "cpu", arguments.batch as usize, &file)?;
    for _ in 0..arguments.rounds {
        libtorch.measure(arguments.seconds)?;
        runtime.measure(arguments.seconds)?;
    }
    let rounds = &libtorch.rounds;
    let report = Forward {
        bench: "forward",
        network: format!("{}x{}", arguments.blocks, arguments.filters),
        game: arguments.game,
        batch: arguments.batch,
        rounds: arguments.rounds,
        libtorch: median_of(rounds, Measured::per_second),
        libtorch_per_cpu_second: median_of(rounds, Measured::per_cpu_second),
        onnxruntime: Compared::new(rounds, &runtime.rounds),
    };
    print(&report, arguments.json)
}

fn start_learner(arguments: &Arguments, word: Option<&str>, precision: &str) -> anyhow::Result<DrivenChild> {
    let mut settings = vec![
        format!("game.name={}", arguments.game),
        "game.options=0".to_owned(),
        format!("model.blocks={}", arguments.blocks),
        format!("model.filters={}", arguments.filters),
        format!("learner.batch_size={}", arguments.batch),
        format!("learner.precision={precision}"),
        format!("learner.device={}", arguments.device),
        "learner.threads=1".to_owned(),
    ];
    settings.extend_from_slice(&arguments.settings);
    let program = std::env::current_exe().context("cannot find the folder of this program")?;
    let mut command = Command::new(program.with_file_name(Role::Learner.binary()));
    command.arg("bench-steps").args(word).args(settings);
    DrivenChild::start(command)
}

fn start(arguments: &Arguments, precision: &'static str) -> anyhow::Result<Pair> {
    let learner = start_learner(arguments, None, precision)?;
    let mut pytorches = Vec::new();
    if let Some(python) = &arguments.python {
        for form in FORMS {
            let mut command = Command::new(python);
            command.args(["-c", include_str!("pytorch.py"), &learner.first_line]);
            command.args([precision, form]);
            command.env("OMP_WAIT_POLICY", "passive");
            pytorches.push(DrivenChild::start(command)?);
        }
    }
    Ok(Pair {
        precision,
        learner,
        pytorches,
    })
}

fn figures(pair: &Pair) -> Figures {
    let rounds = &pair.learner.rounds;
    let compared = |form: usize| Compared::new(rounds, &pair.pytorches.get(form)?.rounds);
    Figures {
        precision: pair.precision,
        samples: median_of(rounds, Measured::per_second),
        samples_per_cpu_second: median_of(rounds, Measured::per_cpu_second),
        pytorch: compared(0),
        pytorch_compiled: compared(1),
    }
}
