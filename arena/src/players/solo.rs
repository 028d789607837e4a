//! A player in a single game outside a match: [`Solo`].

use std::sync::{Arc, atomic::AtomicBool};

use games::{Action, Game, IllegalAction};
use search::{GameKey, Settings};

use super::{Method, Player, PlayerError, Progress, Seat, seat::Chooser};
use crate::players::thinker::{Limits, Thinker};

/// A player in a single game, with its search or engine.
pub struct Solo<G: Game> {
    name: String,
    start: G,
    state: G,
    actions: Vec<Action>,
    choice: Choice<G>,
}

/// The way in which the player chooses its actions.
enum Choice<G: Game> {
    Thinks {
        thinker: Box<Thinker<G>>,
        visits: u32,
        temperature: f32,
    },
    Chooses(Box<dyn Chooser<G>>),
}

impl<G: Game> Player<G> {
    /// Returns the player in a single game that begins at `start`. `key` determines all random draws.
    ///
    /// # Errors
    /// [`PlayerError`] if an engine does not start.
    pub fn solo(&self, start: &G, key: GameKey) -> Result<Solo<G>, PlayerError> {
        let choice = match (&self.method, self.evaluator(0)) {
            (
                Method::Search {
                    settings,
                    temperature,
                    ..
                },
                Some(evaluator),
            ) => Choice::Thinks {
                thinker: Box::new(Thinker::new(start.clone(), settings.clone(), key, evaluator)),
                visits: settings.visits.min(Settings::MAX_VISITS),
                temperature: *temperature,
            },
            _ => match self.seat(start, key)? {
                Seat::Chooser(chooser) => Choice::Chooses(chooser),
                Seat::Search { .. } => return Err(PlayerError::no_choice(&self.name)),
            },
        };
        Ok(Solo {
            name: self.name.clone(),
            start: start.clone(),
            state: start.clone(),
            actions: Vec::new(),
            choice,
        })
    }
}

impl<G: Game> Solo<G> {
    /// Present state of the game.
    pub fn state(&self) -> &G {
        &self.state
    }

    /// Chooses an action in the present state, which is not the end of the game. A search ends early when `stop` is set; a perfect
    /// player returns an error then.
    ///
    /// # Errors
    /// [`PlayerError`] if the player cannot continue.
    pub fn choose(&mut self, stop: &Arc<AtomicBool>) -> Result<Action, PlayerError> {
        match &mut self.choice {
            Choice::Thinks {
                thinker,
                visits,
                temperature,
            } => {
                thinker.think(&Limits::visits(*visits), stop, |_| {})?;
                thinker
                    .draw(*temperature)
                    .ok_or_else(|| PlayerError::no_choice(&self.name))
            }
            Choice::Chooses(chooser) => chooser.choose(Progress {
                start: &self.start,
                actions: &self.actions,
                state: &self.state,
                stop: Some(stop),
            }),
        }
    }

    /// Plays an action of either player.
    ///
    /// # Errors
    /// [`IllegalAction`] if the rules forbid the action. Nothing has changed then.
    pub fn play(&mut self, action: Action) -> Result<(), IllegalAction> {
        self.state.play(action)?;
        self.actions.push(action);
        match &mut self.choice {
            Choice::Thinks { thinker, .. } => thinker.advance(action),
            Choice::Chooses(_) => Ok(()),
        }
    }

    /// The search, if the player searches.
    pub fn thinker(&self) -> Option<&Thinker<G>> {
        match &self.choice {
            Choice::Thinks { thinker, .. } => Some(thinker),
            Choice::Chooses(_) => None,
        }
    }
}
