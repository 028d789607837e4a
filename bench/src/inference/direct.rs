//! The ceiling: a process that does nothing but run batches.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
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

use super::{
    Arguments,
    machine::{self, Measured},
    positions::Positions,
};

/// The process.
pub struct Direct {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Direct {
    /// Starts it on the core that this thread runs on.
    pub fn start(arguments: &Arguments, provider: &str, folder: &Path, model: &[u8]) -> anyhow::Result<Self> {
        let file = folder.join("direct.onnx");
        std::fs::write(&file, model)?;
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut child = Command::new(program)
            .args(["inference", "--game", &arguments.game, "--providers", provider])
            .args(["--batch", &arguments.batch.to_string()])
            .arg("--direct")
            .arg(&file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the direct process")?;
        let orders = child.stdin.take().context("no standard input")?;
        let answers = child.stdout.take().context("no standard output")?;
        let mut direct = Self {
            child,
            orders,
            answers: BufReader::new(answers),
        };
        direct.answer()?;
        Ok(direct)
    }

    /// Lets it run for so long.
    pub fn measure(&mut self, seconds: f64) -> anyhow::Result<Measured> {
        let pid = self.child.id();
        machine::measure(pid, || {
            writeln!(self.orders, "{seconds}")?;
            self.answer()
        })
    }

    fn answer(&mut self) -> anyhow::Result<u64> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        line.trim()
            .parse()
            .context("the direct process failed; what it wrote stands above")
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The process's own side: for each line of standard input (seconds) it runs that long and prints the positions done.
pub fn work(model: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let size = usize::from(arguments.batch);
    let positions = Positions::play(&arguments.game)?;
    let provider = arguments.providers.first().map_or("auto", String::as_str);
    let environment = network::runtime::load(Path::new(""))?;
    // As the server does, which reads the same file.
    let file = std::env::var_os("MINUET_CONFIG").map(PathBuf::from);
    let named: Override = format!("inference.provider={provider}").parse()?;
    let settings = config::load_with(file.as_deref(), &[named])?.inference;
    let loader = Loader::new(
        environment,
        Settings::from(&settings),
        Buckets::new(&[], size),
        Provider::asked_for(settings.provider),
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
