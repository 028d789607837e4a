//! A player that draws its actions at random.

use games::{Action, Game};
use search::{Draws, GameKey, Purpose};

use super::{
    error::PlayerError,
    seat::{Chooser, Progress},
};

/// Draws each action uniformly from the legal ones.
#[derive(Clone, Debug)]
pub struct Random {
    key: GameKey,
    legal: Vec<Action>,
}

impl Random {
    /// Returns a random player. `key` determines all random draws.
    pub fn new(key: GameKey) -> Self {
        Self {
            key,
            legal: Vec::new(),
        }
    }
}

impl<G: Game> Chooser<G> for Random {
    fn choose(&mut self, game: Progress<'_, G>) -> Result<Action, PlayerError> {
        game.state.legal_actions(&mut self.legal);
        let mut draws = Draws::new(self.key, game.actions.len() as u32, Purpose::Choice);
        let drawn = draws.below(self.legal.len());
        self.legal
            .get(drawn)
            .copied()
            .ok_or_else(|| PlayerError::NoChoice("random".into()))
    }
}
