//! Self-play in lock step: many games advance together with one network, which changes only between calls. [`LockStep`].
//!
//! The games depend only on the configuration, the networks and the number of positions of each call, not on the speed of the
//! machine. The laboratory compares settings this way.

use std::sync::Arc;

use config::RunConfig;
use games::Game;
use network::{Network, Predictions, batched::Batcher};
use proto::v1::{self, ModelDescription};

use super::{
    begin::{Begun, begin},
    curriculum::Curriculum,
    naming::Naming,
    record,
    setup::Setup,
    slot::GameSlot,
};
use crate::{
    cache::Cache,
    evaluator::{VersionId, Versions},
    metrics::{Metrics, Snapshot},
};

/// Games that advance together on one thread.
pub struct LockStep<G: Game> {
    setup: Setup<G>,
    naming: Naming,
    curriculum: Curriculum,
    versions: Versions,
    batcher: Batcher,
    predictions: Predictions,
    slots: Vec<Option<GameSlot<G>>>,
    finished: Vec<v1::Game>,
    metrics: Metrics,
}

impl<G: Game> LockStep<G> {
    /// Begins with `actor.games_per_thread` games, or 64 if that is 0: on every machine the same. Game numbers and the level of
    /// problems are kept in the folder `actor.spool`, which must exist. Runs with equal seeds give their games equal ids, and so equal random draws.
    ///
    /// # Errors
    /// The configuration is invalid, or the folder cannot be used.
    pub fn new(config: &RunConfig) -> anyhow::Result<Self> {
        let games = config.actor.games_on_thread(1, 0);
        Naming::fix_incarnation(&config.actor.spool, "lock-step", &config.run.seed.to_string())?;
        let naming = Naming::open(&config.actor.spool, &config.actor.name, config.run.seed)?;
        let cache = Cache::new(config.actor.cache_mib << 20).map(Arc::new);
        Ok(Self {
            setup: Setup::new(config, &naming.name, games)?,
            curriculum: Curriculum::open(&config.actor.spool, &config.problems, G::LEVELS)?,
            naming,
            versions: Versions::default(),
            batcher: Batcher::new(cache, usize::MAX),
            predictions: Predictions::default(),
            slots: (0..games).map(|_| None).collect(),
            finished: Vec::new(),
            metrics: Metrics::new(),
        })
    }

    /// Counts since the beginning: visits by the source of their evaluation, actions, games.
    pub fn counts(&self) -> Snapshot {
        self.metrics.snapshot()
    }

    /// Plays with `network` until games with at least `positions` positions together have ended, and returns these games in the
    /// order in which they ended. Games in progress continue at the next call.
    ///
    /// # Errors
    /// The network does not evaluate a batch, or the search and the rules contradict each other.
    pub fn play(&mut self, network: &dyn Network, positions: usize) -> anyhow::Result<Vec<v1::Game>> {
        let version = self.announce(network)?;
        let mut ended = 0;
        while ended < positions {
            let before = self.finished.len();
            for slot in 0..self.slots.len() {
                self.advance(slot, version)?;
            }
            self.evaluate(network, version)?;
            let new = &self.finished[before..];
            ended += new.iter().map(|game| game.actions.len()).sum::<usize>();
        }
        Ok(std::mem::take(&mut self.finished))
    }

    /// Numbers the network's version for the records of games.
    fn announce(&self, network: &dyn Network) -> anyhow::Result<VersionId> {
        let description = network.description();
        let version = self
            .versions
            .answered(&description.version, self.versions.stamp())?;
        self.versions.describe(ModelDescription {
            version: description.version.clone(),
            provider: description.provider.clone(),
            ..ModelDescription::default()
        });
        Ok(version)
    }

    /// Plays the moves that are decided, then gathers the leaves of the next one.
    fn advance(&mut self, index: usize, version: VersionId) -> anyhow::Result<()> {
        let slot = match &mut self.slots[index] {
            Some(slot) => slot,
            empty => match begin(&self.setup, &self.curriculum, self.naming.next_game()?)? {
                Begun::Game(game) => empty.insert(*game),
                Begun::Recorded(_, game) => {
                    self.finished.push(*game);
                    return Ok(());
                }
            },
        };
        while slot.search.is_decided() {
            let end = slot.play(&self.setup)?;
            self.metrics.actions.add(1);
            self.metrics.add(&slot.uncounted());
            if let Some(end) = end {
                if let Some(ended) = self.slots[index].take() {
                    self.end(ended, end)?;
                }
                return Ok(());
            }
        }
        let (batcher, encoding) = (&mut self.batcher, self.setup.encoding);
        slot.gather(|leaf| batcher.add(index, leaf, encoding, Some(version)));
        batcher.take_known(|waiter, evaluation, version| slot.apply(waiter.leaf, evaluation, version))?;
        Ok(())
    }

    /// Records a game that is over, and the problem that it does solve if it is an unsolved one.
    fn end(&mut self, ended: GameSlot<G>, end: record::GameEnd) -> anyhow::Result<()> {
        let mut second = None;
        if let Some((rung, solution)) = ended.problem() {
            self.curriculum.note(rung, solution)?;
            if solution.is_none() {
                second = ended.in_hindsight();
            }
        }
        self.finished.push(ended.finish(end, &self.setup, &self.versions));
        if let Some(drawn) = second {
            let named = self.naming.next_game()?;
            let game = record::of_solution(&drawn, "hindsight", named, &self.setup);
            self.finished.push(game?);
        }
        Ok(())
    }

    /// Evaluates the gathered leaves of all games in one batch.
    fn evaluate(&mut self, network: &dyn Network, version: VersionId) -> anyhow::Result<()> {
        let Some((id, positions)) = self.batcher.next_batch(true) else {
            return Ok(());
        };
        self.predictions.clear();
        network.evaluate(positions, &mut self.predictions)?;
        self.predictions.round_priors();
        let slots = &mut self.slots;
        self.batcher
            .complete(id, version, &self.predictions, |waiter, evaluation| {
                match slots.get_mut(waiter.slot).and_then(Option::as_mut) {
                    Some(slot) => slot.apply(waiter.leaf, evaluation, version),
                    None => Ok(()),
                }
            })?;
        Ok(())
    }
}
