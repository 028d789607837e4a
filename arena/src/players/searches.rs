//! Searches of any game that share the batches of one network: [`Searches`]. Only this file is compiled once for each game. A call through a
//! pointer makes a batch or a move, never a single visit.

use std::{any::Any, fmt::Debug, mem};

use anyhow::{anyhow, ensure};
use games::{
    Action, Game, IllegalAction, MoverValue, Notation,
    erased::{AnyGame, AnyState},
    paco_sako::PacoSako,
    registry::{self, Visitor},
};
use network::{
    batched::{BatchedEvaluator, EvaluationCounts, EvaluationSource},
    file::encoding_of,
};
use search::{Counters, Decision, Depths, GameKey, Search, Settings, look::Look};

use super::Values;

/// A search without the type of its game. The methods are those of [`Search`].
#[expect(missing_docs, reason = "`Search` describes the methods")]
pub trait AnySearch: Any + Debug + Send {
    fn copy(&self) -> Box<dyn AnySearch>;
    fn settings(&self) -> &Settings;
    fn fault(&self) -> Option<&str>;
    fn is_decided(&self) -> bool;
    fn visits_done(&self) -> u32;
    fn set_visits(&mut self, visits: u32);
    fn counters(&self) -> Counters;
    fn depths(&self) -> Depths;
    fn restrict_root(&mut self, allowed: &[Action]);
    #[expect(clippy::missing_errors_doc, reason = "`Search::advance` describes it")]
    fn advance(&mut self, action: Action) -> Result<(), IllegalAction>;
    fn decision(&self) -> Decision;
    fn choose(&self, temperature: f32) -> Option<Action>;
    fn look(&self, path: &[Action]) -> Option<Look>;
    fn principal_variation(&self, first: Option<Action>) -> Vec<Action>;
}

impl<G: Game> AnySearch for Search<G> {
    fn copy(&self) -> Box<dyn AnySearch> {
        Box::new(self.clone())
    }

    fn settings(&self) -> &Settings {
        self.settings()
    }

    fn fault(&self) -> Option<&str> {
        self.fault()
    }

    fn is_decided(&self) -> bool {
        self.is_decided()
    }

    fn visits_done(&self) -> u32 {
        self.visits_done()
    }

    fn set_visits(&mut self, visits: u32) {
        self.set_visits(visits);
    }

    fn counters(&self) -> Counters {
        self.counters()
    }

    fn depths(&self) -> Depths {
        self.depths()
    }

    fn restrict_root(&mut self, allowed: &[Action]) {
        self.restrict_root(allowed);
    }

    fn advance(&mut self, action: Action) -> Result<(), IllegalAction> {
        self.advance(action)
    }

    fn decision(&self) -> Decision {
        self.decision()
    }

    fn choose(&self, temperature: f32) -> Option<Action> {
        self.choose(temperature)
    }

    fn look(&self, path: &[Action]) -> Option<Look> {
        self.look(path)
    }

    fn principal_variation(&self, first: Option<Action>) -> Vec<Action> {
        self.principal_variation(first)
    }
}

/// Searches of one game, whose leaves one network evaluates together. Each search has a slot, a number that it keeps until it ends.
pub trait Searches: Debug + Send {
    /// Begins a search of `state` and returns its slot.
    ///
    /// # Errors
    /// The state is of another game.
    fn begin(&mut self, state: &dyn AnyState, settings: Settings, key: GameKey) -> anyhow::Result<usize>;

    /// Continues a search that [`Searches::end`] returned, and returns its slot.
    ///
    /// # Errors
    /// The search is of another game.
    fn resume(&mut self, search: Box<dyn AnySearch>) -> anyhow::Result<usize>;

    /// Ends a search, which may be resumed. A later one takes its slot.
    fn end(&mut self, slot: usize) -> Box<dyn AnySearch>;

    /// Returns the search in a slot.
    fn search(&self, slot: usize) -> &dyn AnySearch;

    /// Returns the search in a slot.
    fn search_mut(&mut self, slot: usize) -> &mut dyn AnySearch;

    /// Gathers one batch of leaves of a search, and applies the evaluations that need no network. Returns true if the search waits for
    /// [`Searches::evaluate`].
    ///
    /// # Errors
    /// The search refuses an evaluation. The leaves of all searches are forgotten then, and the searches can continue.
    fn gather(&mut self, slot: usize) -> anyhow::Result<bool>;

    /// Returns the number of leaves that wait for the network.
    fn waiting(&self) -> usize;

    /// Evaluates the leaves of all searches that wait, in one batch.
    ///
    /// # Errors
    /// The network returns no evaluations. The leaves are forgotten then, and the searches can continue.
    fn evaluate(&mut self) -> anyhow::Result<()>;

    /// Returns the numbers of evaluations since the searches were made, by where they came from.
    fn counts(&self) -> EvaluationCounts;
}

/// Searches every state independently, `at_once` of them side by side, and returns the decisions in order. The random draws of state `k`
/// depend on `(seed, k)`.
///
/// # Errors
/// The network returns no evaluations, or a state is of another game.
pub fn decide_all(
    searches: &mut dyn Searches,
    states: &[Box<dyn AnyState>],
    settings: &Settings,
    seed: u64,
    at_once: usize,
) -> anyhow::Result<Vec<Decision>> {
    let mut decisions = Vec::with_capacity(states.len());
    for states in states.chunks(at_once.max(1)) {
        let mut slots = Vec::new();
        for (state, game) in states.iter().zip(decisions.len() as u64..) {
            let key = GameKey { run_seed: seed, game };
            slots.push(searches.begin(&**state, settings.clone(), key)?);
        }
        loop {
            let mut is_waiting = false;
            for &slot in &slots {
                // Evaluations from the cache need no batch, so the search continues until it waits for the network.
                while !searches.search(slot).is_decided() {
                    if searches.gather(slot)? {
                        is_waiting = true;
                        break;
                    }
                }
            }
            if !is_waiting {
                break;
            }
            searches.evaluate()?;
        }
        decisions.extend(slots.iter().map(|&slot| searches.search(slot).decision()));
        slots.into_iter().for_each(|slot| drop(searches.end(slot)));
    }
    Ok(decisions)
}

/// Makes [`Searches`] of a game with the evaluations of `source`. `place` names the network in errors.
///
/// # Errors
/// The network is for another game.
pub fn searches(
    game: &AnyGame,
    source: EvaluationSource,
    values: Values,
    place: &str,
) -> anyhow::Result<Box<dyn Searches>> {
    let making = Making {
        source,
        values,
        place,
    };
    registry::visit(game.name, making)?
}

struct Making<'a> {
    source: EvaluationSource,
    values: Values,
    place: &'a str,
}

impl Visitor for Making<'_> {
    type Output = anyhow::Result<Box<dyn Searches>>;

    fn visit<G: Notation>(self) -> Self::Output {
        let mut plays = None;
        let encoding = match &self.source {
            EvaluationSource::Network { network, .. } => {
                let layout = &network.description().layout;
                plays = Some((layout.title(), self.place.into()));
                encoding_of::<G>(layout, self.place)?
            }
            // Uniform evaluations ignore the representation.
            EvaluationSource::Uniform => G::encoding(&G::Rules::default(), G::OPTIONS)?,
        };
        let values: Option<fn(&G) -> MoverValue> = match self.values {
            Values::Network => None,
            Values::Threats => Some(threat_value),
        };
        Ok(Box::new(TypedSearches {
            evaluator: BatchedEvaluator::new(self.source, encoding).with_values(values),
            plays,
            searches: Vec::new(),
            free: Vec::new(),
        }))
    }
}

/// Returns the value of a position of Paco Ŝako by wins within a turn alone ([`PacoSako::threat_value`]); 0 in other games.
fn threat_value<G: Game>(state: &G) -> MoverValue {
    let state: &dyn Any = state;
    state
        .downcast_ref::<PacoSako>()
        .map_or(MoverValue::new(0.0), PacoSako::threat_value)
}

#[derive(Debug)]
struct TypedSearches<G: Game> {
    evaluator: BatchedEvaluator<G>,
    /// Title of the game that the network plays, with the size of the board, and the name of the network.
    plays: Option<(String, String)>,
    searches: Vec<Search<G>>,
    /// Slots of searches that have ended.
    free: Vec<usize>,
}

impl<G: Game> TypedSearches<G> {
    /// Puts a search into a free slot.
    fn put(&mut self, search: Search<G>) -> usize {
        match self.free.pop() {
            Some(slot) => {
                self.searches[slot] = search;
                slot
            }
            None => {
                self.searches.push(search);
                self.searches.len() - 1
            }
        }
    }

    fn forget_after<T>(&mut self, done: anyhow::Result<T>) -> anyhow::Result<T> {
        if done.is_err() {
            self.evaluator.clear();
            self.searches.iter_mut().for_each(Search::abandon);
        }
        done
    }
}

impl<G: Notation> Searches for TypedSearches<G> {
    fn begin(&mut self, state: &dyn AnyState, settings: Settings, key: GameKey) -> anyhow::Result<usize> {
        if let Some((plays, place)) = &self.plays {
            let asked = state.game().title();
            ensure!(*plays == asked, "{place} plays {plays}, not {asked}");
        }
        let state = super::typed::<G>(state)?.clone();
        Ok(self.put(Search::new(state, settings, key)))
    }

    fn resume(&mut self, search: Box<dyn AnySearch>) -> anyhow::Result<usize> {
        let search: Box<dyn Any> = search;
        let search = search.downcast::<Search<G>>();
        let search = search.map_err(|_| anyhow!("the search is not of {}", G::name()))?;
        Ok(self.put(*search))
    }

    fn end(&mut self, slot: usize) -> Box<dyn AnySearch> {
        self.free.push(slot);
        let search = &mut self.searches[slot];
        let key = GameKey { run_seed: 0, game: 0 };
        let empty = Search::new(search.state().clone(), search.settings().clone(), key);
        Box::new(mem::replace(search, empty))
    }

    fn search(&self, slot: usize) -> &dyn AnySearch {
        &self.searches[slot]
    }

    fn search_mut(&mut self, slot: usize) -> &mut dyn AnySearch {
        &mut self.searches[slot]
    }

    fn gather(&mut self, slot: usize) -> anyhow::Result<bool> {
        let (evaluator, search) = (&mut self.evaluator, &mut self.searches[slot]);
        search.gather(|leaf| evaluator.add(slot, &leaf));
        let applied = evaluator.take_known(|_, leaf, evaluation| search.apply(leaf, evaluation));
        let is_waiting = search.is_waiting();
        self.forget_after(applied.map(|()| is_waiting).map_err(anyhow::Error::from))
    }

    fn evaluate(&mut self) -> anyhow::Result<()> {
        let searches = &mut self.searches;
        let evaluated = self
            .evaluator
            .flush(|slot, leaf, evaluation| anyhow::Ok(searches[slot].apply(leaf, evaluation)?));
        self.forget_after(evaluated)
    }

    fn waiting(&self) -> usize {
        self.evaluator.waiting()
    }

    fn counts(&self) -> EvaluationCounts {
        self.evaluator.counts()
    }
}
