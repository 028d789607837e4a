//! A player in one game: [`Seat`].

use std::fmt;

use games::{Action, Game, IllegalAction};
use search::Search;

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
}

/// A player that chooses its action in one blocking call.
pub trait Chooser<G: Game>: Send {
    /// Chooses an action. The action may be illegal, because an engine is a program from outside.
    ///
    /// # Errors
    /// [`PlayerError`] if the player cannot continue.
    fn choose(&mut self, game: Progress<'_, G>) -> Result<Action, PlayerError>;
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
