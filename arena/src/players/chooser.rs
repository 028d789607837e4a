//! Players in a single game: those that choose an action in one call ([`Chooser`]), and any player outside a match ([`Solo`]).

use std::sync::{Arc, atomic::AtomicBool};

use anyhow::Context as _;
use games::{Action, IllegalAction, erased::AnyState};
use search::{Draws, GameKey, Purpose, Settings};

use super::{Player, thinker::Thinker};

/// The course of a game so far.
#[derive(Clone, Copy, Debug)]
pub struct GameSoFar<'a> {
    /// Start of the game.
    pub start: &'a dyn AnyState,
    /// Actions played since the start.
    pub actions: &'a [Action],
    /// Present state. The game is not over.
    pub state: &'a dyn AnyState,
    /// Flag that ends the choice early, with an error, where the player takes notice of it.
    pub stop: Option<&'a Arc<AtomicBool>>,
}

/// A player that chooses its action in one blocking call.
pub trait Chooser: Send {
    /// Chooses an action. The action may be illegal, because an engine is a program from outside.
    ///
    /// # Errors
    /// The player cannot continue.
    fn choose(&mut self, game: GameSoFar<'_>) -> anyhow::Result<Action>;
}

/// Draws each action uniformly from the legal ones. The key determines all draws.
#[derive(Clone, Copy, Debug)]
pub(super) struct Random(pub GameKey);

impl Chooser for Random {
    fn choose(&mut self, game: GameSoFar<'_>) -> anyhow::Result<Action> {
        let mut legal = Vec::new();
        game.state.legal_actions(&mut legal);
        let mut draws = Draws::new(self.0, game.actions.len() as u32, Purpose::Choice);
        let drawn = legal.get(draws.below(legal.len())).copied();
        drawn.context("random chose no action")
    }
}

/// A player in a single game, with its search or engine.
pub struct Solo {
    name: String,
    start: Box<dyn AnyState>,
    state: Box<dyn AnyState>,
    actions: Vec<Action>,
    choice: Choice,
}

/// The way in which the player chooses its actions.
enum Choice {
    Thinks {
        thinker: Thinker,
        visits: u32,
        temperature: f32,
    },
    Chooses(Box<dyn Chooser>),
}

impl Player {
    /// Returns the player in a single game that begins at `start`. `key` determines all random draws.
    ///
    /// # Errors
    /// An engine does not start, or the game is another one.
    pub fn solo(&self, start: &dyn AnyState, key: GameKey) -> anyhow::Result<Solo> {
        let choice = match self.chooser(key)? {
            Some(chooser) => Choice::Chooses(chooser),
            None => {
                let (settings, searches) = self.searches(0)?;
                Choice::Thinks {
                    thinker: Thinker::new(start, settings.clone(), key, searches)?,
                    visits: settings.visits.min(Settings::MAX_VISITS),
                    temperature: self.temperature(),
                }
            }
        };
        Ok(Solo {
            name: self.name.clone(),
            start: start.copy(),
            state: start.copy(),
            actions: Vec::new(),
            choice,
        })
    }
}

impl Solo {
    /// Present state of the game.
    pub fn state(&self) -> &dyn AnyState {
        &*self.state
    }

    /// Chooses an action in the present state, which is not the end of the game. A search ends early when `stop` is set; a perfect
    /// player returns an error then.
    ///
    /// # Errors
    /// The player cannot continue.
    pub fn choose(&mut self, stop: &Arc<AtomicBool>) -> anyhow::Result<Action> {
        match &mut self.choice {
            Choice::Thinks {
                thinker,
                visits,
                temperature,
            } => {
                thinker.think(*visits, stop, |_| {})?;
                let drawn = thinker.search().choose(*temperature);
                drawn.with_context(|| format!("{} chose no action", self.name))
            }
            Choice::Chooses(chooser) => chooser.choose(GameSoFar {
                start: &*self.start,
                actions: &self.actions,
                state: &*self.state,
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
    pub fn thinker(&self) -> Option<&Thinker> {
        match &self.choice {
            Choice::Thinks { thinker, .. } => Some(thinker),
            Choice::Chooses(_) => None,
        }
    }
}
