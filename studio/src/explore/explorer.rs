//! [`Explorer`]: a search that waits, shows its tree, and makes as many visits more as a person requests.

use std::{
    collections::VecDeque,
    sync::{Arc, atomic::AtomicBool},
};

use arena::{
    analysis::figures,
    players::{searches::AnySearch, thinker::Thinker},
};
use games::{
    Action,
    erased::{AnyGame, AnyState},
};
use maud::Markup;
use parking_lot::Mutex;
use search::{Reuse, Settings};
use serde_json::{Value, json};

use super::view;

/// Most explorers that are open; the one that was used least recently makes room.
const MOST: usize = 4;
/// Memory of a tree, in bytes.
const TREE: usize = 64 << 20;

/// A search of one position.
pub struct Explorer {
    pub(super) begin: Box<dyn AnyState>,
    pub(super) by: String,
    /// Most visits.
    pub(super) most: u32,
    pub(super) inner: Mutex<Inner>,
}

/// The changing part of an explorer.
pub(super) struct Inner {
    pub thinker: Thinker,
    /// Actions of the last visit, if the last request was for one.
    pub last: Option<Vec<Action>>,
}

/// The open explorers, that of the last use at the end.
#[derive(Default)]
pub struct Explorers(Mutex<VecDeque<(String, Arc<Explorer>)>>);

impl std::fmt::Debug for Explorers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Explorers({} open)", self.0.lock().len())
    }
}

impl Explorers {
    /// Adds an explorer and returns its id.
    pub fn add(&self, explorer: Arc<Explorer>) -> String {
        let mut open = self.0.lock();
        if open.len() >= MOST {
            open.pop_front();
        }
        let id = format!("{:016x}", rand::random::<u64>());
        open.push_back((id.clone(), explorer));
        id
    }

    /// The explorer with this id; `None` if it has made room for others.
    pub fn find(&self, id: &str) -> Option<Arc<Explorer>> {
        let mut open = self.0.lock();
        let at = open.iter().position(|(known, _)| known == id)?;
        let found = open.remove(at)?;
        let explorer = Arc::clone(&found.1);
        open.push_back(found);
        Some(explorer)
    }
}

/// Settings of an explorer: those of a player, with one visit after the other and without anything that is drawn.
pub fn settings(player: &Settings) -> Settings {
    Settings {
        leaves: 1,
        noise_fraction: 0.0,
        random_symmetry: false,
        reuse: Reuse::Drop,
        // The formula chooses alone, also where a move is proven.
        solver: false,
        exact_leaves: false,
        stop_when_solved: false,
        tree_bytes: TREE,
        ..player.clone()
    }
}

impl Explorer {
    /// An explorer whose search has made no visit. `settings` are those of [`settings`].
    pub fn new(thinker: Thinker, by: &str, most: u32) -> Self {
        Self {
            begin: thinker.state().copy(),
            by: by.into(),
            most,
            inner: Mutex::new(Inner { thinker, last: None }),
        }
    }

    /// State behind a path of legal actions.
    pub(super) fn state(&self, path: &[Action]) -> Option<Box<dyn AnyState>> {
        let mut state = self.begin.copy();
        for &action in path {
            state.play(action).ok()?;
        }
        Some(state)
    }

    /// Makes more visits until `stop` is set. Evaluates positions, which blocks.
    ///
    /// # Errors
    /// The network cannot be asked. Earlier visits are kept.
    pub fn visit(&self, count: u32, stop: &AtomicBool) -> anyhow::Result<()> {
        let inner = &mut *self.inner.lock();
        let done = inner.thinker.search().visits_done();
        let goal = done.saturating_add(count).min(self.most);
        let before = (count == 1 && goal > done).then(|| inner.thinker.search().copy());
        inner.last = None;
        inner.thinker.think(goal, stop, |_| {})?;
        inner.last = before.map(|before| grown(&*before, inner.thinker.search()));
        Ok(())
    }

    /// The tree, opened along a path, and the node at its end. `None` if the tree has no such node. `base` is the page's address.
    pub fn page(&self, base: &str, path: &[Action], all: bool) -> Option<Markup> {
        view::page(self, &self.inner.lock(), base, path, all)
    }

    /// All nodes with visits.
    pub fn tree(&self) -> Value {
        let inner = self.inner.lock();
        let search = inner.thinker.search();
        let settings = search.settings();
        json!({
            "game": self.game().title(),
            "position": self.begin.position(),
            "network": self.by,
            "visits": search.visits_done(),
            "exploration": settings.exploration,
            "first_play": settings.first_play,
            "nodes": figures::tree(search),
        })
    }

    /// The game.
    pub fn game(&self) -> &'static AnyGame {
        self.begin.game()
    }
}

/// Actions along which the visits have grown by one.
fn grown(before: &dyn AnySearch, after: &dyn AnySearch) -> Vec<Action> {
    let mut path = Vec::new();
    while let Some(look) = after.look(&path) {
        let earlier = before.look(&path);
        let visits = |action: Action| {
            let children = earlier.as_ref().map(|look| &look.children);
            let child = children.and_then(|children| children.iter().find(|child| child.action == action));
            child.map_or(0, |child| child.visits)
        };
        let Some(child) = look
            .children
            .iter()
            .find(|child| child.visits > visits(child.action))
        else {
            break;
        };
        path.push(child.action);
    }
    path
}
