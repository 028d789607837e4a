//! The baseline: a process that only runs batches. It batches rows once before the measurement and computes no priors, so it
//! does not use the evaluator that it is compared with.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use config::Override;
use network::{
    batch::Batch,
    buckets::Buckets,
    loader::{File, Loader},
    provider::{Provider, Settings},
};

use super::arguments::Arguments;
use crate::harness::{child::DrivenChild, positions::Positions};

/// Starts the child process on the core of this thread.
pub fn start(
    arguments: &Arguments,
    provider: &str,
    folder: &Path,
    model: &[u8],
) -> anyhow::Result<DrivenChild> {
    let file = folder.join("direct.onnx");
    std::fs::write(&file, model)?;
    let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
    command
        .args(["inference", "--game", &arguments.game, "--providers", provider])
        .args(["--batch", &arguments.batch.to_string()])
        .arg("--direct")
        .arg(&file);
    DrivenChild::start(command)
}

/// Work of the child process: for each number of seconds on standard input, it runs batches that long and prints the number of
/// positions.
pub fn work(model: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let size = usize::from(arguments.batch);
    let positions = Positions::play(&arguments.game)?;
    let provider = arguments.providers.first().map_or("auto", String::as_str);
    let environment = network::runtime::load(Path::new(""))?;
    // The server reads this file too.
    let file = std::env::var_os("MINUET_CONFIG").map(PathBuf::from);
    let named: Override = format!("inference.provider={provider}").parse()?;
    let settings = config::load_with(file.as_deref(), &[named])?.inference;
    let loader = Loader::new(
        environment,
        Settings::from(&settings),
        Buckets::new(size),
        Provider::configured(settings.provider),
    )?;
    let bytes = std::fs::read(model)?;
    let model = loader.load(File {
        bytes: &bytes,
        version: "direct",
        step: 0,
        layout: &positions.layout,
    })?;
    let batches: Vec<Batch> = (0..8)
        .map(|number| {
            let rows = positions.request(number, size).indices;
            model.batch(positions.layout.split(&rows))
        })
        .collect();
    println!("0");
    for line in std::io::stdin().lines() {
        let time = Duration::from_secs_f64(line?.trim().parse()?);
        let (began, mut done) = (Instant::now(), 0);
        while began.elapsed() < time {
            for batch in &batches {
                let outputs = model.run(batch.clone())?;
                std::hint::black_box(outputs.values());
                done += size as u64;
            }
        }
        println!("{done}");
    }
    Ok(())
}
