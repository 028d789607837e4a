//! [`Thinking`]: the search, with its network and its tree, which is kept from move to move.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use ::network::batched::EvaluationSource;
use anyhow::Context as _;
use arena::{
    Thinker,
    players::{OpenedNetwork, Values, searches::searches, usual_search},
};
use games::{Action, Course, erased::AnyGame};
use search::{GameKey, Reuse, Settings};

use super::{BATCH, board::Board};
use crate::uci::clock::Budget;

/// Visits of a move without a clock.
const VISITS: u32 = 400;

/// A search of positions of a game.
pub struct Thinking {
    /// Name of the network.
    model: String,
    /// `None`: uniform evaluations.
    network: Option<Arc<OpenedNetwork>>,
    visits: Option<u32>,
    temperature: f32,
    tree: Option<Tree>,
}

/// A tree that may be used again.
struct Tree {
    thinker: Thinker,
    /// Actions since the start of the game.
    actions: Vec<Action>,
}

impl Thinking {
    /// Makes a search with a network, or without one.
    pub const fn new(
        model: String,
        network: Option<Arc<OpenedNetwork>>,
        visits: Option<u32>,
        temperature: f32,
    ) -> Self {
        Self {
            model,
            network,
            visits,
            temperature,
            tree: None,
        }
    }

    /// Checks that the network plays a game on a board of this size.
    ///
    /// # Errors
    /// Sentence that names both games.
    pub fn check(&self, game: &AnyGame) -> Result<(), String> {
        let plays = self.network.as_ref();
        match plays.map(|network| network.description().layout.title()) {
            Some(plays) if plays != game.title() => {
                Err(format!("{} plays {plays}, not {}", self.model, game.title()))
            }
            _ => Ok(()),
        }
    }

    /// Forgets the tree, because the next position belongs to another game.
    pub fn forget(&mut self) {
        self.tree = None;
    }

    /// Searches the present state of a game, which is not over, and returns the chosen action. `look` is called after each batch.
    ///
    /// # Errors
    /// The network returns no evaluations.
    pub fn choose(
        &mut self,
        course: &Course,
        budget: Option<Budget>,
        mut look: impl FnMut(&Thinker),
    ) -> anyhow::Result<Action> {
        let visits = self.visits.unwrap_or(match budget {
            Some(_) => Settings::MAX_VISITS,
            None => VISITS,
        });
        let began = Instant::now();
        let is_enough = |thinker: &Thinker| {
            look(thinker);
            budget.is_some_and(|budget| budget.is_up(began.elapsed(), thinker.search()))
        };
        let temperature = self.temperature;
        let thinker = self.think(course, visits, is_enough)?;
        let chosen = thinker.search().choose(temperature);
        chosen.context("the search found no move")
    }

    /// Searches the present state of a game, which is not over, until `is_enough` says so after one of the batches, or until `visits`.
    ///
    /// # Errors
    /// The network returns no evaluations.
    pub fn think(
        &mut self,
        course: &Course,
        visits: u32,
        mut is_enough: impl FnMut(&Thinker) -> bool,
    ) -> anyhow::Result<&Thinker> {
        let mut tree = self.tree_for(course)?;
        let halt = AtomicBool::new(false);
        tree.thinker
            .think(visits.min(Settings::MAX_VISITS), &halt, |thinker| {
                if is_enough(thinker) {
                    halt.store(true, Ordering::Relaxed);
                }
            })?;
        Ok(&self.tree.insert(tree).thinker)
    }

    /// Returns the tree of the last search if the game has continued from there, else a new one.
    fn tree_for(&mut self, course: &Course) -> anyhow::Result<Tree> {
        let actions = course.actions().to_vec();
        if let Some(mut tree) = self.tree.take()
            && let Some(since) = actions.strip_prefix(tree.actions.as_slice())
            && since.iter().all(|&action| tree.thinker.advance(action).is_ok())
        {
            tree.actions = actions;
            return Ok(tree);
        }
        let state = course.state();
        let network = self.network.as_ref();
        let source = match network {
            Some(network) => network.source(0)?,
            None => EvaluationSource::Uniform,
        };
        let searches = searches(state.game(), source, Values::Network, &self.model)?;
        let key = GameKey {
            // Draws of a temperature differ between games.
            run_seed: rand::random(),
            game: 0,
        };
        let settings = self.settings(state.game());
        Ok(Tree {
            thinker: Thinker::new(state, settings, key, searches)?,
            actions,
        })
    }

    fn settings(&self, game: &AnyGame) -> Settings {
        let run = self.network.as_ref().and_then(|network| network.search());
        Settings {
            leaves: BATCH as u32,
            noise_fraction: 0.0,
            // A random symmetry would halve the hits of the evaluation cache.
            random_symmetry: false,
            reuse: Reuse::Keep,
            solver: true,
            ..run.cloned().unwrap_or_else(|| usual_search(game))
        }
    }
}

/// Returns the results so far as one line without a line feed, in the form of Leela Zero: for each move that has visits, the best first,
/// visits, win rate and prior in ten-thousandths, and the most visited line.
pub fn info(board: &Board, thinker: &Thinker) -> String {
    let search = thinker.search();
    let decision = search.decision();
    let best = search.choose(0.0);
    let mut order: Vec<usize> = (0..decision.visits.len()).collect();
    order.retain(|&index| decision.visits[index] > 0);
    order.sort_by_key(|&index| {
        let is_best = Some(decision.actions[index]) == best;
        std::cmp::Reverse((is_best, decision.visits[index]))
    });
    let ten_thousandths = |share: f32| (share * 10_000.0).round() as u32;
    let moves = order.into_iter().enumerate().map(|(order, index)| {
        let mut state = thinker.state().copy();
        let name = |&action: &Action| {
            let name = board.name(&*state, action);
            state.play_legal(action);
            name
        };
        let line = search.principal_variation(Some(decision.actions[index]));
        let line: Vec<String> = line.iter().map(name).collect();
        format!(
            "info move {} visits {} winrate {} prior {} order {order} pv {}",
            board.name(thinker.state(), decision.actions[index]),
            decision.visits[index],
            ten_thousandths((decision.values[index].get() + 1.0) / 2.0),
            ten_thousandths(decision.priors.get(index).copied().unwrap_or_default()),
            line.join(" ")
        )
    });
    moves.collect::<Vec<_>>().join(" ")
}
