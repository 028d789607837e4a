//! Requests of a page to a table, and what any table can do ([`AnyTable`]).

use std::{sync::Arc, time::Duration};

use arena::Spec;
use games::{Action, Player};
use serde::Deserialize;
use tokio::sync::watch;

use super::{offers::Offer, refusal::Refusal};
use crate::{board::View, explore::explorer::AnyExplorer};

/// A request of a page to a table.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Command {
    /// Plays actions after the first `at` actions; later ones are taken back.
    Play {
        /// The actions.
        actions: Vec<Action>,
        /// Number of actions before them, as the page shows the game.
        at: usize,
    },
    /// Plays a turn, or a part of one, as people write it.
    Say {
        /// The turn.
        text: String,
    },
    /// Takes back the last action, and the computer's actions after it.
    Back,
    /// Takes back the person's last turn and all after it.
    Undo,
    /// Shows the position after some actions.
    Go {
        /// Number of actions.
        to: usize,
    },
    /// Shows the next stage of a hint.
    Hint,
    /// Switches the analysis.
    Analyse {
        /// True to switch it on.
        on: bool,
    },
    /// Lets the computer go on, or wait.
    Pause {
        /// True to wait.
        on: bool,
    },
}

/// Players of a table.
#[derive(Clone, Debug)]
pub struct Seats {
    /// Sides that people play.
    pub people: Vec<Player>,
    /// Player of the other sides.
    pub opponent: Spec,
    /// Player whose network analyses.
    pub advisor: Spec,
    /// Seed of the players' random draws.
    pub seed: u64,
}

/// Everything that a page shows of a table.
pub struct Slots {
    /// HTML of each place.
    pub html: Vec<(&'static str, String)>,
    /// Offers as JSON.
    pub offers: Vec<Offer>,
    /// Number of actions before the position that is shown.
    pub at: usize,
    /// Switches that are on.
    pub analysing: bool,
    /// True if the computer waits.
    pub paused: bool,
}

/// A table of any game.
pub trait AnyTable: Send + Sync {
    /// Does what a page asked.
    ///
    /// # Errors
    /// [`Refusal`] with a sentence for the person.
    fn execute(self: Arc<Self>, command: Command) -> Result<(), Refusal>;
    /// Everything that the page shows.
    fn slots(&self, view: View) -> Slots;
    /// Signals of changes.
    fn changes(&self) -> watch::Receiver<u64>;
    /// True while the computer is about to play, and somebody watches.
    fn is_thinking(&self) -> bool;
    /// Counts a watcher until the guard is dropped.
    fn watch(self: Arc<Self>) -> Watching;
    /// Time since the last watcher left; `None` while somebody watches.
    fn unwatched_for(&self) -> Option<Duration>;
    /// Stops all searches for good.
    fn close(&self);
    /// The game as a request that `minuet rules` answers.
    fn record(&self) -> serde_json::Value;
    /// A search of the position that is shown, without visits. Opens a network, which blocks.
    ///
    /// # Errors
    /// [`Refusal`] if the game is over, or the network cannot be used.
    fn explorer(&self) -> Result<Arc<dyn AnyExplorer>, Refusal>;
    /// Name of the game.
    fn game(&self) -> &'static str;
}

/// Guard of one watcher.
pub struct Watching(pub(super) Option<Box<dyn FnOnce() + Send + Sync>>);

impl Drop for Watching {
    fn drop(&mut self) {
        if let Some(leave) = self.0.take() {
            leave();
        }
    }
}
