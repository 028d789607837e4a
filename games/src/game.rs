//! The [`Game`] trait: a cheap-to-clone state with its history.

use std::fmt;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    layout::RowLayout,
    symmetries::{OtherSide, RowSymmetries},
    value::FirstValue,
};

/// An action id below the game's action count, absolute (never mirrored).
///
/// What the network's policy calls the same action is [`Game::policy_index`].
pub type Action = u32;

/// Who acts, or who won.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Player {
    /// The player who begins (White, Black in Othello; the only one in a one-player game).
    First,
    /// The other one.
    Second,
}

impl Player {
    /// The other player.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }

    /// `1.0` for the first player, `-1.0` for the second.
    pub const fn sign(self) -> f32 {
        match self {
            Self::First => 1.0,
            Self::Second => -1.0,
        }
    }

    /// `0` for the first player, `1` for the second.
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// How a game ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// One player won.
    Won(Player),
    /// Nobody won.
    Draw,
    /// A one-player game ended with this value, in `[-1, 1]`.
    Scored(f32),
}

impl Outcome {
    /// The outcome as a value: 1 for a win of the first player, -1 for a loss, 0 for a draw.
    pub fn value(self) -> FirstValue {
        match self {
            Self::Won(player) => FirstValue::new(player.sign()),
            Self::Draw => FirstValue::new(0.0),
            Self::Scored(value) => FirstValue::new(value),
        }
    }
}

/// One of a game's board symmetries; `0` is the identity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Symmetry(pub u8);

impl Symmetry {
    /// The symmetry that changes nothing.
    pub const IDENTITY: Self = Self(0);
}

/// The action is not legal in the state it was played in (or the game is over).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("action {action} is not legal here: {reason}")]
pub struct IllegalAction {
    /// The action as it was given.
    pub action: Action,
    /// What is wrong with it, in a few words.
    pub reason: &'static str,
}

/// A start position or a rules table that this game cannot begin from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot start a game of {game}: {reason}")]
pub struct StartError {
    /// The game's name.
    pub game: &'static str,
    /// What is wrong, naming the field or square.
    pub reason: String,
}

/// A start that comes with a solution.
#[derive(Clone, Debug)]
pub struct Drawn<G> {
    /// Where the game begins.
    pub start: G,
    /// Actions that lead from there to the best outcome; not necessarily the fewest.
    pub solution: Vec<Action>,
}

/// The check of [`Game::encoding`] for games with only one representation.
pub(crate) fn single_encoding(game: &'static str, options: u32) -> Result<(), StartError> {
    if options == 0 {
        return Ok(());
    }
    Err(StartError {
        game,
        reason: format!("it has one representation, options 0, not {options}"),
    })
}

/// A state of a game, with as much history as its rules need (repetitions, the turn so far).
///
/// One turn may hold several actions of the same player, and a game may have one player, so
/// nothing may assume that players alternate by depth. Cloning is cheap, and
/// `clone_from` into an old state does not allocate once its buffers have grown.
pub trait Game: Clone + fmt::Debug + Send + Sync + 'static {
    /// What the rules can be switched between. The default is what self-play uses.
    type Rules: Clone + fmt::Debug + Default + PartialEq + Serialize + DeserializeOwned + Send + Sync;

    /// Which of the game's representations is written. Checked once, by [`Game::encoding`].
    type Encoding: Copy + fmt::Debug + PartialEq + Send + Sync + 'static;

    /// The name used in configurations, records and metadata, e.g. `paco-sako`.
    const NAME: &'static str;
    /// 1 or 2.
    const PLAYERS: u8;
    /// Number of action ids, which is also the size of the policy.
    const ACTIONS: u32;
    /// Number of symmetries, the identity included.
    const SYMMETRIES: u8;

    /// The least value that a state can have, for whoever acts in it: what a leaf that is out counts as in a search.
    const LOWEST_VALUE: f32 = -1.0;
    /// Levels of difficulty that [`Game::draw_start`] knows, from 1; 0: every game begins at the usual start.
    const LEVELS: u32 = 0;

    /// The state a game begins in: the game's usual start, or the position written in `position`.
    ///
    /// # Errors
    /// [`StartError`] where the text is no position of this game.
    fn start(rules: &Self::Rules, position: Option<&str>) -> Result<Self, StartError>;

    /// The representation that the number `options` stands for (a game with only one takes 0).
    ///
    /// # Errors
    /// [`StartError`] where the game has no such representation.
    fn encoding(options: u32) -> Result<Self::Encoding, StartError>;

    /// What a row of this representation means.
    fn layout(encoding: Self::Encoding) -> RowLayout;

    /// Who acts. After the end of the game: whoever would have.
    fn to_move(&self) -> Player;

    /// How the game ended; `None` while it runs.
    fn outcome(&self) -> Option<Outcome>;

    /// How the game ended, in a word for records and people, e.g. `repetition`; `None` while it runs.
    fn ending(&self) -> Option<&'static str> {
        self.outcome().map(|outcome| match outcome {
            Outcome::Won(Player::First) => "first-won",
            Outcome::Won(Player::Second) => "second-won",
            Outcome::Draw => "draw",
            Outcome::Scored(_) => "scored",
        })
    }

    /// Replaces `actions` by the legal actions, ascending. Empty exactly when the game is over,
    /// but for rule sets that say that a player without an action is neither (Paco Ŝako's compatibility rules).
    fn legal_actions(&self, actions: &mut Vec<Action>);

    /// Plays an action.
    ///
    /// # Errors
    /// [`IllegalAction`]; the state is unchanged then.
    fn play(&mut self, action: Action) -> Result<(), IllegalAction>;

    /// Plays an action that the caller has from [`Game::legal_actions`] of this very state.
    ///
    /// With any other action the state is unspecified (but memory-safe and panic-free).
    fn play_legal(&mut self, action: Action);

    /// The position as text (a FEN where the game has one).
    fn position(&self) -> String;

    /// Whether the state seen in this symmetry is truly equivalent. Always true for the identity.
    fn allows(&self, symmetry: Symmetry) -> bool;

    /// Appends the row of this state as seen in `symmetry`.
    fn write_row(&self, encoding: Self::Encoding, symmetry: Symmetry, row: &mut Vec<u32>);

    /// The policy entry, below [`Game::ACTIONS`], of an action of this state as seen in `symmetry`.
    fn policy_index(&self, encoding: Self::Encoding, symmetry: Symmetry, action: Action) -> u32;

    /// The same symmetries for rows without their states: what [`Game::allows`], [`Game::write_row`] and
    /// [`Game::policy_index`] do. A game that leaves it out is trained without symmetries.
    fn row_symmetries(encoding: Self::Encoding) -> RowSymmetries {
        let _ = encoding;
        RowSymmetries::none()
    }

    /// How the entries of the other player's policy are seen from one's own side: what [`Game::policy_index`] of a state gives
    /// for an action of the other player's, out of what it gives where that player is to act. A game that leaves it out shows
    /// the board alike to both.
    fn other_side(encoding: Self::Encoding) -> OtherSide {
        let _ = encoding;
        OtherSide::default()
    }

    /// A number of actions below which a one-player game cannot come to its best outcome from here; 0 where it has,
    /// `u32::MAX` where it never will. What this says of a state is at most one more than what it says after any action.
    fn least_actions_left(&self) -> u32 {
        u32::from(self.outcome().is_none())
    }

    /// Draws a start of this level of difficulty, with a solution. `draw(n)` gives a random number below `n`.
    /// `None` in games that always begin at the usual start, and where chance gives nothing of use.
    fn draw_start(
        _rules: &Self::Rules,
        _level: u32,
        _draw: &mut dyn FnMut(usize) -> usize,
    ) -> Option<Drawn<Self>> {
        None
    }

    /// What `actions` from this state, which did not come to the best outcome, would have been a solution of.
    /// `None` in games that know no such thing.
    fn in_hindsight(&self, _actions: &[Action]) -> Option<Drawn<Self>> {
        None
    }
}
