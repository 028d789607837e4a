//! The loop at the terminal: whose turn it is decides who is asked.

use std::{
    io::{self, BufRead, Write},
    path::PathBuf,
    sync::atomic::AtomicBool,
};

use anyhow::Context as _;
use arena::{Player as Opponent, players::Solo};
use games::{Action, Game, Player};
use search::GameKey;

use super::{
    board::Style,
    game::Play,
    order::{self, Order},
    table::{GameAt, Table},
};

/// Longest line that is read, in bytes.
const MAX_LINE: u64 = 4096;

/// A person, or two, at a table.
pub struct Session<'a, T: Table, In, Out> {
    /// The game.
    pub play: Play<T>,
    /// Who plays for the sides without a person, and gives hints.
    pub computer: &'a Opponent<GameAt<T>>,
    /// The sides that a person plays.
    pub people: Vec<Player>,
    /// How the board is drawn.
    pub style: Style,
    /// The seed of the computer's draws.
    pub seed: u64,
    /// What the person types.
    pub input: In,
    /// What the person sees.
    pub out: Out,
}

/// How a line was dealt with.
enum Next {
    /// The other side may be on turn now.
    Continue,
    /// The session is over.
    End,
}

impl<T: Table, In: BufRead, Out: Write> Session<'_, T, In, Out> {
    /// Plays until the game is over, somebody has had enough, or the input ends.
    ///
    /// # Errors
    /// Where the computer cannot go on, or nothing can be written.
    pub fn run(&mut self) -> anyhow::Result<()> {
        writeln!(self.out, "{}\n`help` shows what else can be typed.\n", T::HELP)?;
        let mut solo = self.seat()?;
        self.show()?;
        loop {
            if let Some(result) = T::result(self.play.state()) {
                writeln!(self.out, "{result}")?;
                return Ok(());
            }
            let mover = self.play.state().to_move();
            if !self.people.contains(&mover) {
                self.let_computer_play(&mut solo)?;
                self.show()?;
                continue;
            }
            let Some(line) = self.ask(mover)? else {
                writeln!(self.out)?;
                return Ok(());
            };
            if let Next::End = self.obey(order::read(&line), mover, &mut solo)? {
                return Ok(());
            }
        }
    }

    fn obey(&mut self, order: Order, mover: Player, solo: &mut Solo<GameAt<T>>) -> anyhow::Result<Next> {
        match order {
            Order::Nothing => {}
            Order::Help => writeln!(self.out, "{}\n{}", T::HELP, order::HELP)?,
            Order::Board => self.show()?,
            Order::Moves => writeln!(self.out, "{}", T::legal(self.play.state()))?,
            Order::Position => writeln!(self.out, "{}", self.play.state().position())?,
            Order::Hint => self.hint()?,
            Order::Undo => {
                if self.play.undo(&self.people) {
                    *solo = self.seat()?;
                    self.show()?;
                } else {
                    writeln!(self.out, "There is nothing of yours to take back.")?;
                }
            }
            Order::Resign => {
                let (loser, winner) = (T::player(mover), T::player(mover.other()));
                writeln!(self.out, "{loser} resigns. {winner} has won.")?;
                return Ok(Next::End);
            }
            Order::Save(file) => {
                let file = file.unwrap_or_else(|| PathBuf::from(format!("{}.json", GameAt::<T>::NAME)));
                match self.play.save(&file) {
                    Ok(()) => writeln!(self.out, "Saved as {}.", file.display())?,
                    Err(error) => writeln!(self.out, "{error:#}")?,
                }
            }
            Order::Quit => return Ok(Next::End),
            Order::Turn(text) => match T::read_turn(self.play.state(), &text) {
                Ok(actions) => {
                    for action in actions {
                        self.play(action, solo)?;
                    }
                    if T::is_mid_turn(self.play.state()) && self.play.state().to_move() == mover {
                        // The board would show a piece less; what is in the hand says more.
                        writeln!(self.out, "{}", T::remark(self.play.state()))?;
                    } else {
                        self.show()?;
                    }
                }
                Err(reason) => writeln!(self.out, "{reason}")?,
            },
        }
        Ok(Next::Continue)
    }

    fn play(&mut self, action: Action, solo: &mut Solo<GameAt<T>>) -> anyhow::Result<()> {
        self.play.play(action)?;
        solo.play(action)
            .context("the computer follows by the same rules")
    }

    /// The computer's whole turn.
    fn let_computer_play(&mut self, solo: &mut Solo<GameAt<T>>) -> anyhow::Result<()> {
        let before = self.play.state().clone();
        let (actions, value) = self.turn_of(solo)?;
        let mover = T::player(before.to_move());
        let turn = T::write_turn(&before, &actions);
        let name = self.computer.name();
        match value {
            Some(value) => writeln!(self.out, "{mover} ({name}) plays {turn}   value {value:+.2}")?,
            None => writeln!(self.out, "{mover} ({name}) plays {turn}")?,
        }
        for action in actions {
            self.play.play(action)?;
        }
        Ok(())
    }

    /// Lets `solo` choose and play until its turn is over. Also its own opinion of the position, where it has one.
    fn turn_of(&self, solo: &mut Solo<GameAt<T>>) -> anyhow::Result<(Vec<Action>, Option<f32>)> {
        let mover = solo.state().to_move();
        let never = AtomicBool::new(false);
        let mut actions = Vec::new();
        let mut value = None;
        loop {
            let action = solo.choose(&never)?;
            if value.is_none() {
                value = solo.thinker().map(|thinker| thinker.decision().value.get());
            }
            solo.play(action)?;
            actions.push(action);
            let state = solo.state();
            let goes_on = state.outcome().is_none() && state.to_move() == mover && T::is_mid_turn(state);
            if !goes_on {
                return Ok((actions, value));
            }
        }
    }

    fn hint(&mut self) -> anyhow::Result<()> {
        let mut helper = self.seat()?;
        let before = self.play.state().clone();
        let (actions, value) = self.turn_of(&mut helper)?;
        let turn = T::write_turn(&before, &actions);
        match value {
            Some(value) => writeln!(self.out, "{turn}   value {value:+.2}")?,
            None => writeln!(self.out, "{turn}")?,
        }
        Ok(())
    }

    /// The computer, where the game stands.
    fn seat(&self) -> anyhow::Result<Solo<GameAt<T>>> {
        let key = GameKey {
            run_seed: self.seed,
            game: self.play.actions().len() as u64,
        };
        let mut solo = self.computer.solo(self.play.begin(), key)?;
        for &action in self.play.actions() {
            solo.play(action)?;
        }
        Ok(solo)
    }

    fn show(&mut self) -> io::Result<()> {
        let state = self.play.state();
        let board = T::draw(state, self.style);
        let remark = T::remark(state);
        write!(self.out, "\n{board}")?;
        if !remark.is_empty() {
            writeln!(self.out, "{remark}")?;
        }
        writeln!(self.out)
    }

    /// A line from the person; `None` where the input has ended.
    fn ask(&mut self, mover: Player) -> io::Result<Option<String>> {
        write!(self.out, "{}> ", T::player(mover))?;
        self.out.flush()?;
        let mut line = Vec::new();
        let read = io::Read::take(&mut self.input, MAX_LINE).read_until(b'\n', &mut line)?;
        Ok((read > 0).then(|| String::from_utf8_lossy(&line).into_owned()))
    }
}
