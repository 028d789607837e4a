//! A player who plays one game alone, not in a match: [`Solo`].

use std::sync::atomic::AtomicBool;

use games::{Action, Game, IllegalAction};
use search::{GameKey, Settings};

use super::{Mind, Player, PlayerError, Progress, Seat, seat::Chooser};
use crate::players::thinker::{Limits, Thinker};

/// One player in one game, with everything it needs to choose.
pub struct Solo<G: Game> {
    name: String,
    start: G,
    state: G,
    actions: Vec<Action>,
    way: Way<G>,
}

enum Way<G: Game> {
    Thinks {
        thinker: Box<Thinker<G>>,
        visits: u32,
        temperature: f32,
    },
    Chooses(Box<dyn Chooser<G>>),
}

impl<G: Game> Player<G> {
    /// The player in a game of its own that begins at `start`.
    ///
    /// # Errors
    /// [`PlayerError`] where an engine does not start.
    pub fn solo(&self, start: &G, key: GameKey) -> Result<Solo<G>, PlayerError> {
        let way = match (&self.mind, self.evaluator(0)) {
            (
                Mind::Search {
                    settings,
                    temperature,
                    ..
                },
                Some(evaluator),
            ) => Way::Thinks {
                thinker: Box::new(Thinker::new(start.clone(), settings.clone(), key, evaluator)),
                visits: settings.traversals.min(Settings::MAX_TRAVERSALS),
                temperature: *temperature,
            },
            _ => match self.seat(start, key)? {
                Seat::Chooser(chooser) => Way::Chooses(chooser),
                Seat::Search { .. } => return Err(PlayerError::NoChoice(self.name.clone())),
            },
        };
        Ok(Solo {
            name: self.name.clone(),
            start: start.clone(),
            state: start.clone(),
            actions: Vec::new(),
            way,
        })
    }
}

impl<G: Game> Solo<G> {
    /// Where the game stands.
    pub fn state(&self) -> &G {
        &self.state
    }

    /// The action it plays in the present state, which is not over.
    ///
    /// # Errors
    /// [`PlayerError`]
    pub fn choose(&mut self, stop: &AtomicBool) -> Result<Action, PlayerError> {
        match &mut self.way {
            Way::Thinks {
                thinker,
                visits,
                temperature,
            } => {
                thinker.think(&Limits::visits(*visits), stop, |_| {})?;
                thinker
                    .draw(*temperature)
                    .ok_or_else(|| PlayerError::NoChoice(self.name.clone()))
            }
            Way::Chooses(chooser) => chooser.choose(Progress {
                start: &self.start,
                actions: &self.actions,
                state: &self.state,
            }),
        }
    }

    /// Plays an action, whoever's it is.
    ///
    /// # Errors
    /// [`IllegalAction`] by the game's rules; nothing has changed then.
    pub fn play(&mut self, action: Action) -> Result<(), IllegalAction> {
        self.state.play(action)?;
        self.actions.push(action);
        match &mut self.way {
            Way::Thinks { thinker, .. } => thinker.advance(action),
            Way::Chooses(_) => Ok(()),
        }
    }

    /// The search, where it is one.
    pub fn thinker(&self) -> Option<&Thinker<G>> {
        match &self.way {
            Way::Thinks { thinker, .. } => Some(thinker),
            Way::Chooses(_) => None,
        }
    }

    /// The search, where it is one.
    pub fn thinker_mut(&mut self) -> Option<&mut Thinker<G>> {
        match &mut self.way {
            Way::Thinks { thinker, .. } => Some(thinker),
            Way::Chooses(_) => None,
        }
    }
}
