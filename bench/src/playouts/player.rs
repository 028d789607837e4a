//! Many games on one thread, whose leaves are evaluated together: [`Player`].

use std::time::{Duration, Instant};

use games::{Game, Notation};
use network::batched::{BatchedEvaluator, EvaluationSource};
use search::{Counters, GameKey, Search, Settings};
use serde::Serialize;

use super::Arguments;

/// Number of quick moves at the beginning of the last game. Earlier games have fewer, so that games are measured at different moves.
const QUICK_MOVES: usize = 80;
/// Visits of a quick move.
const QUICK_VISITS: u32 = 16;

/// Counts since the start.
#[derive(Clone, Copy, Default, Serialize)]
pub struct Totals {
    pub playouts: u64,
    /// Requested evaluations.
    asked: u64,
    /// Requested evaluations that were not playouts.
    root_evaluations: u64,
    pub fresh: u64,
    cache_hits: u64,
    duplicates: u64,
    pub gray: u64,
    terminal: u64,
    moves: u64,
    #[serde(skip)]
    pub batches: u64,
}

impl Totals {
    fn add(&mut self, search: &Counters) {
        self.playouts += search.visits;
        self.asked += search.evaluations;
        self.root_evaluations += search.root_evaluations;
        self.gray += search.gray_visits;
        self.terminal += search.terminal_visits;
    }

    /// Returns what was counted after `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            playouts: self.playouts - before.playouts,
            asked: self.asked - before.asked,
            root_evaluations: self.root_evaluations - before.root_evaluations,
            fresh: self.fresh - before.fresh,
            cache_hits: self.cache_hits - before.cache_hits,
            duplicates: self.duplicates - before.duplicates,
            gray: self.gray - before.gray,
            terminal: self.terminal - before.terminal,
            moves: self.moves - before.moves,
            batches: self.batches - before.batches,
        }
    }
}

/// A game in progress, and the number of its moves that are still to be played quickly.
struct GameInProgress<G: Game> {
    search: Search<G>,
    quick: u32,
}

/// Many games on one thread.
pub struct Player<G: Game> {
    settings: Settings,
    slots: Vec<GameInProgress<G>>,
    evaluator: BatchedEvaluator<G>,
    /// Counts of games that are over, and of all moves.
    past: Totals,
    games: u64,
}

impl<G: Notation> Player<G> {
    pub fn new(arguments: &Arguments, source: EvaluationSource) -> anyhow::Result<Self> {
        let settings = Settings {
            visits: arguments.visits,
            leaves: arguments.leaves,
            ..Settings::default()
        };
        settings.check()?;
        let mut player = Self {
            settings,
            slots: Vec::new(),
            evaluator: BatchedEvaluator::new(source, G::encoding(&G::Rules::default(), G::OPTIONS)?),
            past: Totals::default(),
            games: 0,
        };
        for number in 0..arguments.games {
            let quick = (number * QUICK_MOVES / arguments.games) as u32;
            let search = player.search(G::start(&G::Rules::default(), None)?, quick);
            player.slots.push(GameInProgress { search, quick });
        }
        while player.slots.iter().any(|slot| slot.quick > 0) {
            player.step(|slot| slot.quick > 0)?;
        }
        Ok(player)
    }

    /// Returns a search for a game of which the next `quick` moves are played quickly.
    fn search(&mut self, state: G, quick: u32) -> Search<G> {
        self.games += 1;
        let key = GameKey {
            run_seed: 1,
            game: self.games,
        };
        let mut settings = self.settings.clone();
        if quick > 0 {
            settings.visits = QUICK_VISITS;
        }
        Search::new(state, settings, key)
    }

    pub fn play_for(&mut self, time: Duration) -> anyhow::Result<()> {
        let began = Instant::now();
        while began.elapsed() < time {
            self.step(|_| true)?;
        }
        Ok(())
    }

    /// Advances the games that `which` selects until they wait for the network, then evaluates their positions.
    fn step(&mut self, which: impl Fn(&GameInProgress<G>) -> bool) -> anyhow::Result<()> {
        for number in 0..self.slots.len() {
            if which(&self.slots[number]) {
                self.advance(number)?;
            }
        }
        let slots = &mut self.slots;
        self.evaluator.flush(|number, leaf, evaluation| {
            slots[number]
                .search
                .apply(leaf, evaluation)
                .map_err(anyhow::Error::from)
        })?;
        Ok(())
    }

    fn advance(&mut self, number: usize) -> anyhow::Result<()> {
        loop {
            let Self { slots, evaluator, .. } = self;
            let GameInProgress { search, quick } = &mut slots[number];
            if search.is_decided() {
                match search.choose(1.0) {
                    Some(action) => {
                        search.advance(action)?;
                        self.past.moves += 1;
                        if *quick == 1 {
                            let state = search.state().clone();
                            self.replace(number, state, 0);
                        } else {
                            *quick = quick.saturating_sub(1);
                        }
                    }
                    None => {
                        let (state, quick) = (G::start(&G::Rules::default(), None)?, *quick);
                        self.replace(number, state, quick);
                    }
                }
                continue;
            }
            search.gather(|leaf| evaluator.add(number, &leaf));
            evaluator.take_known(|_, leaf, evaluation| search.apply(leaf, evaluation))?;
            if search.is_waiting() {
                return Ok(());
            }
        }
    }

    /// Replaces a game that is over by a new one.
    fn replace(&mut self, number: usize, state: G, quick: u32) {
        self.past.add(&self.slots[number].search.counters());
        let search = self.search(state, quick);
        self.slots[number] = GameInProgress { search, quick };
    }

    pub fn totals(&self) -> Totals {
        let answers = self.evaluator.counts();
        let mut totals = Totals {
            fresh: answers.fresh,
            cache_hits: answers.cached,
            duplicates: answers.duplicates,
            batches: answers.batches,
            ..self.past
        };
        for slot in &self.slots {
            totals.add(&slot.search.counters());
        }
        totals
    }
}
