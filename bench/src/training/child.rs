//! A process that trains when it is told to, and says how many samples it has trained on.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use anyhow::Context as _;
use service::role::Role;

use crate::inference::machine::{self, Measured};

/// The process, which ends with this.
pub struct Trainer {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// The line of JSON that it began with.
    pub said: String,
}

impl Trainer {
    /// The learner's own steps, with these settings.
    pub fn learner(settings: &[String]) -> anyhow::Result<Self> {
        let program = std::env::current_exe()?.with_file_name(Role::Learner.binary());
        let mut command = Command::new(&program);
        command.arg("bench-steps").args(settings);
        Self::start(command).with_context(|| format!("cannot measure {}", program.display()))
    }

    /// The same network in PyTorch; `about` is what the learner said.
    pub fn pytorch(python: &std::path::Path, about: &str, precision: &str) -> anyhow::Result<Self> {
        let mut command = Command::new(python);
        command.args(["-c", include_str!("pytorch.py"), about, precision]);
        command.env("OMP_WAIT_POLICY", "passive");
        Self::start(command).with_context(|| format!("cannot measure PyTorch with {}", python.display()))
    }

    fn start(mut command: Command) -> anyhow::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let orders = child.stdin.take().context("no standard input")?;
        let answers = child.stdout.take().context("no standard output")?;
        let mut trainer = Self {
            child,
            orders,
            answers: BufReader::new(answers),
            said: String::new(),
        };
        trainer.said = trainer.line()?;
        Ok(trainer)
    }

    /// Trains for so long.
    pub fn measure(&mut self, seconds: f64) -> anyhow::Result<Measured> {
        machine::measure(self.child.id(), || {
            writeln!(self.orders, "{seconds}")?;
            self.line()?.parse().context("no number of samples")
        })
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        anyhow::ensure!(!line.is_empty(), "the process ended; what it wrote stands above");
        Ok(line.trim().to_owned())
    }
}

impl Drop for Trainer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
