//! Games from outside: rules that other code brings, e.g. a Python class.
//!
//! | module | content |
//! |---|---|
//! | [`description`] | what a game from outside says about itself, as data |
//! | `cache` | positions that the rules gave already |
//! | `failures` | games in which the rules failed |
//! | `notation` | drawing and notation |
//!
//! The code that brings the rules implements [`Rules`]: it starts a game, and plays an action. [`Outside`] makes a [`Game`] of it, so
//! that searches, actors and tools need no other code. A process has at most one such game, which [`add`] gives to it before anything
//! else ([`crate::registry::find`] knows it from then on). A process that needs no rules, e.g. a replay store, is given the description
//! alone ([`describe`]): it knows layout, actions and symmetries, and starts no game.
//!
//! Rules are asked once for a position: the answer holds all that a search wants to know. A search replays the way to each of its
//! leaves, so that positions are kept in a cache of limited size.

mod cache;
pub mod description;
mod failures;
mod notation;

use std::{
    any::Any,
    fmt::Debug,
    sync::{Arc, OnceLock},
};

use self::cache::Cache;
pub use self::description::Description;
pub use self::failures::{Failures, TooManyFailures};
use crate::{
    game::{Action, Game, IllegalAction, KnownOutcome, NoRules, Outcome, SingleEncoding, StartError},
    layout::RowLayout,
    symmetries::{RowSymmetries, Symmetry},
    value::Player,
};

/// Rules that other code brings. Both methods are called from several threads.
pub trait Rules: Debug + Send + Sync {
    /// Returns the position that a game begins in.
    ///
    /// # Errors
    /// [`Fault`] of the code that brings the rules.
    fn start(&self) -> Result<Position, Fault>;

    /// Returns the position after a legal action. The position before it does not change.
    ///
    /// # Errors
    /// [`Fault`] of the code that brings the rules.
    fn play(&self, before: &Position, action: Action) -> Result<Position, Fault>;

    /// Returns an action of a position as people write it. By default its number.
    fn action_text(&self, position: &Position, action: Action) -> String {
        let _ = position;
        action.to_string()
    }

    /// Takes note of a fault, e.g. prints it. A fault ends the game in which it happened.
    fn report(&self, fault: &Fault);
}

/// Fault of rules from outside: an exception in their code, or a broken promise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}\nActions that lead there: {actions:?}")]
pub struct Fault {
    /// Reason, e.g. the text of an exception with the place where it was raised.
    pub reason: String,
    /// Actions from the start of the game, the last one of which led to the fault.
    pub actions: Vec<Action>,
}

impl Fault {
    /// Returns the fault with this reason, at the start of a game.
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            actions: Vec::new(),
        }
    }
}

/// All that a search wants to know about a position.
#[derive(Clone, Debug)]
pub struct Position {
    /// State in the form of the code that brings the rules.
    pub state: Arc<dyn Any + Send + Sync>,
    /// Player to act.
    pub to_move: Player,
    /// Outcome of the game. `None` while it runs.
    pub outcome: Option<Outcome>,
    /// Legal actions, ascending. Empty if and only if the game is over.
    pub legal: Vec<Action>,
    /// Row of the position, valid for the layout of the description.
    pub row: Vec<u32>,
}

/// The game from outside of this process.
#[derive(Debug)]
struct Added {
    description: Description,
    /// Name, which lives as long as the process.
    name: &'static str,
    players: [&'static str; 2],
    /// `None`: this process has the description alone.
    rules: Option<Box<dyn Rules>>,
    symmetries: RowSymmetries,
    cache: Cache,
}

static ADDED: OnceLock<Added> = OnceLock::new();

/// Error: a game from outside cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddError {
    /// The process has one already.
    #[error("this process has a game from outside already: {0}")]
    Second(&'static str),
    /// The rules of the process are those of another game than the description, e.g. since their source was changed.
    #[error(
        "the rules of {name} cannot continue what began with this description: {difference}; take the change back, or begin anew"
    )]
    Differs {
        /// Name of the game of the process.
        name: &'static str,
        /// First fact that differs.
        difference: String,
    },
    /// The description contradicts itself.
    #[error(transparent)]
    Description(#[from] description::DescriptionError),
}

/// Gives the process its game from outside.
///
/// # Errors
/// [`AddError`] if there is one already, or if the description contradicts itself.
pub fn add(description: Description, rules: Box<dyn Rules>) -> Result<(), AddError> {
    set(description, Some(rules))
}

/// Gives the process the description of a game from outside, for work that needs no rules. If the process has the game already, the
/// description is compared with its own.
///
/// # Errors
/// [`AddError`] if the process has another game, or if the description contradicts itself.
pub fn describe(description: Description) -> Result<(), AddError> {
    let Some(added) = ADDED.get() else {
        return set(description, None);
    };
    if added.name != description.name {
        return Err(AddError::Second(added.name));
    }
    match description.difference(&added.description) {
        None => Ok(()),
        Some(difference) => Err(AddError::Differs {
            name: added.name,
            difference,
        }),
    }
}

fn set(description: Description, rules: Option<Box<dyn Rules>>) -> Result<(), AddError> {
    description.check()?;
    // A process adds one game, so that its three names are leaked once.
    let leak = |text: &String| -> &'static str { Box::leak(text.clone().into_boxed_str()) };
    let added = Added {
        name: leak(&description.name),
        players: description.player_names.each_ref().map(leak),
        symmetries: description.row_symmetries(),
        description,
        rules,
        cache: Cache::default(),
    };
    let name = added.name;
    match ADDED.set(added) {
        Ok(()) => Ok(()),
        Err(_) => Err(AddError::Second(ADDED.get().map_or(name, |added| added.name))),
    }
}

/// Returns the name of the process's game from outside. `None` if there is none.
pub(crate) fn name() -> Option<&'static str> {
    ADDED.get().map(|added| added.name)
}

/// Returns the description of the process's game from outside. `None` if there is none.
pub fn description() -> Option<&'static Description> {
    ADDED.get().map(|added| &added.description)
}

/// True if the process has the rules of its game from outside, and not the description alone.
pub fn has_rules() -> bool {
    rules().is_some()
}

fn rules() -> Option<&'static dyn Rules> {
    ADDED.get()?.rules.as_deref()
}

/// A position of the game from outside, with the actions that led to it.
#[derive(Clone, Debug)]
pub struct Outside {
    at: Arc<Node>,
}

/// A position, or the fault in its place.
#[derive(Debug)]
struct Node {
    /// Number of the node, which no other node of the process has.
    id: u64,
    /// Actions from the start of the game.
    actions: Vec<Action>,
    found: Result<Position, Fault>,
}

impl Node {
    /// Makes the node of what the rules answered, and reports a fault or a broken promise.
    fn new(game: &Added, actions: Vec<Action>, answer: Result<Position, Fault>) -> Arc<Self> {
        let checked = answer.and_then(|position| match game.description.check_position(&position) {
            Ok(()) => Ok(position),
            Err(reason) => Err(Fault::new(reason)),
        });
        let found = checked.map_err(|fault| {
            let fault = Fault {
                actions: actions.clone(),
                ..fault
            };
            if let Some(rules) = &game.rules {
                rules.report(&fault);
            }
            fault
        });
        Arc::new(Self {
            id: game.cache.next_id(),
            actions,
            found,
        })
    }
}

/// Reason why nothing is played where only the description is known.
const NO_RULES: &str = "this program does not know the rules, which are in Python: use `python -m minuet`";

impl Outside {
    /// Returns the start of the process's game from outside.
    ///
    /// # Errors
    /// [`StartError`] if the process has none, or not its rules, or if its start is faulty.
    fn begin() -> Result<Self, StartError> {
        let fault = |reason| StartError {
            game: Self::name(),
            reason,
        };
        let game = ADDED
            .get()
            .ok_or_else(|| fault("this process has no game from outside".into()))?;
        let rules = game.rules.as_ref().ok_or_else(|| fault(NO_RULES.into()))?;
        let at = Node::new(game, Vec::new(), rules.start());
        match &at.found {
            Ok(_) => Ok(Self { at }),
            Err(error) => Err(fault(error.reason.clone())),
        }
    }

    /// Returns the position. `None` if its place is taken by a fault.
    fn position(&self) -> Option<&Position> {
        self.at.found.as_ref().ok()
    }

    /// Returns the state after an action. The rules compute it once, as long as the cache keeps it.
    fn after(&self, action: Action) -> Option<Self> {
        let (game, before) = (ADDED.get()?, self.position()?);
        let rules = game.rules.as_ref()?;
        let make = || {
            let actions = self.at.actions.iter().copied().chain([action]).collect();
            Node::new(game, actions, rules.play(before, action))
        };
        let at = game.cache.get_or_make(self.at.id, action, make);
        Some(Self { at })
    }
}

impl Game for Outside {
    type Rules = NoRules;
    type Encoding = SingleEncoding;

    const NAME: &'static str = "outside";
    const PLAYERS: u8 = 2;

    fn name() -> &'static str {
        name().unwrap_or(Self::NAME)
    }

    fn players() -> u8 {
        ADDED.get().map_or(2, |game| game.description.players)
    }

    /// Reads what [`Game::position`] writes: the actions from the start. Where the rules are not known, a list of actions is a position in
    /// which nothing can be played.
    fn start(_: &NoRules, position: Option<&str>) -> Result<Self, StartError> {
        let Some(text) = position else {
            return Self::begin();
        };
        let fault = |reason: String| StartError::of::<Self>(reason);
        let wrong = |_| fault(format!("{text:?} is not a list of actions, e.g. [3, 0, 12]"));
        let actions: Vec<Action> = serde_json::from_str(text).map_err(wrong)?;
        if let Some(game) = ADDED.get().filter(|game| game.rules.is_none()) {
            let at = Node::new(game, actions, Err(Fault::new(NO_RULES)));
            return Ok(Self { at });
        }
        let mut state = Self::begin()?;
        for (number, &action) in actions.iter().enumerate() {
            let played = state.play(action);
            played.map_err(|error| fault(format!("action {number}: {error}")))?;
            if let Some(reason) = state.fault() {
                return Err(fault(reason.into()));
            }
        }
        Ok(state)
    }

    fn layout(_: SingleEncoding) -> RowLayout {
        ADDED
            .get()
            .map_or_else(Description::nothing, |game| game.description.layout.clone())
    }

    fn actions(&self) -> u32 {
        ADDED.get().map_or(0, |game| game.description.layout.actions)
    }

    fn symmetries(&self) -> u8 {
        ADDED
            .get()
            .map_or(1, |game| 1 + game.description.symmetries.len() as u8)
    }

    fn to_move(&self) -> Player {
        self.position().map_or(Player::First, |position| position.to_move)
    }

    fn outcome(&self) -> Option<Outcome> {
        self.position()?.outcome
    }

    fn legal_actions(&self, actions: &mut Vec<Action>) {
        actions.clear();
        if let Some(position) = self.position() {
            actions.extend(&position.legal);
        }
    }

    fn play(&mut self, action: Action) -> Result<(), IllegalAction> {
        let reason = match self.position() {
            None => "the rules failed here",
            Some(Position { outcome: Some(_), .. }) => "the game is over",
            Some(position) if position.legal.binary_search(&action).is_err() => {
                "it is none of the legal actions"
            }
            Some(_) => {
                self.play_legal(action);
                return Ok(());
            }
        };
        Err(IllegalAction { action, reason })
    }

    fn play_legal(&mut self, action: Action) {
        // An action that is not legal changes nothing.
        let is_legal = |position: &Position| position.legal.binary_search(&action).is_ok();
        if self.position().is_some_and(is_legal)
            && let Some(after) = self.after(action)
        {
            *self = after;
        }
    }

    /// Returns the actions from the start of the game, as a JSON list.
    fn position(&self) -> String {
        serde_json::to_string(&self.at.actions).unwrap_or_default()
    }

    fn write_row(&self, _: SingleEncoding, symmetry: Symmetry, row: &mut Vec<u32>) {
        let begin = row.len();
        let Some((position, game)) = self.position().zip(ADDED.get()) else {
            return;
        };
        row.extend(&position.row);
        game.symmetries.turn_row(symmetry, &mut row[begin..]);
    }

    fn policy_index(&self, _: SingleEncoding, symmetry: Symmetry, action: Action) -> u32 {
        ADDED
            .get()
            .map_or(action, |game| game.symmetries.turn_action(symmetry, action))
    }

    fn row_symmetries(_: SingleEncoding) -> RowSymmetries {
        ADDED
            .get()
            .map(|game| game.symmetries.clone())
            .unwrap_or_default()
    }

    /// Knows nothing: to try all actions is as dear as to evaluate their positions.
    fn known(&self) -> Option<KnownOutcome> {
        None
    }

    fn fault(&self) -> Option<&str> {
        self.at.found.as_ref().err().map(|fault| fault.reason.as_str())
    }
}
