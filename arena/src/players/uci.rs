//! A UCI engine as a player of chess: an external program, controlled through pipes.

use std::{sync::Arc, time::Duration};

use games::{Action, Game as _, chess::Chess};

use super::{
    chooser::{Chooser, GameSoFar},
    engine::{Engines, Forfeit, Loan, MOVE, Process, Protocol, READY},
    spec::{Go, UciSpec},
    typed,
};

impl Protocol for UciSpec {
    fn command(&self) -> &[String] {
        &self.command
    }

    fn greet(&self, process: &mut Process) -> anyhow::Result<()> {
        process.send("uci")?;
        wait_for(process, "uciok", READY)?;
        for (name, value) in &self.options {
            process.send(&format!("setoption name {name} value {value}"))?;
        }
        get_ready(process)
    }
}

fn get_ready(process: &mut Process) -> anyhow::Result<()> {
    process.send("isready")?;
    wait_for(process, "readyok", READY).map(drop)
}

/// Waits for a line that begins with `word` and returns the rest of it. Other lines are skipped.
fn wait_for(process: &mut Process, word: &'static str, timeout: Duration) -> anyhow::Result<String> {
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
    /// The engine does not start or does not answer.
    pub fn new(engines: Arc<Engines<UciSpec>>) -> anyhow::Result<Self> {
        let mut engine = engines.lend()?;
        engine.talk(|process| {
            process.send("ucinewgame")?;
            get_ready(process)
        })?;
        Ok(Self(engine))
    }
}

fn ask(process: &mut Process, go: Go, game: GameSoFar<'_>) -> anyhow::Result<Action> {
    let mut position = format!("position fen {}", game.start.position());
    let mut replayed = typed::<Chess>(game.start)?.clone();
    for (number, &action) in game.actions.iter().enumerate() {
        position += if number == 0 { " moves " } else { " " };
        position += &replayed.uci(action);
        replayed.play_legal(action);
    }
    process.send(&position)?;
    let (limit, given) = match go {
        Go::Nodes(nodes) => (format!("nodes {nodes}"), 0),
        Go::Movetime(milliseconds) => (format!("movetime {milliseconds}"), milliseconds),
        Go::Depth(depth) => (format!("depth {depth}"), 0),
    };
    process.send(&format!("go {limit}"))?;
    let given = Duration::from_millis(given);
    let answer = wait_for(process, "bestmove", given + MOVE)?;
    let chosen = answer.split_whitespace().next().unwrap_or_default();
    typed::<Chess>(game.state)?
        .action_of_uci(chosen)
        .map_err(|_| Forfeit::illegal(process, answer.clone(), game.state.position()).into())
}

impl Chooser for UciPlayer {
    fn choose(&mut self, game: GameSoFar<'_>) -> anyhow::Result<Action> {
        let go = self.0.protocol().go;
        self.0.talk(|process| ask(process, go, game))
    }
}
