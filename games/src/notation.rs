//! The [`Notation`] trait: how people and programs read and write a game.
//!
//! It adds to the rules ([`Game`]) all that is not needed to search or to train: turns as text, drawings, help texts, actions in JSON,
//! and the numbers that tools use (usual openings, known perft counts). The registry lists games with a notation, so that a game
//! without one does not compile.

use std::sync::{Arc, atomic::AtomicBool};

use serde_json::{Map, Value};

use crate::{
    Action, Game, IllegalAction, Outcome, Player,
    go::sgf::SgfError,
    perft::KnownPerft,
    probes::ProbeLine,
    scene::{Board, Clicks, Scene},
    terminal::{self, Style},
};

/// Fields of one game in a JSON answer.
pub type JsonFields = Vec<(&'static str, Value)>;

/// Codec of a game's files in the Smart Game Format (SGF).
#[derive(Clone, Copy, Debug)]
pub struct Sgf<G: Game> {
    /// Reads the first game of a text.
    pub read: fn(&str) -> Result<SgfGame<G::Rules>, SgfError>,
    /// Writes a game.
    pub write: WriteSgf<G>,
}

/// Writes the game of these actions from a state as SGF, with the names of the first and the second player.
pub type WriteSgf<G> = fn(&G, &[Action], [&str; 2]) -> Result<String, IllegalAction>;

/// Main line of a game in an SGF file.
#[derive(Clone, Debug, PartialEq)]
pub struct SgfGame<R> {
    /// Rules: those that the file gives, and for the others those of the reader.
    pub rules: R,
    /// Position in which the game begins, as [`Game::start`] reads it. `None` for the usual start.
    pub position: Option<String>,
    /// Actions from there. All are legal.
    pub actions: Vec<Action>,
    /// Names of the first and the second player; empty if unknown.
    pub names: [String; 2],
    /// Ranks or ratings of the players, e.g. `3d` or `2150`; empty if unknown.
    pub ranks: [String; 2],
    /// Result as the file gives it, e.g. `B+3.5`; empty if unknown.
    pub result: String,
}

/// A paragraph of the rules for people, with positions as text that show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lesson {
    /// Paragraph.
    pub text: &'static str,
    /// Positions, with a caption each.
    pub positions: &'static [(&'static str, &'static str)],
}

/// A game as people and programs outside see it.
///
/// ```
/// use games::{Notation, Game, chess::Chess};
///
/// let mut state = Chess::start(&Chess::people_rules(), None)?;
/// for text in ["e4", "e5", "Nf3"] {
///     for action in state.read_turn(text)? {
///         state.play(action)?;
///     }
/// }
/// assert_eq!(state.read_turn("Qxf7").unwrap_err(), "Qxf7 is not legal here");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Notation: Game {
    /// Explanation of how turns are entered, with an example, in a few lines.
    const HELP: &'static str;
    /// Names of the first and the second player, e.g. `White`.
    const PLAYER_NAMES: [&'static str; 2];

    /// Returns the names of the players: [`Notation::PLAYER_NAMES`], or those of the game from outside.
    fn player_names() -> [&'static str; 2] {
        Self::PLAYER_NAMES
    }

    /// Positions with known perft counts under [`Notation::json_rules`], checked by tests and timed by the benchmark.
    const KNOWN_PERFT: &'static [KnownPerft];

    /// Usual representation: that of new runs, and of the rows in a JSON answer whose request gives none.
    const OPTIONS: u32 = 0;

    /// Names of the options of a representation: the first one is 1 in its number, the next ones 2, 4 and so on.
    const OPTION_NAMES: &'static [&'static str] = &[];

    /// Known positions on which networks of different ages are compared, 8 to 16: openings, wins, threats. If there are none,
    /// [`Probe::all`](crate::probes::Probe::all) draws positions.
    const PROBES: &'static [ProbeLine] = &[];

    /// Rules in half a page, for people who have never seen the game. Empty for a game that most people know.
    const LESSONS: &'static [Lesson] = &[];

    /// Random actions that an opening usually has, so that games of a match differ.
    const OPENING_PLIES: u32 = 8;

    /// Names of the fields, besides `start`, that say where a game in JSON begins.
    const START_FIELDS: &'static [&'static str] = &[];

    /// Text between the actions of a turn.
    const BETWEEN_ACTIONS: &'static str = " ";

    /// True if games are recorded as PGN, whose moves [`Notation::write_turn`] writes.
    const HAS_PGN: bool = false;

    /// Codec of SGF files. `None`: the game has none.
    const SGF: Option<Sgf<Self>> = None;

    /// True if [`Notation::solve_actions`] finds exact values.
    const HAS_SOLVER: bool = false;

    /// Settings of a new run in which this game differs from other games, in the form of a `run.toml`. A game without any begins with
    /// those that suit others, and a network that suits its board.
    const RUN_SETTINGS: &'static str = "";

    /// Returns the text about a key of [`Game::Rules`](crate::Game::Rules), for a `run.toml`. `None` if the rules have no such
    /// key.
    fn rule_comment(key: &str) -> Option<&'static str> {
        let _ = key;
        None
    }

    /// Returns the drawing of the position. `last_turn` holds the actions that led to it, which the drawing marks; it may be
    /// empty.
    fn scene(&self, last_turn: &[Action]) -> Scene;

    /// Returns the clicks with which a person plays a legal action on the drawing. By default there are none: a page offers
    /// the action by its name only.
    fn clicks(&self, action: Action) -> Clicks {
        let _ = action;
        Clicks::default()
    }

    /// Reads actions as people write them. Each is legal after those before it; they need not complete the turn.
    ///
    /// # Errors
    /// Sentence for the person who wrote `text`: why it is not a legal turn.
    fn read_turn(&self, text: &str) -> Result<Vec<Action>, String>;

    /// Returns the turn of one action, which a person wrote as `text`.
    ///
    /// # Errors
    /// Sentence for the person: why the action is not legal.
    fn turn_of(&self, text: &str, action: Action) -> Result<Vec<Action>, String> {
        match self.clone().play(action) {
            Ok(()) => Ok(vec![action]),
            Err(error) => Err(format!("{text} is not legal: {}", error.reason)),
        }
    }

    /// Writes a legal action as people do.
    fn write_action(&self, action: Action) -> String;

    /// Writes actions of one player, played one after the other from this state, as people do.
    fn write_turn(&self, actions: &[Action]) -> String {
        let mut state = self.clone();
        let write = |&action: &Action| {
            let text = state.write_action(action);
            state.play_legal(action);
            text
        };
        let texts: Vec<String> = actions.iter().map(write).collect();
        texts.join(Self::BETWEEN_ACTIONS)
    }

    /// Passes the exact value of each legal action for the player to act to `found`: 1 for a win, 0 for a draw, -1 for a loss.
    /// Setting `stop` ends the work early. By default the game has no solver, and nothing is found.
    fn solve_actions(&self, stop: &Arc<AtomicBool>, found: &mut dyn FnMut(Action, i8)) {
        let _ = (stop, found);
    }

    /// Returns the rules that people play by.
    fn people_rules() -> Self::Rules {
        Self::json_rules()
    }

    /// Returns a remark about the position that the board does not show: a check, a piece in the hand. Empty if there is none.
    fn remark(&self) -> String {
        String::new()
    }

    /// True if a turn has begun that its player must complete.
    fn is_mid_turn(&self) -> bool {
        false
    }

    /// Returns the board as text for a terminal. Each line ends with a line feed.
    fn draw(&self, style: Style) -> String {
        terminal::draw(&self.scene(&[]), style)
    }

    /// Returns the list of the legal actions as people write them.
    fn legal_text(&self) -> String {
        let mut actions = Vec::new();
        self.legal_actions(&mut actions);
        let texts: Vec<String> = actions.iter().map(|&action| self.write_action(action)).collect();
        texts.join("  ")
    }

    /// Returns a sentence that says how the game ended. `None` while it runs.
    fn result_text(&self) -> Option<String> {
        let reason = self.ending().unwrap_or_default().replace('-', " ");
        Some(match self.outcome()? {
            Outcome::Won(player) => {
                let winner = Self::player_names()[player.index()];
                if reason.ends_with("won") {
                    format!("{winner} has won.")
                } else {
                    format!("{winner} has won ({reason}).")
                }
            }
            Outcome::Draw if reason.is_empty() || reason == "draw" => "The game is a draw.".into(),
            Outcome::Draw => format!("The game is a draw ({reason})."),
            Outcome::Scored(score) => format!("The game is over; it is worth {score:.2}."),
        })
    }

    /// Returns the player called `name`, in any case: as the game calls it, or `first` or `second`.
    fn player_named(name: &str) -> Option<Player> {
        let name = name.to_lowercase();
        [(Player::First, "first"), (Player::Second, "second")]
            .into_iter()
            .find(|&(player, number)| {
                name == number || name == Self::player_names()[player.index()].to_lowercase()
            })
            .map(|(player, _)| player)
    }

    /// Returns the rules of a game in JSON that switches none.
    fn json_rules() -> Self::Rules {
        Self::Rules::default()
    }

    /// Returns the state that a game in JSON begins in. `fields` holds the fields of [`Notation::START_FIELDS`], among others.
    ///
    /// # Errors
    /// Message that says why there is no such state.
    fn start_from_json(
        rules: &Self::Rules,
        start: Option<&Value>,
        fields: &Map<String, Value>,
    ) -> Result<Self, String> {
        let _ = fields;
        let text = match start {
            None => None,
            Some(Value::String(text)) => Some(text.as_str()),
            Some(other) => return Err(format!("`start` is {other}, not a position as text")),
        };
        Self::start(rules, text).map_err(|error| error.to_string())
    }

    /// Returns the action that a JSON value means in this state. It need not be legal.
    ///
    /// # Errors
    /// Message that says why the value is not an action.
    fn action_from_json(&self, value: &Value) -> Result<Action, String> {
        value
            .as_u64()
            .and_then(|number| Action::try_from(number).ok())
            .filter(|&action| action < self.actions())
            .ok_or_else(|| format!("{value} is not an action number (0 to {})", self.actions() - 1))
    }

    /// Returns the action of this state as a JSON value.
    fn action_to_json(&self, action: Action) -> Value {
        Value::from(action)
    }

    /// Returns the word for the outcome in JSON: `first`, `second`, `draw`, or a word of the game's own. `None` while the game
    /// runs.
    fn outcome_name(&self) -> Option<&'static str> {
        match self.outcome()? {
            Outcome::Won(Player::First) => Some("first"),
            Outcome::Won(Player::Second) => Some("second"),
            Outcome::Draw | Outcome::Scored(_) => Some("draw"),
        }
    }

    /// Returns the fields of a JSON answer that only this game has.
    fn json_fields(&self, encoding: Self::Encoding) -> JsonFields {
        let _ = encoding;
        Vec::new()
    }

    /// Returns the scene of these boards, with the names and the remark that the other methods give. The cells of the first board
    /// have the owners that [`Game::territory`] gives.
    fn scene_of(&self, mut boards: Vec<Board>) -> Scene {
        if let (Some(board), Some(territory)) = (boards.first_mut(), self.territory()) {
            board.mark_owners(&territory);
        }
        Scene {
            game: Self::name(),
            players: Self::player_names(),
            to_move: self.to_move(),
            boards,
            hand: None,
            remark: self.remark(),
            tree: Vec::new(),
        }
    }
}
