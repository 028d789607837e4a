//! [`DrivenChild`]: a child process that works for a given time and prints the number of positions that it has processed.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use anyhow::Context as _;

use super::measure::{self, Measured};

/// A child process that reads a number of seconds from each line of standard input, works that long, and prints the number of
/// positions that it has processed. Killed when dropped.
pub struct DrivenChild {
    child: Killed,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// First line of the output, which the process prints when it is ready.
    pub first_line: String,
    /// The rounds measured so far.
    pub rounds: Vec<Measured>,
}

impl DrivenChild {
    /// Starts the process and waits for its first line.
    ///
    /// # Errors
    /// The process cannot be started, or it ends before it is ready.
    pub fn start(mut command: Command) -> anyhow::Result<Self> {
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.with_context(|| format!("cannot start {program}"))?;
        let input = child.stdin.take().context("no standard input")?;
        let output = child.stdout.take().context("no standard output")?;
        let mut driven = Self {
            child: Killed(child),
            input,
            output: BufReader::new(output),
            first_line: String::new(),
            rounds: Vec::new(),
        };
        driven.first_line = driven
            .line()
            .with_context(|| format!("{program} did not start to work"))?;
        Ok(driven)
    }

    /// Returns the number of the process.
    pub fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// Lets the process work for `seconds`, and keeps the measurement as a round.
    ///
    /// # Errors
    /// The process has ended.
    pub fn measure(&mut self, seconds: f64) -> anyhow::Result<()> {
        let round = measure::measure(self.pid(), || self.work(seconds))?;
        self.rounds.push(round);
        Ok(())
    }

    /// Lets the process work for `seconds`. Returns the number of positions that it has processed.
    ///
    /// # Errors
    /// The process has ended.
    pub fn work(&mut self, seconds: f64) -> anyhow::Result<u64> {
        writeln!(self.input, "{seconds}")?;
        let line = self.line()?;
        line.parse().context("the process printed no number of positions")
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        anyhow::ensure!(!line.is_empty(), "the process ended; its messages are above");
        Ok(line.trim().to_owned())
    }
}

/// A process that is killed when this is dropped.
pub struct Killed(pub Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // An error means that the process has ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
