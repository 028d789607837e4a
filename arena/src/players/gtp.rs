//! A GTP engine as a player of Othello: an external program that speaks the Go Text Protocol, version 2. Passes are neither requested nor
//! told, because an engine that is told a move of one colour knows that the other has passed.

use std::{sync::Arc, time::Duration};

use anyhow::{anyhow, bail};
use games::{
    Action, Game as _, Notation as _, Player,
    othello::{Othello, PASS},
};

use super::{
    chooser::{Chooser, GameSoFar},
    engine::{Engines, IllegalMove, Loan, MOVE, Process, Protocol, READY},
    spec::GtpSpec,
    typed,
};

impl Protocol for GtpSpec {
    fn command(&self) -> &[String] {
        &self.command
    }

    fn greet(&self, process: &mut Process) -> anyhow::Result<()> {
        ask(process, "boardsize 8", READY).map(drop)
    }
}

/// Sends a command and returns the answer, without `=`.
fn ask(process: &mut Process, command: &str, timeout: Duration) -> anyhow::Result<String> {
    process.send(command)?;
    let answer = process.wait("=", timeout, |line| {
        let line = line.trim();
        match line.strip_prefix('=') {
            Some(answer) => Some(Ok(answer.trim().to_owned())),
            None => line.strip_prefix('?').map(|error| Err(error.trim().to_owned())),
        }
    })?;
    let program = &process.program;
    answer.map_err(|answer| anyhow!("the engine {program} refused `{command}`: {answer}"))
}

/// Name of a player's colour in GTP. Black begins.
fn colour(player: Player) -> &'static str {
    match player {
        Player::First => "black",
        Player::Second => "white",
    }
}

/// An engine in one game.
#[derive(Debug)]
pub struct GtpPlayer {
    engine: Loan<GtpSpec>,
    /// Number of actions that the engine knows.
    told: usize,
}

impl GtpPlayer {
    /// Takes an idle engine, or starts one, and begins a new game.
    ///
    /// # Errors
    /// The engine does not start or does not answer.
    pub fn new(engines: Arc<Engines<GtpSpec>>) -> anyhow::Result<Self> {
        let mut engine = engines.lend()?;
        engine.talk(|process| ask(process, "clear_board", READY).map(drop))?;
        Ok(Self { engine, told: 0 })
    }
}

impl Chooser for GtpPlayer {
    fn choose(&mut self, game: GameSoFar<'_>) -> anyhow::Result<Action> {
        let (start, state) = (typed::<Othello>(game.start)?, typed::<Othello>(game.state)?);
        if *start != Othello::initial() {
            let program = self.engine.protocol().command.join(" ");
            let position = start.position();
            bail!("the engine {program} plays from the usual start only, not from {position}");
        }
        let mut legal = Vec::new();
        state.legal_actions(&mut legal);
        if legal == [PASS] {
            return Ok(PASS);
        }
        let told = self.told;
        let action = self.engine.talk(|process| {
            tell(process, start, game.actions, told)?;
            genmove(process, state)
        })?;
        // `genmove` plays the move as well.
        self.told = game.actions.len() + 1;
        Ok(action)
    }
}

/// Plays the actions after the first `told` ones.
fn tell(process: &mut Process, start: &Othello, actions: &[Action], told: usize) -> anyhow::Result<()> {
    let mut replayed = *start;
    for (number, &action) in actions.iter().enumerate() {
        if number >= told && action != PASS {
            let (colour, text) = (colour(replayed.to_move()), replayed.write_turn(&[action]));
            ask(process, &format!("play {colour} {text}"), READY)?;
        }
        replayed.play_legal(action);
    }
    Ok(())
}

fn genmove(process: &mut Process, state: &Othello) -> anyhow::Result<Action> {
    let answer = ask(process, &format!("genmove {}", colour(state.to_move())), MOVE)?;
    let turn = state.read_turn(&answer);
    let action = turn.ok().and_then(|turn| turn.first().copied());
    action.ok_or_else(|| IllegalMove::new(process, answer, state.position()).into())
}
