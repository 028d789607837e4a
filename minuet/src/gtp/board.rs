//! [`Board`]: the game under way, its rules, and its moves in the words of the protocol.

use std::path::Path;

use arena::players::vertex;
use games::{
    Action, Course, Outcome, Player,
    erased::{AnyGame, AnyState, changed},
    registry,
    scene::Squares,
    terminal::Style,
};
use serde_json::Value;

use crate::play::MAX_FILE;

/// Name of the rule that compensates for the first move.
const KOMI: &str = "komi";
/// Name of the pass.
const PASS: &str = "pass";

/// A game under way.
#[derive(Debug)]
pub struct Board {
    game: &'static AnyGame,
    rules: Value,
    points: Squares,
    course: Course,
    /// Number of actions after each move. A move may have two: a pass of the other player, and its own.
    moves: Vec<usize>,
}

impl Board {
    /// Begins a game by the rules that people play by.
    ///
    /// # Errors
    /// The protocol cannot express the moves of the game.
    pub fn new(game: &'static AnyGame) -> anyhow::Result<Self> {
        let rules = game.people_rules();
        let points = vertex::points(game)?;
        Ok(Self {
            game,
            points,
            course: Course::new(game.variant(&rules, None)?.start(None)?),
            rules,
            moves: Vec::new(),
        })
    }

    /// Returns the game, with the size of its board.
    pub const fn game(&self) -> &'static AnyGame {
        self.game
    }

    /// Returns the course of the game.
    pub const fn course(&self) -> &Course {
        &self.course
    }

    /// Returns the present state.
    pub fn state(&self) -> &dyn AnyState {
        self.course.state()
    }

    /// Returns the game with a board of this size.
    ///
    /// # Errors
    /// Sentence that says which sizes there are.
    pub fn of_size(&self, size: &str) -> Result<&'static AnyGame, String> {
        if size.parse() == Ok(self.points.width) {
            return Ok(self.game);
        }
        let name = self.game.name;
        registry::find(&format!("{name}:{size}")).map_err(|error| format!("unacceptable size: {error}"))
    }

    /// Begins the game anew, with a board of the same game. Komi stays.
    ///
    /// # Errors
    /// Sentence that says why the game has no such rules.
    pub fn clear(&mut self, game: &'static AnyGame) -> Result<(), String> {
        let komi = self.rules.get(KOMI).cloned();
        let mut board = Self::new(game).map_err(|error| format!("{error:#}"))?;
        if let Some(komi) = komi {
            board.set_rule(KOMI, komi)?;
        }
        *self = board;
        Ok(())
    }

    /// Takes over the game of an SGF file, up to but without the move with the number `until`.
    ///
    /// # Errors
    /// Sentence that says why the file cannot be read.
    pub fn load(&mut self, file: &str, until: Option<usize>) -> Result<(), String> {
        let text = service::filesystem::read(Path::new(file), MAX_FILE);
        let text = text.map_err(|error| format!("cannot load file: {error}"))?;
        let read = self.game.read_sgf(&String::from_utf8_lossy(&text));
        let read = read.map_err(|error| error.to_string());
        let played = read.and_then(|game| Ok((game.course()?, game.rules)));
        let (mut course, variant) = played.map_err(|error| format!("cannot load file: {error}"))?;
        if let Some(number) = until {
            course.truncate(number.saturating_sub(1));
        }
        *self = Self {
            game: variant.game(),
            rules: variant.rules(),
            points: vertex::points(variant.game()).map_err(|error| format!("cannot load file: {error}"))?,
            moves: (1..=course.actions().len()).collect(),
            course,
        };
        Ok(())
    }

    /// True if the rules have a compensation for the first move.
    pub fn has_komi(&self) -> bool {
        self.rules.get(KOMI).is_some()
    }

    /// Sets the compensation for the first move. The moves stay.
    ///
    /// # Errors
    /// Sentence that says which numbers are possible.
    pub fn set_komi(&mut self, text: &str) -> Result<(), String> {
        let komi: f32 = text
            .parse()
            .map_err(|_| format!("syntax error: {text:?} is not a number"))?;
        // JSON has no infinity.
        let komi = serde_json::Number::from_f64(komi.into());
        let komi = komi.ok_or_else(|| format!("syntax error: {text:?} is not a number"))?;
        self.set_rule(KOMI, komi.into())
    }

    fn set_rule(&mut self, rule: &str, value: Value) -> Result<(), String> {
        let rules = changed(self.rules.clone(), [(rule.to_owned(), value)]);
        let variant = self
            .game
            .variant(&rules, None)
            .map_err(|error| error.to_string())?;
        let begin = self.course.begin().position();
        let begin = variant.start(Some(&begin)).map_err(|error| error.to_string())?;
        let mut course = Course::new(begin);
        for &action in self.course.actions() {
            course.play(action).map_err(|error| error.to_string())?;
        }
        (self.rules, self.course) = (rules, course);
        Ok(())
    }

    /// Reads a colour.
    ///
    /// # Errors
    /// Sentence that says how colours are written.
    pub fn player(text: &str) -> Result<Player, String> {
        vertex::player(text).ok_or_else(|| format!("syntax error: {text:?} is not black or white"))
    }

    /// Returns the pass; `None` in games without one.
    fn pass(&self) -> Option<Action> {
        let (state, pass) = (self.state(), self.points.count());
        (pass < state.actions() && vertex::name(self.points, state, pass) == PASS).then_some(pass)
    }

    /// Returns the move of a player after the end of the game: a pass. `None` before the end, and in games without passes.
    pub fn move_after_end(&self) -> Option<&'static str> {
        self.state().outcome()?;
        self.pass().map(|_| PASS)
    }

    /// Makes it this player's turn: the other player passes if the rules allow it. [`Board::settle`] takes the pass back.
    ///
    /// # Errors
    /// Sentence that says why it cannot be the player's turn.
    pub fn turn_to(&mut self, player: Player) -> Result<(), String> {
        let state = self.course.state();
        let is_over = |state: &dyn AnyState| Some(format!("the game is over. {}", state.result_text()?));
        if let Some(error) = is_over(state) {
            return Err(error);
        }
        if state.to_move() == player {
            return Ok(());
        }
        let turn = vertex::colour(state.to_move());
        let passed = self.pass().map(|pass| self.course.play(pass));
        if !matches!(passed, Some(Ok(()))) {
            return Err(format!("it is {turn}'s turn"));
        }
        match is_over(self.state()) {
            Some(_) => Err(format!("it is {turn}'s turn, whose pass ends the game")),
            None => Ok(()),
        }
    }

    /// Plays a move, with a pass of the other player before it where it is not the player's turn.
    ///
    /// # Errors
    /// Sentence that says why the move is not legal. [`Board::settle`] takes back what was played of it.
    pub fn play(&mut self, player: Player, text: &str) -> Result<(), String> {
        let turn = self.turn_to(player);
        let action = turn.and_then(|()| vertex::read(self.points, self.state(), text));
        self.play_action(action.map_err(|reason| format!("illegal move: {reason}"))?)
    }

    /// Plays an action of the player to act.
    ///
    /// # Errors
    /// Sentence that says why the action is not legal.
    pub fn play_action(&mut self, action: Action) -> Result<(), String> {
        self.course.play(action).map_err(|error| error.to_string())?;
        self.moves.push(self.course.actions().len());
        Ok(())
    }

    /// Takes back the actions after the last whole move.
    pub fn settle(&mut self) {
        self.course
            .truncate(self.moves.last().copied().unwrap_or_default());
    }

    /// Takes back the last move. Returns false if there is none.
    pub fn undo(&mut self) -> bool {
        let had = self.moves.pop().is_some();
        self.settle();
        had
    }

    /// Returns the name of an action of this state in the words of the protocol.
    pub fn name(&self, state: &dyn AnyState, action: Action) -> String {
        let name = vertex::name(self.points, state, action);
        match action < self.points.count() {
            true => name.to_uppercase(),
            false => name,
        }
    }

    /// Returns the result: in Go the points by which a player leads if the board counts as it is, in other games the winner.
    ///
    /// # Errors
    /// Sentence that says why there is none yet.
    pub fn score(&self) -> Result<String, String> {
        let fields = self.state().json_fields();
        let area = fields.iter().find(|(name, _)| *name == "area");
        let area = area.and_then(|(_, area)| area.as_f64());
        let komi = self.rules.get(KOMI).and_then(Value::as_f64);
        if let (Some(area), Some(komi)) = (area, komi) {
            let lead = area - komi;
            return Ok(match lead {
                0.0 => "0".into(),
                lead if lead > 0.0 => format!("B+{lead}"),
                lead => format!("W+{}", -lead),
            });
        }
        match self.state().outcome() {
            Some(Outcome::Won(Player::First)) => Ok("B+".into()),
            Some(Outcome::Won(Player::Second)) => Ok("W+".into()),
            Some(Outcome::Draw | Outcome::Scored(_)) => Ok("0".into()),
            None => Err("cannot score: the game is not over".into()),
        }
    }

    /// Returns the board as text.
    pub fn drawn(&self) -> String {
        let style = Style {
            ascii: true,
            ..Style::default()
        };
        let to_move = self.game.player_name(self.state().to_move());
        let remark = self.state().scene(&[]).remark;
        format!("\n{}\n{to_move} to move. {remark}", self.state().draw(style))
    }
}
