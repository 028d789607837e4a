//! A GTP engine as a player: an external program that speaks the Go Text Protocol, version 2.
//!
//! In Othello passes are neither requested nor told, because an engine that is told a move of one colour knows that the other has passed.

use std::{sync::Arc, time::Duration};

use anyhow::{anyhow, bail};
use games::{
    Action, Game as _, Player,
    erased::{AnyGame, AnyState},
    go::Go,
    othello::{Othello, PASS},
    scene::Squares,
};

use super::{
    chooser::{Chooser, GameSoFar},
    engine::{Engines, Forfeit, Loan, MOVE, Process, Protocol, READY},
    spec::GtpSpec,
    typed,
    vertex::{self, colour},
};

/// An engine for the board of one game.
#[derive(Debug)]
pub struct GtpEngine {
    spec: GtpSpec,
    points: Squares,
}

impl GtpEngine {
    /// Makes the engine of a game.
    ///
    /// # Errors
    /// GTP has no moves for the game.
    pub fn new(game: &AnyGame, spec: GtpSpec) -> anyhow::Result<Self> {
        Ok(Self {
            spec,
            points: vertex::points(game)?,
        })
    }
}

impl Protocol for GtpEngine {
    fn command(&self) -> &[String] {
        &self.spec.command
    }

    fn greet(&self, process: &mut Process) -> anyhow::Result<()> {
        ask(process, &format!("boardsize {}", self.points.width), READY).map(drop)
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

/// An engine in one game.
#[derive(Debug)]
pub struct GtpPlayer {
    engine: Loan<GtpEngine>,
    /// Number of actions that the engine knows; `None` before the start of the game.
    told: Option<usize>,
}

impl GtpPlayer {
    /// Takes an idle engine, or starts one.
    ///
    /// # Errors
    /// The engine does not start or does not answer.
    pub fn new(engines: Arc<Engines<GtpEngine>>) -> anyhow::Result<Self> {
        Ok(Self {
            engine: engines.lend()?,
            told: None,
        })
    }
}

impl Chooser for GtpPlayer {
    fn choose(&mut self, game: GameSoFar<'_>) -> anyhow::Result<Action> {
        if is_silent_pass(game.state) {
            return Ok(PASS);
        }
        let points = self.engine.protocol().points;
        let told = self.told;
        let action = self.engine.talk(|process| {
            if told.is_none() {
                begin(process, points, game.start)?;
            }
            tell(process, points, game, told.unwrap_or_default())?;
            genmove(process, points, game.state)
        })??;
        // `genmove` plays the move as well.
        self.told = Some(game.actions.len() + 1);
        Ok(action)
    }
}

/// True if the player to act in Othello has to pass.
fn is_silent_pass(state: &dyn AnyState) -> bool {
    let mut legal = Vec::new();
    if state.game().name == Othello::NAME {
        state.legal_actions(&mut legal);
    }
    legal == [PASS]
}

/// Begins a game at `start`. Stones that lie there are played first.
fn begin(process: &mut Process, points: Squares, start: &dyn AnyState) -> anyhow::Result<()> {
    if start.game().name == Othello::NAME {
        let start = typed::<Othello>(start)?;
        if *start != Othello::initial() {
            let (program, position) = (&process.program, start.position());
            bail!("the engine {program} plays from the usual start only, not from {position}");
        }
    }
    ask(process, "clear_board", READY)?;
    if let Some(komi) = komi(start) {
        ask(process, &format!("komi {komi}"), READY)?;
    }
    if start.game().name != Othello::NAME {
        for (player, point) in stones(start) {
            let text = format!("play {} {}", colour(player), points.name(point));
            ask(process, &text, READY)?;
        }
    }
    Ok(())
}

/// Returns the stones on a board with their points.
fn stones(state: &dyn AnyState) -> Vec<(Player, u32)> {
    let mut stones = Vec::new();
    for board in state.scene(&[]).boards {
        let width = board.columns.len().max(1);
        for (place, cell) in board.cells.iter().enumerate() {
            // The label of a row is the number of its rank, which begins at 1 on whichever side the drawing has it.
            let rank = board.rows.get(place / width).and_then(|row| row.parse().ok());
            let rank = rank.unwrap_or(1u32).saturating_sub(1);
            let square = rank * width as u32 + (place % width) as u32;
            stones.extend(cell.pieces.iter().map(|piece| (piece.player, square)));
        }
    }
    stones
}

/// Returns the compensation for Black's first move in points: what Black's area is worth more than the score of a game that ends by
/// passes. `None` in other games than Go.
fn komi(start: &dyn AnyState) -> Option<f32> {
    let mut end = typed::<Go>(start).ok()?.clone();
    while end.outcome().is_none() {
        end.play_legal(end.actions() - 1);
    }
    let territory = end.territory()?;
    let area: f32 = territory.owners.into_iter().map(f32::from).sum();
    Some(area - territory.score)
}

/// Plays the actions after the first `told` ones.
fn tell(process: &mut Process, points: Squares, game: GameSoFar<'_>, told: usize) -> anyhow::Result<()> {
    let mut replayed = game.start.copy();
    for (number, &action) in game.actions.iter().enumerate() {
        if number >= told && !is_silent_pass(&*replayed) {
            let text = vertex::name(points, &*replayed, action);
            let colour = colour(replayed.to_move());
            ask(process, &format!("play {colour} {text}"), READY)?;
        }
        replayed.play_legal(action);
    }
    Ok(())
}

/// Returns the engine's move. The engine stays usable if the move loses the game.
fn genmove(
    process: &mut Process,
    points: Squares,
    state: &dyn AnyState,
) -> anyhow::Result<Result<Action, Forfeit>> {
    let answer = ask(process, &format!("genmove {}", colour(state.to_move())), MOVE)?;
    if answer.eq_ignore_ascii_case("resign") {
        let program = process.program.clone();
        return Ok(Err(Forfeit::Resigned { program }));
    }
    let read = vertex::read(points, state, &answer);
    Ok(read.map_err(|_| Forfeit::illegal(process, answer, state.position())))
}
