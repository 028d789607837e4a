//! Many games on one thread, whose leaves are evaluated together: [`Player`].

use std::time::{Duration, Instant};

use games::Game;
use network::{
    NetworkError,
    batched::{BatchedEvaluator, EvaluationCounts, EvaluationSource},
};
use search::{ApplyError, Counters, GameKey, Search, Settings};

use super::arguments::Arguments;

/// Number of quick moves at the beginning of the last game. Earlier games have fewer, so that games are measured at different moves.
const QUICK_MOVES: usize = 80;
/// Visits of a quick move.
const QUICK_VISITS: u32 = 16;

/// Counters since the start.
#[derive(Clone, Copy, Default)]
pub struct Totals {
    pub search: Counters,
    pub answers: EvaluationCounts,
}

impl Totals {
    fn combine(self, other: Self, with: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            search: Counters {
                visits: with(self.search.visits, other.search.visits),
                evaluations: with(self.search.evaluations, other.search.evaluations),
                root_evaluations: with(self.search.root_evaluations, other.search.root_evaluations),
                gray_visits: with(self.search.gray_visits, other.search.gray_visits),
                terminal_visits: with(self.search.terminal_visits, other.search.terminal_visits),
                ..Counters::default()
            },
            answers: EvaluationCounts {
                fresh: with(self.answers.fresh, other.answers.fresh),
                cached: with(self.answers.cached, other.answers.cached),
                duplicates: with(self.answers.duplicates, other.answers.duplicates),
                batches: with(self.answers.batches, other.answers.batches),
            },
        }
    }

    pub fn plus(self, other: Self) -> Self {
        self.combine(other, |one, other| one + other)
    }

    pub fn since(self, before: Self) -> Self {
        self.combine(before, |now, before| now - before)
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
    /// Counters of games that are over.
    past: Totals,
    games: u64,
    pub moves: u64,
}

/// Error: a game of the measurement failed.
#[derive(Debug, thiserror::Error)]
enum PlayError {
    #[error(transparent)]
    Network(#[from] NetworkError),
    #[error(transparent)]
    Answer(#[from] ApplyError),
}

impl<G: Game> Player<G> {
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
            evaluator: BatchedEvaluator::new(source, G::encoding(0)?),
            past: Totals::default(),
            games: 0,
            moves: 0,
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
                .map_err(PlayError::from)
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
                        self.moves += 1;
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
        let counters = self.slots[number].search.counters();
        let over = Totals {
            search: counters,
            ..Totals::default()
        };
        self.past = over.plus(self.past);
        let search = self.search(state, quick);
        self.slots[number] = GameInProgress { search, quick };
    }

    pub fn totals(&self) -> Totals {
        let answers = Totals {
            answers: self.evaluator.counts(),
            ..Totals::default()
        };
        let now = self.slots.iter().map(|slot| Totals {
            search: slot.search.counters(),
            ..Totals::default()
        });
        now.fold(self.past.plus(answers), Totals::plus)
    }
}
