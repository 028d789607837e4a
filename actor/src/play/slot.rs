//! One game in progress: a state machine that gathers leaves, takes evaluations, and plays moves.

use anyhow::Context as _;
use games::{Drawn, Game};
use network::batched::Lookup;
use proto::v1;
use search::{Evaluation, LeafId, LeafRequest, Search};

use super::{
    curriculum::Rung,
    record::{End, EvaluationTotals, Record},
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
    search: Search<G>,
    start: G,
    /// Place of the problem in the curriculum. `None` for a game that is not about a problem.
    rung: Option<Rung>,
    record: Record,
    evaluations: EvaluationTotals,
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
            evaluations: EvaluationTotals::default(),
            counted: Snapshot::default(),
        }
    }

    pub(super) fn id(&self) -> GameId {
        self.record.id()
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

    /// Returns the number of visits since the last call, by where their evaluations came from.
    pub(super) fn uncounted(&mut self) -> Snapshot {
        let counters = self.search.counters();
        let now = Snapshot {
            visits: counters.visits,
            gray_visits: counters.gray_visits,
            terminal_visits: counters.terminal_visits,
            fresh_evaluations: self.evaluations.fresh,
            cache_hits: self.evaluations.cache_hits,
            duplicates_in_flight: self.evaluations.duplicates,
            ..Snapshot::default()
        };
        let new = now.since(&self.counted);
        self.counted = now;
        new
    }

    /// True if evaluations are outstanding.
    pub(super) fn is_waiting(&self) -> bool {
        self.search.is_waiting()
    }

    /// True if the search of the present move is complete.
    pub(super) fn is_decided(&self) -> bool {
        self.search.is_decided()
    }

    /// Gathers leaves. `add` receives every leaf that needs an evaluation.
    pub(super) fn gather(&mut self, mut add: impl FnMut(&LeafRequest<'_, G>) -> Lookup) {
        let evaluations = &mut self.evaluations;
        self.search.gather(|leaf| {
            let count = match add(&leaf) {
                Lookup::Fresh => &mut evaluations.fresh,
                Lookup::Cached => &mut evaluations.cache_hits,
                Lookup::Duplicate => &mut evaluations.duplicates,
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
    pub(super) fn play(&mut self, setup: &Setup<G>) -> anyhow::Result<Option<End>> {
        let played = self.record.actions();
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
    fn end(&self, setup: &Setup<G>) -> Option<End> {
        if let Some(outcome) = self.search.state().outcome() {
            return Some(End::Rules(outcome));
        }
        if self.record.actions() >= setup.max_actions {
            return Some(End::MaxActions);
        }
        // Without an outcome, a search is complete before its first visit only if there is no legal action.
        let has_no_action = self.search.is_decided() && self.search.decision().actions.is_empty();
        has_no_action.then_some(End::NoAction)
    }

    /// Returns the record of the finished game.
    pub(super) fn finish(self, end: End, setup: &Setup<G>, versions: &Versions) -> v1::Game {
        self.record
            .finish(&self.search, end, self.evaluations, setup, versions)
    }
}
