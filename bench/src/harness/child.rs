//! A child process that works for as long as it is told, and reports how much it did: [`DrivenChild`].

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use anyhow::Context as _;

use super::measure::{self, Measured};

/// The process. It reads a number of seconds from each line of standard input, works that long, and prints the number of positions
/// that it has processed. Dropping this kills it.
pub struct DrivenChild {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// The line that the process printed when it was ready.
    pub first_line: String,
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
            child,
            input,
            output: BufReader::new(output),
            first_line: String::new(),
        };
        driven.first_line = driven
            .line()
            .with_context(|| format!("cannot measure {program}"))?;
        Ok(driven)
    }

    /// Lets the process work for `seconds` and measures it.
    ///
    /// # Errors
    /// The process has ended.
    pub fn measure(&mut self, seconds: f64) -> anyhow::Result<Measured> {
        measure::measure(self.child.id(), || {
            writeln!(self.input, "{seconds}")?;
            self.line()?
                .parse()
                .context("the process printed no number of positions")
        })
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        anyhow::ensure!(!line.is_empty(), "the process ended; its messages stand above");
        Ok(line.trim().to_owned())
    }
}

impl Drop for DrivenChild {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
