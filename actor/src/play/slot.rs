//! One game in progress: a state machine that asks for evaluations and plays.

use games::{Drawn, Game, IllegalAction};
use proto::v1;
use search::{ApplyError, Evaluation, LeafId, LeafRequest, Search};

use super::{
    record::{Answered, End, Record},
    setup::Setup,
};
use crate::{
    GameId,
    evaluator::{VersionId, Versions},
    metrics::Snapshot,
    settings::temperature,
};

/// Something in the search or the rules contradicts itself; no answer of a server can lead here.
#[derive(Debug, thiserror::Error)]
pub enum SlotError {
    /// An evaluation that was checked does not fit its leaf.
    #[error("a checked evaluation does not fit its leaf: {0}")]
    Apply(#[from] ApplyError),
    /// The search chose what the rules forbid.
    #[error("the search chose an illegal action: {0}")]
    Illegal(#[from] IllegalAction),
    /// The search has nothing to choose although the game goes on.
    #[error("the search has nothing to choose from after {0} actions")]
    Nothing(usize),
    /// A problem came with a solution that is none.
    #[error("a solution that is none: {0}")]
    Solution(IllegalAction),
    /// Every game waits, and for nothing.
    #[error("no game can go on and nothing is being asked")]
    Stuck,
}

/// How a question was answered, or not yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// The network is asked.
    Fresh,
    /// The cache knew.
    Known,
    /// The network is being asked the same already.
    Duplicate,
}

/// A game in progress.
#[derive(Debug)]
pub(super) struct Slot<G: Game> {
    search: Search<G>,
    start: G,
    /// Where it is a problem: how hard that is.
    level: Option<u32>,
    record: Record,
    answered: Answered,
    /// What [`Slot::uncounted`] has given so far.
    counted: Snapshot,
}

impl<G: Game> Slot<G> {
    /// A game from its usual start, or of `problem` and its level.
    pub(super) fn new(setup: &Setup<G>, number: u64, id: GameId, problem: Option<(G, u32)>) -> Self {
        let position = problem.as_ref().map(|(start, _)| start.position());
        let level = problem.as_ref().map(|&(_, level)| level);
        let start = problem.map_or_else(|| setup.start.clone(), |(start, _)| start);
        let search = Search::new(start.clone(), setup.settings.clone(), id.key(setup.run_seed));
        Self {
            search,
            start,
            level,
            record: Record::new(id, number, position.unwrap_or_default()),
            answered: Answered::default(),
            counted: Snapshot::default(),
        }
    }

    pub(super) fn id(&self) -> GameId {
        self.record.id()
    }

    /// The level of the problem that it was, and whether it is solved.
    pub(super) fn problem(&self) -> Option<(u32, bool)> {
        let value = self
            .search
            .state()
            .outcome()
            .map_or(0.0, |outcome| outcome.value().get());
        Some((self.level?, value > 0.0))
    }

    /// What the game has solved instead of its problem.
    pub(super) fn in_hindsight(&self) -> Option<Drawn<G>> {
        self.start.in_hindsight(self.record.played())
    }

    /// Visits, by how they were answered, since the last call.
    pub(super) fn uncounted(&mut self) -> Snapshot {
        let counters = self.search.counters();
        let now = Snapshot {
            visits: counters.visits,
            gray_visits: counters.gray_visits,
            terminal_visits: counters.terminal_visits,
            fresh_evaluations: self.answered.fresh,
            cache_hits: self.answered.cache_hits,
            duplicates_in_flight: self.answered.duplicates,
            ..Snapshot::default()
        };
        let new = now.since(&self.counted);
        self.counted = now;
        new
    }

    /// Whether evaluations are outstanding.
    pub(super) fn is_waiting(&self) -> bool {
        self.search.is_waiting()
    }

    /// Whether the search of this move is done.
    pub(super) fn is_decided(&self) -> bool {
        self.search.is_decided()
    }

    /// Descends; `ask` is shown every leaf that needs an evaluation and says how it is answered.
    pub(super) fn gather(&mut self, mut ask: impl FnMut(&LeafRequest<'_, G>) -> Asked) {
        let answered = &mut self.answered;
        self.search.gather(|leaf| {
            let count = match ask(&leaf) {
                Asked::Fresh => &mut answered.fresh,
                Asked::Known => &mut answered.cache_hits,
                Asked::Duplicate => &mut answered.duplicates,
            };
            *count += 1;
        });
    }

    /// Answers one leaf.
    pub(super) fn apply(
        &mut self,
        leaf: LeafId,
        evaluation: Evaluation<'_>,
        version: VersionId,
    ) -> Result<(), SlotError> {
        self.record.evaluated_by(version);
        Ok(self.search.apply(leaf, evaluation)?)
    }

    /// Plays the move that was decided on; says whether that ended the game.
    pub(super) fn play(&mut self, setup: &Setup<G>) -> Result<Option<End>, SlotError> {
        let played = self.record.actions();
        let temperature = temperature(&setup.temperature, played);
        let action = self
            .search
            .choose(temperature)
            .ok_or(SlotError::Nothing(played))?;
        let decision = self.search.decision();
        self.record
            .add(self.search.state(), setup.encoding, &decision, action);
        self.search.advance(action)?;
        Ok(self.end(setup))
    }

    /// Whether the game is over.
    fn end(&self, setup: &Setup<G>) -> Option<End> {
        if let Some(outcome) = self.search.state().outcome() {
            return Some(End::Rules(outcome));
        }
        if self.record.actions() >= setup.max_actions {
            return Some(End::MaxActions);
        }
        // A search without an outcome has nothing to decide only where there is no action.
        let has_no_action = self.search.is_decided() && self.search.decision().actions.is_empty();
        has_no_action.then_some(End::NoAction)
    }

    /// The record of the finished game.
    pub(super) fn finish(self, end: End, setup: &Setup<G>, versions: &Versions) -> v1::Game {
        self.record
            .finish(&self.search, end, self.answered, setup, versions)
    }
}
