//! Engines: external programs that answer line by line through pipes. Their output is not trusted.

use std::{
    io::{BufRead, BufReader, Read as _, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, anyhow, bail};
use parking_lot::Mutex;

/// Longest time until an engine is ready.
pub const READY: Duration = Duration::from_secs(60);
/// Longest time for a move beyond the engine's own time for it.
pub const MOVE: Duration = Duration::from_secs(120);
/// Longest line in bytes.
const LINE: u64 = 1 << 16;
/// Number of lines that may wait to be read.
const LINES: usize = 1024;
/// Longest time for an engine to quit before it is killed.
const QUIT: Duration = Duration::from_millis(500);

/// Error: an engine loses its game.
#[derive(Debug, thiserror::Error)]
pub enum Forfeit {
    /// The answer is not a legal move.
    #[error("the engine {program} answered `{answer}` in {position}, which is not a legal move")]
    IllegalMove {
        /// Path of the engine's program.
        program: String,
        /// Answer of the engine.
        answer: String,
        /// Position as text, a FEN in chess.
        position: String,
    },
    /// The engine gives up.
    #[error("the engine {program} has resigned")]
    Resigned {
        /// Path of the engine's program.
        program: String,
    },
}

impl Forfeit {
    /// Returns the error of an answer in `position` that is not a legal move.
    pub fn illegal(engine: &Process, answer: String, position: String) -> Self {
        Self::IllegalMove {
            program: engine.program.clone(),
            answer,
            position,
        }
    }

    /// Returns the name of the game's ending in records.
    pub const fn ending(&self) -> &'static str {
        match self {
            Self::IllegalMove { .. } => "illegal-move",
            Self::Resigned { .. } => "resigned",
        }
    }
}

/// A protocol, with the program that speaks it.
pub trait Protocol {
    /// Program and arguments.
    fn command(&self) -> &[String];

    /// Sets up a process that has just started.
    ///
    /// # Errors
    /// The program does not speak the protocol.
    fn greet(&self, process: &mut Process) -> anyhow::Result<()>;
}

/// The processes of one engine, one for each game in progress.
#[derive(Debug)]
pub struct Engines<P> {
    protocol: P,
    idle: Mutex<Vec<Process>>,
}

/// A process for one game. It returns to its engine afterwards, unless it has failed.
#[derive(Debug)]
pub struct Loan<P> {
    engines: Arc<Engines<P>>,
    /// `None` after an error.
    process: Option<Process>,
}

impl<P: Protocol> Engines<P> {
    /// Starts the first process, so that a wrong program is noticed at once.
    ///
    /// # Errors
    /// The program does not start or does not speak the protocol.
    pub fn start(protocol: P) -> anyhow::Result<Self> {
        let first = started(&protocol)?;
        Ok(Self {
            protocol,
            idle: Mutex::new(vec![first]),
        })
    }

    /// Lends an idle process, or starts one.
    ///
    /// # Errors
    /// The program does not start or does not speak the protocol.
    pub fn lend(self: Arc<Self>) -> anyhow::Result<Loan<P>> {
        let idle = self.idle.lock().pop();
        let process = match idle {
            Some(process) => process,
            None => started(&self.protocol)?,
        };
        Ok(Loan {
            process: Some(process),
            engines: self,
        })
    }
}

impl<P: Protocol> Loan<P> {
    /// The protocol, with its settings.
    pub fn protocol(&self) -> &P {
        &self.engines.protocol
    }

    /// Talks with the process. After an error the process is dropped, and later calls fail.
    ///
    /// # Errors
    /// Those of `talk`, and another one at each call after one of them.
    pub fn talk<T>(&mut self, talk: impl FnOnce(&mut Process) -> anyhow::Result<T>) -> anyhow::Result<T> {
        let ended = || ended(&self.engines.protocol.command().join(" "));
        let mut process = self.process.take().ok_or_else(ended)?;
        let answer = talk(&mut process)?;
        self.process = Some(process);
        Ok(answer)
    }
}

impl<P> Drop for Loan<P> {
    fn drop(&mut self) {
        self.engines.idle.lock().extend(self.process.take());
    }
}

fn started(protocol: &impl Protocol) -> anyhow::Result<Process> {
    let mut process = Process::start(protocol.command())?;
    protocol.greet(&mut process)?;
    Ok(process)
}

/// A running engine. When dropped it is asked to quit, and killed if it does not.
#[derive(Debug)]
pub struct Process {
    /// Path of the program, for messages.
    pub program: String,
    process: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Process {
    fn start(command: &[String]) -> anyhow::Result<Self> {
        let program = command.first().cloned().unwrap_or_default();
        let failed = || format!("cannot start the engine {program}");
        let mut process = Command::new(&program)
            .args(command.get(1..).unwrap_or_default())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(failed)?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            bail!(failed());
        };
        let (sender, lines) = sync_channel(LINES);
        thread::Builder::new()
            .name("engine".into())
            .spawn(move || read_lines(output, &sender))
            .with_context(failed)?;
        Ok(Self {
            program,
            process,
            input,
            lines,
        })
    }

    /// Sends a line.
    ///
    /// # Errors
    /// The engine has closed its input.
    pub fn send(&mut self, line: &str) -> anyhow::Result<()> {
        writeln!(self.input, "{line}")
            .and_then(|()| self.input.flush())
            .map_err(|_| ended(&self.program))
    }

    /// Reads lines until `read` makes something of one. `expected` says in an error what was waited for.
    ///
    /// # Errors
    /// The engine has ended, or has not answered within `timeout`.
    pub fn wait<T>(
        &mut self,
        expected: &str,
        timeout: Duration,
        mut read: impl FnMut(&str) -> Option<T>,
    ) -> anyhow::Result<T> {
        let until = Instant::now() + timeout;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    if let Some(found) = read(&line) {
                        return Ok(found);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    bail!(
                        "the engine {} did not answer `{expected}` within {} s",
                        self.program,
                        timeout.as_secs()
                    );
                }
                Err(RecvTimeoutError::Disconnected) => return Err(ended(&self.program)),
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.send("quit");
        let until = Instant::now() + QUIT;
        while Instant::now() < until {
            match self.process.try_wait() {
                Ok(None) => thread::sleep(Duration::from_millis(5)),
                _ => return,
            }
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn ended(program: &str) -> anyhow::Error {
    anyhow!("the engine {program} has ended")
}

fn read_lines(output: ChildStdout, lines: &SyncSender<String>) {
    let mut output = BufReader::new(output);
    loop {
        let mut line = Vec::new();
        match output.by_ref().take(LINE).read_until(b'\n', &mut line) {
            Ok(length) if length > 0 => {}
            _ => return,
        }
        if lines.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
            return;
        }
    }
}
