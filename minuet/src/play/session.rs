//! The loop at the terminal: asks the person or the computer whose turn it is for a move, and shows the board.

use std::{
    io::{self, BufRead, Write},
    ops::ControlFlow,
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
};

use anyhow::Context as _;
use arena::{Player as Opponent, players::Solo};
use games::{Action, Player, erased::AnyGame, terminal::Style};
use search::GameKey;

use super::{
    command::{self, Command},
    game::{self, Played},
};
use crate::rules::lines::{Line, next_line};

/// Longest line that is read, in bytes.
const MAX_LINE: usize = 4096;

/// A game at a terminal, of one person, two, or none.
pub struct Session<'a, In, Out> {
    /// Game under way.
    pub play: Played,
    /// Player of the sides that no person plays. Also gives hints.
    pub computer: &'a Opponent,
    /// Sides that people play.
    pub people: Vec<Player>,
    /// Look of the board.
    pub style: Style,
    /// Seed of the computer's random numbers.
    pub seed: u64,
    /// Lines that the person types.
    pub input: In,
    /// Output that the person sees.
    pub out: Out,
}

impl<In: BufRead, Out: Write> Session<'_, In, Out> {
    /// Plays until the game is over, a person quits or resigns, or the input ends.
    ///
    /// # Errors
    /// The computer cannot choose a move, or the output cannot be written.
    pub fn run(&mut self) -> anyhow::Result<()> {
        writeln!(
            self.out,
            "{}\n`help` shows what else can be typed.\n",
            self.game().help
        )?;
        let mut solo = self.computer_here()?;
        self.show()?;
        loop {
            if let Some(result) = self.play.course.state().result_text() {
                writeln!(self.out, "{result}")?;
                return Ok(());
            }
            let mover = self.play.course.state().to_move();
            if !self.people.contains(&mover) {
                self.let_computer_play(&mut solo)?;
                self.show()?;
                continue;
            }
            let Some(line) = self.ask(mover)? else {
                writeln!(self.out)?;
                return Ok(());
            };
            if self.execute(command::read(&line), mover, &mut solo)?.is_break() {
                return Ok(());
            }
        }
    }

    /// Does what a line says. Breaks if the session ends.
    fn execute(
        &mut self,
        command: Command,
        mover: Player,
        solo: &mut Solo,
    ) -> anyhow::Result<ControlFlow<()>> {
        match command {
            Command::Nothing => {}
            Command::Help => writeln!(self.out, "{}\n{}", self.game().help, command::HELP)?,
            Command::Board => self.show()?,
            Command::Moves => writeln!(self.out, "{}", self.play.course.state().legal_text())?,
            Command::Position => writeln!(self.out, "{}", self.play.course.state().position())?,
            Command::Hint => self.hint()?,
            Command::Undo => {
                if self.play.course.undo(&self.people) {
                    *solo = self.computer_here()?;
                    self.show()?;
                } else {
                    writeln!(self.out, "There is nothing of yours to take back.")?;
                }
            }
            Command::Resign => {
                let (loser, winner) = (
                    self.game().player_name(mover),
                    self.game().player_name(mover.other()),
                );
                writeln!(self.out, "{loser} resigns. {winner} has won.")?;
                return Ok(ControlFlow::Break(()));
            }
            Command::Save(file) => {
                let file = file.unwrap_or_else(|| PathBuf::from(format!("{}.json", self.game().name)));
                let names =
                    [Player::First, Player::Second].map(|player| match self.people.contains(&player) {
                        true => "a person",
                        false => self.computer.name(),
                    });
                match game::save(&self.play, names, &file) {
                    Ok(()) => writeln!(self.out, "Saved as {}.", file.display())?,
                    Err(error) => writeln!(self.out, "{error:#}")?,
                }
            }
            Command::Quit => return Ok(ControlFlow::Break(())),
            Command::Turn(text) => match self.play.course.state().read_turn(&text) {
                Ok(actions) => {
                    for action in actions {
                        self.play(action, solo)?;
                    }
                    if self.play.course.state().is_mid_turn() && self.play.course.state().to_move() == mover {
                        // The board lacks the piece in the hand, so the remark says more.
                        writeln!(self.out, "{}", self.play.course.state().scene(&[]).remark)?;
                    } else {
                        self.show()?;
                    }
                }
                Err(reason) => writeln!(self.out, "{reason}")?,
            },
        }
        Ok(ControlFlow::Continue(()))
    }

    fn play(&mut self, action: Action, solo: &mut Solo) -> anyhow::Result<()> {
        self.play.course.play(action)?;
        solo.play(action).context("the computer refuses a legal action")
    }

    /// Plays a whole turn of the computer.
    fn let_computer_play(&mut self, solo: &mut Solo) -> anyhow::Result<()> {
        let before = self.play.course.state().copy();
        let (actions, value) = self.turn_of(solo)?;
        let mover = self.game().player_name(before.to_move());
        let turn = before.write_turn(&actions);
        let name = self.computer.name();
        match value {
            Some(value) => writeln!(self.out, "{mover} ({name}) plays {turn}   value {value:+.2}")?,
            None => writeln!(self.out, "{mover} ({name}) plays {turn}")?,
        }
        for action in actions {
            self.play.course.play(action)?;
        }
        Ok(())
    }

    /// Lets `solo` choose and play until its turn is over. Returns the actions, and the value of its first search if it
    /// searches.
    fn turn_of(&self, solo: &mut Solo) -> anyhow::Result<(Vec<Action>, Option<f32>)> {
        let mover = solo.state().to_move();
        let never = Arc::new(AtomicBool::new(false));
        let mut actions = Vec::new();
        let mut value = None;
        loop {
            let action = solo.choose(&never)?;
            if value.is_none() {
                value = solo
                    .thinker()
                    .map(|thinker| thinker.search().decision().value.get());
            }
            solo.play(action)?;
            actions.push(action);
            let state = solo.state();
            let goes_on = state.outcome().is_none() && state.to_move() == mover && state.is_mid_turn();
            if !goes_on {
                return Ok((actions, value));
            }
        }
    }

    fn hint(&mut self) -> anyhow::Result<()> {
        let mut helper = self.computer_here()?;
        let before = self.play.course.state().copy();
        let (actions, value) = self.turn_of(&mut helper)?;
        let turn = before.write_turn(&actions);
        match value {
            Some(value) => writeln!(self.out, "{turn}   value {value:+.2}")?,
            None => writeln!(self.out, "{turn}")?,
        }
        Ok(())
    }

    /// The computer in the present position of the game.
    fn computer_here(&self) -> anyhow::Result<Solo> {
        let key = GameKey {
            run_seed: self.seed,
            game: self.play.course.actions().len() as u64,
        };
        let mut solo = self.computer.solo(self.play.course.begin(), key)?;
        for &action in self.play.course.actions() {
            solo.play(action)?;
        }
        Ok(solo)
    }

    fn game(&self) -> &'static AnyGame {
        self.play.course.begin().game()
    }

    fn show(&mut self) -> io::Result<()> {
        let state = self.play.course.state();
        let board = state.draw(self.style);
        let remark = state.scene(&[]).remark;
        write!(self.out, "\n{board}")?;
        if !remark.is_empty() {
            writeln!(self.out, "{remark}")?;
        }
        writeln!(self.out)
    }

    /// Reads a line from the person. `None` if the input has ended.
    fn ask(&mut self, mover: Player) -> io::Result<Option<String>> {
        write!(self.out, "{}> ", self.game().player_name(mover))?;
        self.out.flush()?;
        let mut buffer = Vec::new();
        Ok(match next_line(&mut self.input, &mut buffer)? {
            None => None,
            Some(Line::Whole(line)) if line.len() <= MAX_LINE => {
                Some(String::from_utf8_lossy(line).into_owned())
            }
            Some(_) => {
                writeln!(self.out, "The line is too long.")?;
                Some(String::new())
            }
        })
    }
}
