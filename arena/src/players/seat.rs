//! A player in one game: [`Seat`], and the player that draws its actions at random.

use std::{
    fmt,
    sync::{Arc, atomic::AtomicBool},
};

use games::{Action, Game, IllegalAction};
use search::{Draws, GameKey, Purpose, Search};

use super::error::PlayerError;

/// The course of a game so far.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a, G> {
    /// Start of the game.
    pub start: &'a G,
    /// Actions played since the start.
    pub actions: &'a [Action],
    /// Present state. The game is not over.
    pub state: &'a G,
    /// Flag that ends the choice early, with an error, where the player takes notice of it.
    pub stop: Option<&'a Arc<AtomicBool>>,
}

/// A player that chooses its action in one blocking call.
pub trait Chooser<G: Game>: Send {
    /// Chooses an action. The action may be illegal, because an engine is a program from outside.
    ///
    /// # Errors
    /// [`PlayerError`] if the player cannot continue.
    fn choose(&mut self, game: Progress<'_, G>) -> Result<Action, PlayerError>;
}

/// Draws each action uniformly from the legal ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Random(GameKey);

impl Random {
    /// Returns a random player. `key` determines all random draws.
    pub(super) fn new(key: GameKey) -> Self {
        Self(key)
    }
}

impl<G: Game> Chooser<G> for Random {
    fn choose(&mut self, game: Progress<'_, G>) -> Result<Action, PlayerError> {
        let mut legal = Vec::new();
        game.state.legal_actions(&mut legal);
        let mut draws = Draws::new(self.0, game.actions.len() as u32, Purpose::Choice);
        let drawn = legal.get(draws.below(legal.len())).copied();
        drawn.ok_or_else(|| PlayerError::no_choice("random"))
    }
}

/// A player in one game.
pub enum Seat<G: Game> {
    /// A player that searches. The owner of the seat evaluates the leaves.
    Search {
        /// The search at the present state of the game.
        search: Box<Search<G>>,
        /// Temperature at which the action is drawn from the visits.
        temperature: f32,
    },
    /// A player that chooses in one call.
    Chooser(Box<dyn Chooser<G>>),
}

impl<G: Game> Seat<G> {
    /// Notes an action that either player has played.
    ///
    /// # Errors
    /// [`IllegalAction`] if the rules forbid the action.
    pub fn played(&mut self, action: Action) -> Result<(), IllegalAction> {
        match self {
            Self::Search { search, .. } => search.advance(action),
            Self::Chooser(_) => Ok(()),
        }
    }
}

impl<G: Game> fmt::Debug for Seat<G> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Search { .. } => "Seat::Search",
            Self::Chooser(_) => "Seat::Chooser",
        })
    }
}
