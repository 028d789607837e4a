//! One game in progress: a state machine that gathers leaves, takes evaluations, and plays moves.

use anyhow::Context as _;
use games::{Drawn, Game};
use network::batched::Lookup;
use proto::v1::{self, VisitTotals};
use search::{Evaluation, LeafId, LeafRequest, Search};

use super::{
    curriculum::Rung,
    record::{GameEnd, Record},
    setup::Setup,
};
use crate::{
    GameId,
    evaluator::{VersionId, Versions},
    metrics::Snapshot,
};

/// A game in progress.
#[derive(Debug)]
pub(super) struct GameSlot<G: Game> {
    pub(super) search: Search<G>,
    start: G,
    /// Place of the problem in the curriculum. `None` for a game that is not about a problem.
    rung: Option<Rung>,
    pub(super) record: Record,
    /// Numbers of evaluations by where they came from. The search counts the other visits.
    evaluations: VisitTotals,
    /// Sum of the results of [`GameSlot::uncounted`] so far.
    counted: Snapshot,
}

impl<G: Game> GameSlot<G> {
    /// Begins a game from its usual start, or from `start`. `rung` is the place of the problem that
    /// `start` poses.
    pub(super) fn new(setup: &Setup<G>, named: (u64, GameId), start: Option<G>, rung: Option<Rung>) -> Self {
        let position = start.as_ref().map(Game::position);
        let start = start.unwrap_or_else(|| setup.start.clone());
        let search = Search::new(start.clone(), setup.settings.clone(), named.1.key(setup.run_seed));
        Self {
            search,
            start,
            rung,
            record: Record::new(setup, named, position.unwrap_or_default()),
            evaluations: VisitTotals::default(),
            counted: Snapshot::default(),
        }
    }

    /// Returns the place of the problem in the curriculum, and the length of the solution that was played, `None` if it is
    /// unsolved. `None` for a game that is not about a problem.
    pub(super) fn problem(&self) -> Option<(Rung, Option<usize>)> {
        let value = self
            .search
            .state()
            .outcome()
            .map_or(0.0, |outcome| outcome.value().get());
        Some((self.rung?, (value > 0.0).then(|| self.record.played().len())))
    }

    /// Returns the problem that the actions of this game do solve, with its solution (hindsight).
    pub(super) fn in_hindsight(&self) -> Option<Drawn<G>> {
        self.start.in_hindsight(self.record.played())
    }

    /// Returns the numbers of visits so far, by where their evaluations came from.
    fn totals(&self) -> VisitTotals {
        let counters = self.search.counters();
        VisitTotals {
            visits: counters.visits,
            terminal_visits: counters.terminal_visits,
            gray_visits: counters.gray_visits,
            ..self.evaluations
        }
    }

    /// Returns the numbers of visits since the last call.
    pub(super) fn uncounted(&mut self) -> Snapshot {
        let totals = self.totals();
        let now = Snapshot {
            visits: totals.visits,
            gray_visits: totals.gray_visits,
            terminal_visits: totals.terminal_visits,
            fresh_evaluations: totals.fresh_evaluations,
            cache_hits: totals.cache_hits,
            duplicates_in_flight: totals.duplicates_in_flight,
            ..Snapshot::default()
        };
        let new = now.since(&self.counted);
        self.counted = now;
        new
    }

    /// Gathers leaves. `add` receives every leaf that needs an evaluation.
    pub(super) fn gather(&mut self, mut add: impl FnMut(&LeafRequest<'_, G>) -> Lookup) {
        let evaluations = &mut self.evaluations;
        self.search.gather(|leaf| {
            let count = match add(&leaf) {
                Lookup::Fresh => &mut evaluations.fresh_evaluations,
                Lookup::Cached => &mut evaluations.cache_hits,
                Lookup::Duplicate => &mut evaluations.duplicates_in_flight,
            };
            *count += 1;
        });
    }

    /// Applies the evaluation of one leaf.
    pub(super) fn apply(
        &mut self,
        leaf: LeafId,
        evaluation: Evaluation<'_>,
        version: VersionId,
    ) -> anyhow::Result<()> {
        self.search
            .apply(leaf, evaluation)
            .context("a checked evaluation does not fit its leaf")?;
        let is_last = !self.search.is_waiting();
        self.record.evaluated_by(leaf.index(), version, is_last);
        Ok(())
    }

    /// Plays the move that the search has decided on. Returns the reason if that ends the game.
    pub(super) fn play(&mut self, setup: &Setup<G>) -> anyhow::Result<Option<GameEnd>> {
        let played = self.record.played().len();
        let action = self
            .search
            .choose(setup.settings.temperature_after(played))
            .with_context(|| format!("the search has no action to choose from after {played} actions"))?;
        let decision = self.search.decision();
        self.record.add(self.search.state(), setup, &decision, action);
        self.search
            .advance(action)
            .context("the search chose an illegal action")?;
        Ok(self.end(setup))
    }

    /// Returns the reason for the end of the game, if it is over.
    fn end(&self, setup: &Setup<G>) -> Option<GameEnd> {
        if self.search.fault().is_some() {
            // The worker drops the game.
            return None;
        }
        if let Some(outcome) = self.search.state().outcome() {
            return Some(GameEnd::Rules(outcome));
        }
        if self.record.played().len() >= setup.settings.max_actions as usize {
            return Some(GameEnd::MaxActions);
        }
        // Without an outcome, a search is complete before its first visit only if there is no legal action.
        let has_no_action = self.search.is_decided() && self.search.decision().actions.is_empty();
        has_no_action.then_some(GameEnd::NoAction)
    }

    /// Returns the record of the finished game.
    pub(super) fn finish(self, end: GameEnd, setup: &Setup<G>, versions: &Versions) -> v1::Game {
        let totals = self.totals();
        self.record
            .finish(self.search.state(), end, totals, setup, versions)
    }
}
