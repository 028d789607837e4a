//! A player in one game: [`Seat`].

use std::fmt;

use games::{Action, Game, IllegalAction};
use search::Search;

use super::PlayerError;

/// A game so far.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a, G> {
    /// Where it began.
    pub start: &'a G,
    /// What was played since.
    pub actions: &'a [Action],
    /// Where it stands. It is not over.
    pub state: &'a G,
}

/// A player that answers at once, or blocks until it has an answer.
pub trait Chooser<G: Game>: Send {
    /// The action it plays. It may be illegal: an engine is a program of somebody else's.
    ///
    /// # Errors
    /// [`PlayerError`] where it cannot go on.
    fn choose(&mut self, game: Progress<'_, G>) -> Result<Action, PlayerError>;
}

/// A player in one game.
pub enum Seat<G: Game> {
    /// It searches: whoever holds the seat takes its leaves to its evaluator.
    Search {
        /// The search, at the game's present state.
        search: Box<Search<G>>,
        /// How its action is drawn.
        temperature: f32,
    },
    /// It is asked.
    Chooser(Box<dyn Chooser<G>>),
}

impl<G: Game> Seat<G> {
    /// Tells it what was played, by whoever.
    ///
    /// # Errors
    /// [`IllegalAction`] by the game's rules.
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
