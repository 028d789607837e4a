//! A UCI engine as a player of chess: an external program, controlled through pipes.

use std::{any::Any, sync::Arc, time::Duration};

use games::{Action, Game, chess::Chess};

use super::{
    engine::{Engines, Loan, MOVE, Process, Protocol, READY},
    error::{EngineError, PlayerError},
    seat::{Chooser, Progress},
};
use crate::players::spec::{Go, UciSpec};

impl Protocol for UciSpec {
    fn command(&self) -> &[String] {
        &self.command
    }

    fn greet(&self, process: &mut Process) -> Result<(), EngineError> {
        process.send("uci")?;
        wait_for(process, "uciok", READY)?;
        for (name, value) in &self.options {
            process.send(&format!("setoption name {name} value {value}"))?;
        }
        get_ready(process)
    }
}

fn get_ready(process: &mut Process) -> Result<(), EngineError> {
    process.send("isready")?;
    wait_for(process, "readyok", READY).map(drop)
}

/// Waits for a line that begins with `word` and returns the rest of it. Other lines are skipped.
fn wait_for(process: &mut Process, word: &'static str, timeout: Duration) -> Result<String, EngineError> {
    process.wait(word, timeout, |line| {
        let mut words = line.split_whitespace();
        (words.next() == Some(word)).then(|| words.collect::<Vec<_>>().join(" "))
    })
}

/// An engine in one game.
#[derive(Debug)]
pub struct UciPlayer(Loan<UciSpec>);

impl UciPlayer {
    /// Takes an idle engine, or starts one, and begins a new game.
    ///
    /// # Errors
    /// [`EngineError`] if the engine does not start or does not answer.
    pub fn new(engines: Arc<Engines<UciSpec>>) -> Result<Self, EngineError> {
        let mut engine = engines.lend()?;
        engine.talk(|process| {
            process.send("ucinewgame")?;
            get_ready(process)
        })?;
        Ok(Self(engine))
    }
}

fn ask(
    process: &mut Process,
    go: Go,
    start: &Chess,
    actions: &[Action],
    state: &Chess,
) -> Result<Action, EngineError> {
    let mut position = format!("position fen {}", start.position());
    let mut replayed = start.clone();
    for (number, &action) in actions.iter().enumerate() {
        position += if number == 0 { " moves " } else { " " };
        position += &replayed.uci(action);
        replayed.play_legal(action);
    }
    process.send(&position)?;
    let given = match go {
        Go::Nodes(nodes) => {
            process.send(&format!("go nodes {nodes}"))?;
            Duration::ZERO
        }
        Go::Movetime(milliseconds) => {
            process.send(&format!("go movetime {milliseconds}"))?;
            Duration::from_millis(milliseconds)
        }
        Go::Depth(depth) => {
            process.send(&format!("go depth {depth}"))?;
            Duration::ZERO
        }
    };
    let answer = wait_for(process, "bestmove", given + MOVE)?;
    let chosen = answer.split_whitespace().next().unwrap_or_default();
    state.action_of_uci(chosen).map_err(|_| EngineError::Illegal {
        program: process.program.clone(),
        answer: answer.clone(),
        position: state.position(),
    })
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
        let go = self.0.protocol().go;
        Ok(self
            .0
            .talk(|process| ask(process, go, start, game.actions, state))?)
    }
}
