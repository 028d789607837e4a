//! A baseline: a process that only runs batches with Minuet's loader. It batches rows once before the measurement and computes no
//! priors, so it does not use the evaluator that it is compared with.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use config::Override;
use network::{ModelFile, batch::Batch, loader::Loader, provider::ProviderSettings};

use super::{child::DrivenChild, positions::Positions};

/// Arguments of the child process.
#[derive(clap::Args)]
pub struct Arguments {
    game: String,
    provider: String,
    batch: usize,
    model: PathBuf,
}

/// Starts the child process on the core of this thread. Its first line is the number of threads that compute a batch.
pub fn start(game: &str, provider: &str, batch: usize, model: &Path) -> anyhow::Result<DrivenChild> {
    let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
    command
        .args(["direct", game, provider, &batch.to_string()])
        .arg(model);
    DrivenChild::start(command)
}

/// Does the work of the child process, as [`DrivenChild`] describes it.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let positions = Positions::play(&arguments.game)?;
    // The server reads this file too.
    let file = std::env::var_os("MINUET_CONFIG").map(PathBuf::from);
    let named: Override = format!("inference.provider={}", arguments.provider).parse()?;
    let settings = config::load_with(file.as_deref(), &[named])?.inference;
    let loader = Loader::new(
        ProviderSettings::from(&settings),
        arguments.batch,
        settings.provider,
    )?;
    let model = loader.load(&ModelFile {
        bytes: std::fs::read(&arguments.model)?.into(),
        version: "direct".into(),
        step: 0,
        layout: positions.layout.clone(),
        search: None,
    })?;
    let batches: Vec<Batch> = positions
        .batches(arguments.batch)
        .map(|rows| model.batch(positions.layout.split(&rows)))
        .collect();
    println!("{}", model.info.threads);
    let mut next = batches.iter().cycle();
    for line in std::io::stdin().lines() {
        let time = Duration::from_secs_f64(line?.trim().parse()?);
        let (began, mut done) = (Instant::now(), 0);
        while began.elapsed() < time {
            let batch = next.next().context("there are no positions")?;
            std::hint::black_box(model.run(batch.clone())?.values());
            done += arguments.batch;
        }
        println!("{done}");
    }
    Ok(())
}
