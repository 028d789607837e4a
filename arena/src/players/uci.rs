//! A UCI engine as a player: an external program, controlled through pipes. Its output is not trusted.

use std::{
    any::Any,
    io::{self, BufRead, BufReader, Read as _, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use games::{Action, Game, chess::Chess};
use parking_lot::Mutex;

pub use super::error::UciError;
use super::{
    error::PlayerError,
    seat::{Chooser, Progress},
};
use crate::players::spec::{Go, UciSpec};

/// Longest time until an engine is ready.
const READY: Duration = Duration::from_secs(60);
/// Longest time for a move beyond the engine's own time for it.
const MOVE: Duration = Duration::from_secs(120);
/// Longest line in bytes.
const LINE: u64 = 1 << 16;
/// Number of lines that may wait to be read.
const LINES: usize = 1024;
/// Longest time for an engine to quit before it is killed.
const QUIT: Duration = Duration::from_millis(500);

/// The processes of one engine, one for each game in progress.
#[derive(Debug)]
pub struct Engines {
    spec: UciSpec,
    idle: Mutex<Vec<Engine>>,
}

impl Engines {
    /// Starts the first process, so that a wrong program is noticed at once.
    ///
    /// # Errors
    /// [`UciError`] if the program does not start or is not a UCI engine.
    pub fn start(spec: &UciSpec) -> Result<Self, UciError> {
        Ok(Self {
            idle: Mutex::new(vec![Engine::start(spec)?]),
            spec: spec.clone(),
        })
    }

    fn take(&self) -> Result<Engine, UciError> {
        let idle = self.idle.lock().pop();
        match idle {
            Some(engine) => Ok(engine),
            None => Engine::start(&self.spec),
        }
    }
}

/// A running engine.
#[derive(Debug)]
struct Engine {
    program: String,
    process: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Engine {
    fn start(spec: &UciSpec) -> Result<Self, UciError> {
        let program = spec.command.first().cloned().unwrap_or_default();
        let failed = |source| UciError::Start {
            program: program.clone(),
            source,
        };
        let mut process = Command::new(&program)
            .args(spec.command.get(1..).unwrap_or_default())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(failed(io::ErrorKind::BrokenPipe.into()));
        };
        let (sender, lines) = sync_channel(LINES);
        thread::Builder::new()
            .name("uci".into())
            .spawn(move || read_lines(output, &sender))
            .map_err(failed)?;
        let mut engine = Self {
            program: program.clone(),
            process,
            input,
            lines,
        };
        engine.send("uci")?;
        engine.wait("uciok", READY)?;
        for (name, value) in &spec.options {
            engine.send(&format!("setoption name {name} value {value}"))?;
        }
        engine.get_ready()?;
        Ok(engine)
    }

    fn get_ready(&mut self) -> Result<(), UciError> {
        self.send("isready")?;
        self.wait("readyok", READY).map(drop)
    }

    fn send(&mut self, line: &str) -> Result<(), UciError> {
        writeln!(self.input, "{line}")
            .and_then(|()| self.input.flush())
            .map_err(|_| UciError::Ended(self.program.clone()))
    }

    /// Waits for a line that begins with `word` and returns the rest of it. Other lines are skipped.
    fn wait(&mut self, word: &'static str, timeout: Duration) -> Result<String, UciError> {
        let until = Instant::now() + timeout;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    let mut words = line.split_whitespace();
                    if words.next() == Some(word) {
                        return Ok(words.collect::<Vec<_>>().join(" "));
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    return Err(UciError::Silent {
                        program: self.program.clone(),
                        expected: word,
                        seconds: timeout.as_secs(),
                    });
                }
                Err(RecvTimeoutError::Disconnected) => return Err(UciError::Ended(self.program.clone())),
            }
        }
    }
}

impl Drop for Engine {
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

/// An engine in one game.
#[derive(Debug)]
pub struct UciPlayer {
    engines: Arc<Engines>,
    /// Returned to `engines` after the game; dropped after an error.
    engine: Option<Engine>,
}

impl UciPlayer {
    /// Takes an idle engine, or starts one, and begins a new game.
    ///
    /// # Errors
    /// [`UciError`] if the engine does not start or does not answer.
    pub fn new(engines: Arc<Engines>) -> Result<Self, UciError> {
        let mut engine = engines.take()?;
        engine.send("ucinewgame")?;
        engine.get_ready()?;
        Ok(Self {
            engines,
            engine: Some(engine),
        })
    }

    fn ask(&mut self, start: &Chess, actions: &[Action], state: &Chess) -> Result<Action, UciError> {
        let go = self.engines.spec.go;
        // After an error the engine is dropped.
        let ended = || UciError::Ended(self.engines.spec.command.join(" "));
        let mut engine = self.engine.take().ok_or_else(ended)?;
        let mut position = format!("position fen {}", start.position());
        let mut replayed = start.clone();
        for (number, &action) in actions.iter().enumerate() {
            position += if number == 0 { " moves " } else { " " };
            position += &replayed.uci(action);
            replayed.play_legal(action);
        }
        engine.send(&position)?;
        let given = match go {
            Go::Nodes(nodes) => {
                engine.send(&format!("go nodes {nodes}"))?;
                Duration::ZERO
            }
            Go::Movetime(milliseconds) => {
                engine.send(&format!("go movetime {milliseconds}"))?;
                Duration::from_millis(milliseconds)
            }
            Go::Depth(depth) => {
                engine.send(&format!("go depth {depth}"))?;
                Duration::ZERO
            }
        };
        let answer = engine.wait("bestmove", given + MOVE)?;
        let chosen = answer.split_whitespace().next().unwrap_or_default();
        let action = state.action_of_uci(chosen).map_err(|_| UciError::Illegal {
            program: engine.program.clone(),
            answer: answer.clone(),
            position: state.position(),
        })?;
        self.engine = Some(engine);
        Ok(action)
    }
}

impl<G: Game> Chooser<G> for UciPlayer {
    fn choose(&mut self, game: Progress<'_, G>) -> Result<Action, PlayerError> {
        let (start, state): (&dyn Any, &dyn Any) = (game.start, game.state);
        let (Some(start), Some(state)) = (start.downcast_ref::<Chess>(), state.downcast_ref::<Chess>())
        else {
            return Err(PlayerError::Game {
                player: "a UCI engine",
                plays: Chess::NAME,
                game: G::NAME,
            });
        };
        Ok(self.ask(start, game.actions, state)?)
    }
}

impl Drop for UciPlayer {
    fn drop(&mut self) {
        if let Some(engine) = self.engine.take() {
            self.engines.idle.lock().push(engine);
        }
    }
}
