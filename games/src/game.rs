//! The [`Game`] trait: rules, rows and policy of a game, as methods of a state that is cheap to clone.

use std::fmt;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    layout::RowLayout,
    symmetries::{RowSymmetries, Symmetry},
    value::{FirstValue, Player},
};

/// Id of an action, below [`Game::actions`]. Ids are absolute: they do not depend on symmetries or on the player to act.
/// [`Game::policy_index`] gives the entry of the network's policy.
pub type Action = u32;

/// Result of a game that is over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// This player won.
    Won(Player),
    /// Neither player won.
    Draw,
    /// A one-player game ended with this value, in `[-1, 1]`.
    Scored(f32),
}

impl Outcome {
    /// Returns the value of the outcome: 1 for a win of the first player, -1 for a loss, 0 for a draw.
    pub fn value(self) -> FirstValue {
        match self {
            Self::Won(player) => FirstValue::new(player.sign()),
            Self::Draw => FirstValue::new(0.0),
            Self::Scored(value) => FirstValue::new(value),
        }
    }
}

/// Outcome of a state with best play of both players, with the length of that play.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownOutcome {
    /// Outcome with best play.
    pub outcome: Outcome,
    /// Number of actions until the game is over: 0 if it is over, at least 1 otherwise. A winner who always plays the action
    /// that leads to a win in fewer actions reaches the end of the game.
    pub actions: u32,
}

impl KnownOutcome {
    /// Returns the outcome of a game that is over.
    pub const fn over(outcome: Outcome) -> Self {
        Self { outcome, actions: 0 }
    }

    /// Returns a win of this player by one action.
    pub(crate) const fn win_at_once(winner: Player) -> Self {
        Self {
            outcome: Outcome::Won(winner),
            actions: 1,
        }
    }

    /// Returns the win of the player to act by one action, found by trying all of them.
    pub(crate) fn win_by_trying<G: Game>(state: &G) -> Option<Self> {
        let win = Self::win_at_once(state.to_move());
        let mut legal = Vec::new();
        state.legal_actions(&mut legal);
        let wins = |&action: &Action| {
            let mut next = state.clone();
            next.play_legal(action);
            next.outcome() == Some(win.outcome)
        };
        legal.iter().any(wins).then_some(win)
    }
}

/// Error: an action is not legal in a state, or the game is over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("action {action} is not legal here: {reason}")]
pub struct IllegalAction {
    /// Action that was to be played.
    pub action: Action,
    /// Reason in a few words.
    pub reason: &'static str,
}

/// Error: a game cannot begin from a position, or with these rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot start a game of {game}: {reason}")]
pub struct StartError {
    /// Name of the game.
    pub game: &'static str,
    /// Reason, which names the field or square at fault.
    pub reason: String,
}

impl StartError {
    /// Returns the error of the game `G`.
    pub(crate) fn of<G: Game>(reason: impl Into<String>) -> Self {
        Self {
            game: G::name(),
            reason: reason.into(),
        }
    }

    /// Checks the number of a representation in a game that has only one, with the number 0.
    ///
    /// # Errors
    /// [`StartError`] if `options` is another number.
    pub(crate) fn unless_zero<G: Game>(options: u32) -> Result<(), Self> {
        match options {
            0 => Ok(()),
            _ => Err(Self::of::<G>(format!(
                "the representation options must be 0, not {options}"
            ))),
        }
    }
}

/// Representation of a game that has only one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SingleEncoding;

/// Owners of the squares of a board on which a game has ended, for training (auxiliary targets of KataGo, Wu 2019).
#[derive(Clone, Debug, PartialEq)]
pub struct Territory {
    /// Owner of each square of the planes that rows expand to: 1 the first player, -1 the second, 0 nobody. Rows show both players the
    /// same squares in the same places.
    pub owners: Vec<i8>,
    /// Points of the first player less those of the second, compensation included.
    pub score: f32,
}

/// Sizes of a square board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Least number of squares of a side.
    pub least: u32,
    /// Size of a game whose rules name none.
    pub usual: u32,
    /// Largest number of squares of a side, at most 32.
    pub most: u32,
}

impl Sizes {
    /// Checks that a size is one of these.
    ///
    /// # Errors
    /// Sentence with the sizes that are possible.
    pub(crate) fn check<G: Game>(self, size: u32) -> Result<(), StartError> {
        let Self { least, most, .. } = self;
        if (least..=most).contains(&size) {
            return Ok(());
        }
        let reason = format!("`size` is {size}; {least} to {most} are possible");
        Err(StartError::of::<G>(reason))
    }
}

/// Rules of a game without variants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoRules {}

/// Start of a one-player game, with a solution.
#[derive(Clone, Debug)]
pub struct Drawn<G> {
    /// State that the game begins in.
    pub start: G,
    /// Actions that lead from there to the best outcome. There may be shorter solutions.
    pub solution: Vec<Action>,
}

/// Kind of problem that a game draws.
#[derive(Clone, Debug)]
pub struct ProblemKind<Rules> {
    /// Name in figures, e.g. `draw`.
    pub name: &'static str,
    /// Share among the problems of self-play, in percent.
    pub share: u32,
    /// Rules that draw only this kind.
    pub rules: Rules,
}

/// State of a game, with the history that its rules need (repetitions, the turn so far).
///
/// A turn may hold several actions of one player, and a game may have one player. So code must not assume that players
/// alternate. Cloning is cheap, and `clone_from` into an old state does not allocate once its buffers have grown.
///
/// ```
/// use games::{Game, Outcome};
///
/// /// Plays the legal action with the lowest number until the game is over.
/// fn play_first_actions<G: Game>() -> Option<Outcome> {
///     let mut state = G::start(&G::Rules::default(), None).ok()?;
///     let mut actions = Vec::new();
///     loop {
///         state.legal_actions(&mut actions);
///         match actions.first() {
///             Some(&action) => state.play(action).ok()?,
///             None => return state.outcome(),
///         }
///     }
/// }
///
/// assert!(play_first_actions::<games::othello::Othello>().is_some());
/// ```
pub trait Game: Clone + fmt::Debug + Send + Sync + 'static {
    /// Switchable rules. The default is for self-play.
    type Rules: Clone + fmt::Debug + Default + PartialEq + Serialize + DeserializeOwned + Send + Sync;

    /// One of the game's representations, checked by [`Game::encoding`]. The default is the one with the number 0.
    type Encoding: Copy + fmt::Debug + Default + PartialEq + Send + Sync + 'static;

    /// Name in configurations, records and metadata, e.g. `paco-sako`.
    const NAME: &'static str;
    /// Number of players, 1 or 2.
    const PLAYERS: u8;
    /// Sizes of the board that the rules allow, under their key `size`. `None` if the board has one size.
    const SIZES: Option<Sizes> = None;
    /// True if every game that is over has a [`Game::territory`].
    const HAS_TERRITORY: bool = false;

    /// Lowest value that a state can have for the player to act. A search takes it as the value of a leaf whose evaluation
    /// is pending (virtual loss).
    const LOWEST_VALUE: f32 = -1.0;
    /// Highest level of difficulty of [`Game::draw_start`], which begin at 1. 0 if all games begin at the usual start.
    const LEVELS: u32 = 0;
    /// Levels of the held-out problems on which players are compared. Empty if all games begin at the usual start.
    const COMPARED_LEVELS: &'static [u32] = &[];

    /// Returns the name: [`Game::NAME`], or that of the game from outside ([`crate::outside`]).
    fn name() -> &'static str {
        Self::NAME
    }

    /// Returns the number of players: [`Game::PLAYERS`], or that of the game from outside.
    fn players() -> u8 {
        Self::PLAYERS
    }

    /// Returns the state that a game begins in: the usual start, or the position that the text `position` describes.
    ///
    /// # Errors
    /// [`StartError`] if the text is not a position of this game, or the rules are not possible.
    fn start(rules: &Self::Rules, position: Option<&str>) -> Result<Self, StartError>;

    /// Returns the representation with the number `options` of games under these rules. By default a game has one, with the number
    /// 0, whatever the rules.
    ///
    /// # Errors
    /// [`StartError`] if the game has no such representation, or the rules are not possible.
    fn encoding(rules: &Self::Rules, options: u32) -> Result<Self::Encoding, StartError> {
        let _ = rules;
        StartError::unless_zero::<Self>(options)?;
        Ok(Self::Encoding::default())
    }

    /// Checks that games under these rules can be written in this representation. By default all can.
    ///
    /// # Errors
    /// [`StartError`] that names the rule.
    fn check(rules: &Self::Rules, encoding: Self::Encoding) -> Result<(), StartError> {
        let _ = (rules, encoding);
        Ok(())
    }

    /// Returns the layout of the rows of this representation.
    fn layout(encoding: Self::Encoding) -> RowLayout;

    /// Returns the number of action ids, and of policy entries. It is the same in every state under the same rules.
    fn actions(&self) -> u32;

    /// Returns the number of symmetries, the identity included. It is the same in every state under the same rules.
    fn symmetries(&self) -> u8;

    /// Returns the player to act. After the end of the game, the player who would act next.
    fn to_move(&self) -> Player;

    /// Returns the outcome of the game. `None` while it runs.
    fn outcome(&self) -> Option<Outcome>;

    /// Returns the name of the way in which the game ended, e.g. `repetition`. `None` while it runs.
    fn ending(&self) -> Option<&'static str> {
        self.outcome().map(|outcome| match outcome {
            Outcome::Won(Player::First) => "first-won",
            Outcome::Won(Player::Second) => "second-won",
            Outcome::Draw => "draw",
            Outcome::Scored(_) => "scored",
        })
    }

    /// Replaces `actions` by the legal actions, ascending. There are none if and only if the game is over. The exception is
    /// Paco Ŝako's compatibility rules, under which a game can run although its player has no legal action.
    fn legal_actions(&self, actions: &mut Vec<Action>);

    /// Plays an action.
    ///
    /// # Errors
    /// [`IllegalAction`] if the action is not legal. The state is unchanged then.
    fn play(&mut self, action: Action) -> Result<(), IllegalAction>;

    /// Plays an action that [`Game::legal_actions`] gave for this state, without checks.
    ///
    /// Another action leaves the state unspecified, but does not panic.
    fn play_legal(&mut self, action: Action);

    /// Returns the position as text, e.g. a FEN. [`Game::start`] reads it.
    fn position(&self) -> String;

    /// True if the image of the state in this symmetry is equivalent to it. Always true for the identity. By default all
    /// [`Game::symmetries`] hold in every state.
    fn allows(&self, symmetry: Symmetry) -> bool {
        symmetry.0 < self.symmetries()
    }

    /// Returns the symmetry in which a search evaluates the state, so that all equivalent states have one image and share its
    /// evaluation. Appends to `order` the places in `legal` of the legal actions, in the order of their policy entries in that
    /// image. By default `None`, without change: a search draws one of the symmetries.
    fn canonical(&self, legal: &[Action], order: &mut Vec<u32>) -> Option<Symmetry> {
        let _ = (legal, order);
        None
    }

    /// Appends the row of the state's image in `symmetry` to `row`.
    fn write_row(&self, encoding: Self::Encoding, symmetry: Symmetry, row: &mut Vec<u32>);

    /// Returns the policy entry, below [`Game::actions`], of an action of this state, in the state's image in `symmetry`.
    fn policy_index(&self, encoding: Self::Encoding, symmetry: Symmetry, action: Action) -> u32;

    /// Returns the symmetries as maps of rows and policy entries, which need no state. They agree with [`Game::allows`],
    /// [`Game::write_row`] and [`Game::policy_index`]. By default there are none, so that training uses no symmetries.
    fn row_symmetries(encoding: Self::Encoding) -> RowSymmetries {
        let _ = encoding;
        RowSymmetries::none()
    }

    /// Returns the outcome with best play of a state in which the game is not over, if the rules tell it at a cost below that
    /// of a network. In a game of two players this includes every win by one action. Two calls for one state have the same result.
    /// By default these wins are all that is known, and each legal action is tried on a copy of the state.
    fn known(&self) -> Option<KnownOutcome> {
        KnownOutcome::win_by_trying(self)
    }

    /// True if the rules tell, at a cost below that of a network, that the player to act can end the game as a draw in this turn,
    /// so that the state is worth at least a draw to that player. Two calls for one state have the same result. By default
    /// nothing is known.
    fn can_draw(&self) -> bool {
        false
    }

    /// Returns why the rules failed here: an error in the code of a game from outside. A game with a fault has no legal action, and is
    /// not over. By default `None`: rules do not fail.
    fn fault(&self) -> Option<&str> {
        None
    }

    /// Returns who owns the squares, once the game is over. `None` before, and by default, because in most games nobody owns squares.
    /// [`Game::HAS_TERRITORY`] is true in games with this method.
    fn territory(&self) -> Option<Territory> {
        None
    }

    /// Returns a lower bound on the number of actions until the best outcome of a one-player game: 0 if it was reached,
    /// `u32::MAX` if it cannot be reached. An action lowers the bound by at most one.
    fn least_actions_left(&self) -> u32 {
        u32::from(self.outcome().is_none())
    }

    /// Draws a start of this level of difficulty, with a solution. `draw(n)` gives a random number below `n`. `None` in
    /// games that always begin at the usual start, and if the random numbers gave no suitable start.
    fn draw_start(
        _rules: &Self::Rules,
        _level: u32,
        _draw: &mut dyn FnMut(usize) -> usize,
    ) -> Option<Drawn<Self>> {
        None
    }

    /// Draws a start as [`Game::draw_start`] does, but one that self-play never draws, to measure players on problems that no
    /// network was trained on. `None` if there is none of this level.
    fn draw_held_out(
        _rules: &Self::Rules,
        _level: u32,
        _draw: &mut dyn FnMut(usize) -> usize,
    ) -> Option<Drawn<Self>> {
        None
    }

    /// Returns the kinds of problems that [`Game::draw_start`] draws under these rules, in a fixed order. Self-play has a
    /// level of difficulty for each kind. By default there are none, for games without problems.
    fn problem_kinds(_rules: &Self::Rules) -> Vec<ProblemKind<Self::Rules>> {
        Vec::new()
    }

    /// Returns a start for which `actions` of this state are a solution (hindsight), and that solution without the actions that do
    /// not matter. If they reach the best outcome from this state, it is this start. `None` if there is none, if self-play would
    /// never draw it, and in games without this method.
    fn in_hindsight(&self, _actions: &[Action]) -> Option<Drawn<Self>> {
        None
    }
}
