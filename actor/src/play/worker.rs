//! A worker thread: many games at once, several requests in flight, never idle while any game can go on.
//!
//! | module | what it is for |
//! |---|---|
//! | [`slot`] | one game in progress, a state machine |
//! | [`batcher`] | where questions become requests, and answers find those who asked |
//!
//! The thread takes one game that can go on, lets it descend, and puts what it asks into the request that is
//! being filled. A request goes out when it is full, and a partial one when no game can go on without
//! an answer. The thread blocks only then, or when as many requests are in flight as may be and another is full.

use std::{
    collections::VecDeque,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use games::{Drawn, Game};
use prost::Message as _;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    batcher::RequestBatcher,
    curriculum::{self, Curriculum},
    naming::Naming,
    record::{self, End},
    setup::Setup,
    slot::{Slot, SlotError},
};
use crate::{
    GameId,
    cache::Cache,
    evaluator::{Answer, Ask, Versions},
    log_throttle::LogThrottle,
    metrics::Metrics,
    spool::{Finished, FinishedGames},
};

/// How long a disk that takes no reservation of game numbers is left alone.
const NAMING_RETRY: Duration = Duration::from_millis(500);
/// How often that is said.
pub(crate) const REMINDER: Duration = Duration::from_secs(30);

/// What the worker threads share.
pub struct Shared<G: Game> {
    /// What all games have in common.
    pub setup: Setup<G>,
    /// Names new games.
    pub naming: Naming,
    /// How hard problems are.
    pub curriculum: Curriculum,
    /// Evaluations that are known; `None`: the cache is off.
    pub cache: Option<Arc<Cache>>,
    /// Model versions.
    pub versions: Arc<Versions>,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// The model that is asked.
    pub model: String,
    /// Games in progress on each thread.
    pub games_per_thread: usize,
    /// Largest request.
    pub rows_per_request: usize,
    /// Requests of one thread that may wait for an answer.
    pub requests_in_flight: usize,
    /// That a disk takes no reservation of numbers is said once for all threads.
    pub(crate) trouble: LogThrottle,
    /// Ends self-play. Games in progress are dropped: their numbers are not used again.
    pub stop: CancellationToken,
}

/// One thread's games.
pub struct Worker<G: Game> {
    shared: Arc<Shared<G>>,
    slots: Vec<Option<Slot<G>>>,
    /// Slots that can go on.
    ready: VecDeque<usize>,
    batcher: RequestBatcher,
    asks: mpsc::Sender<Ask>,
    answers: mpsc::Receiver<Answer>,
    finished: FinishedGames,
    /// When the thread last had to wait, or began.
    busy_since: Instant,
}

/// Whether the thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    GoOn,
    Stop,
}

impl<G: Game> Worker<G> {
    /// A worker that asks on `asks`, is answered on `answers`, and hands finished games to `finished`.
    pub fn new(
        shared: Arc<Shared<G>>,
        asks: mpsc::Sender<Ask>,
        answers: mpsc::Receiver<Answer>,
        finished: FinishedGames,
    ) -> Self {
        let batcher = RequestBatcher::new(
            shared.cache.clone(),
            Arc::clone(&shared.versions),
            shared.model.clone(),
            shared.setup.row_len,
            shared.rows_per_request,
        );
        Self {
            slots: (0..shared.games_per_thread).map(|_| None).collect(),
            ready: (0..shared.games_per_thread).collect(),
            batcher,
            asks,
            answers,
            finished,
            busy_since: Instant::now(),
            shared,
        }
    }

    /// Plays until stopped, or until the stream of answers ends.
    ///
    /// # Errors
    /// [`SlotError`]: search and rules contradict each other.
    pub fn run(mut self) -> Result<(), SlotError> {
        self.busy_since = Instant::now();
        while !self.shared.stop.is_cancelled() {
            while let Ok(answer) = self.answers.try_recv() {
                self.take(&answer)?;
            }
            self.send();
            let slot = if self.batcher.has_full() {
                None
            } else {
                self.ready.pop_front()
            };
            let next = match slot {
                Some(slot) => self.advance(slot)?,
                None => self.wait()?,
            };
            if next == Next::Stop {
                break;
            }
        }
        Ok(())
    }

    /// Sends what is full; what is not, only if nothing can be added to it before an answer comes.
    fn send(&mut self) {
        while self.batcher.in_flight() < self.shared.requests_in_flight {
            let Some(ask) = self.batcher.next_request(self.ready.is_empty()) else {
                return;
            };
            // The channel has room for all requests in flight. If it is closed, waiting for an answer will say so.
            if self.asks.try_send(ask).is_err() {
                return;
            }
        }
    }

    /// Blocks until an answer comes.
    fn wait(&mut self) -> Result<Next, SlotError> {
        if self.batcher.in_flight() == 0 {
            return Err(SlotError::Stuck);
        }
        let began = Instant::now();
        let answer = self.answers.blocking_recv();
        let ended = Instant::now();
        let metrics = &self.shared.metrics;
        metrics.waiting_us.add((ended - began).as_micros() as u64);
        metrics.busy_us.add((began - self.busy_since).as_micros() as u64);
        self.busy_since = ended;
        match answer {
            Some(answer) => {
                self.take(&answer)?;
                Ok(Next::GoOn)
            }
            None => Ok(Next::Stop),
        }
    }

    /// Hands an answer to the games that wait for it.
    fn take(&mut self, answer: &Answer) -> Result<(), SlotError> {
        let Self {
            batcher,
            slots,
            ready,
            ..
        } = self;
        batcher.answered(answer, |waiter, evaluation| {
            let Some(slot) = slots.get_mut(waiter.slot).and_then(Option::as_mut) else {
                return Ok(());
            };
            slot.apply(waiter.leaf, evaluation, answer.version)?;
            if !slot.is_waiting() {
                ready.push_back(waiter.slot);
            }
            Ok(())
        })
    }

    /// Takes a game one step further: a move, or one descent.
    fn advance(&mut self, index: usize) -> Result<Next, SlotError> {
        let Some(slot) = self.slots.get_mut(index) else {
            return Ok(Next::GoOn);
        };
        let slot = match slot {
            Some(slot) => slot,
            empty => match begin(&self.shared)? {
                None => return Ok(Next::Stop),
                Some(Begun::Game(new)) => empty.insert(*new),
                Some(Begun::Recorded(finished)) => {
                    self.ready.push_back(index);
                    self.shared.metrics.games_recorded.add(1);
                    return Ok(self.keep(finished));
                }
            },
        };
        if slot.is_decided() {
            return self.play(index);
        }
        let batcher = &mut self.batcher;
        let encoding = self.shared.setup.encoding;
        slot.gather(|leaf| batcher.ask(index, leaf, encoding));
        batcher.take_hits(|leaf, evaluation, version| slot.apply(leaf, evaluation, version))?;
        if !slot.is_waiting() {
            // At the end of the line, so that no well-known game keeps others from asking.
            self.ready.push_back(index);
        }
        Ok(Next::GoOn)
    }

    /// Plays the move of a decided game; a finished game goes to the spool.
    fn play(&mut self, index: usize) -> Result<Next, SlotError> {
        self.ready.push_back(index);
        let Some(slot) = self.slots.get_mut(index) else {
            return Ok(Next::GoOn);
        };
        let Some(mut playing) = slot.take() else {
            return Ok(Next::GoOn);
        };
        let end = playing.play(&self.shared.setup)?;
        let metrics = &self.shared.metrics;
        metrics.actions.add(1);
        metrics.add(&playing.uncounted());
        let Some(end) = end else {
            *slot = Some(playing);
            return Ok(Next::GoOn);
        };
        if end == End::MaxActions {
            metrics.games_cut.add(1);
        }
        let second = self.note_problem(&playing)?;
        let id = playing.id();
        let game = playing.finish(end, &self.shared.setup, &self.shared.versions);
        let finished = Finished {
            id,
            bytes: game.encode_to_vec(),
        };
        let next = self.keep(finished);
        match second.filter(|_| next == Next::GoOn) {
            Some(second) => Ok(self.keep(second)),
            None => Ok(next),
        }
    }

    /// Takes note of how a problem ended; what an unsolved one has solved instead is a second record.
    fn note_problem(&self, playing: &Slot<G>) -> Result<Option<Finished>, SlotError> {
        let Shared {
            curriculum, metrics, ..
        } = &*self.shared;
        let Some((level, is_solved)) = playing.problem() else {
            return Ok(None);
        };
        metrics.problems_played.add(1);
        metrics.problems_solved.add(u64::from(is_solved));
        match curriculum.note(level, is_solved) {
            Ok(None) => {}
            Ok(Some(level)) => tracing::info!(level, "problems are harder from now on"),
            Err(error) => tracing::error!(%error, "the new level of problems is not kept"),
        }
        metrics.problem_level.set(curriculum.level().into());
        if is_solved || !curriculum.hindsight() {
            return Ok(None);
        }
        let Some(drawn) = playing.in_hindsight() else {
            return Ok(None);
        };
        // Without a number the game is just not kept twice.
        let Ok(named) = self.shared.naming.next_game() else {
            return Ok(None);
        };
        metrics.games_recorded.add(1);
        recorded(&drawn, "hindsight", named, &self.shared.setup).map(Some)
    }

    /// Hands a finished game to the spool. Blocks while self-play is to pause; fails only if the spool has given up,
    /// which is reported there.
    fn keep(&self, finished: Finished) -> Next {
        match self.finished.send(finished) {
            Ok(()) => Next::GoOn,
            Err(_) => Next::Stop,
        }
    }
}

/// The next game: one to play, or one that needs no playing.
enum Begun<G: Game> {
    Game(Box<Slot<G>>),
    Recorded(Finished),
}

/// The next game; `None` when it is time to stop.
fn begin<G: Game>(shared: &Shared<G>) -> Result<Option<Begun<G>>, SlotError> {
    loop {
        match shared.naming.next_game() {
            Ok((number, id)) => {
                let setup = &shared.setup;
                let new = |problem| Begun::Game(Box::new(Slot::new(setup, number, id, problem)));
                let key = id.key(setup.run_seed);
                return Ok(Some(match shared.curriculum.next(&setup.rules, key) {
                    curriculum::Next::Usual => new(None),
                    curriculum::Next::Problem(start, level) => new(Some((start, level))),
                    curriculum::Next::Known(drawn) => {
                        Begun::Recorded(recorded(&drawn, "known-solution", (number, id), setup)?)
                    }
                }));
            }
            Err(error) if shared.trouble.allows() => {
                tracing::error!(%error, "no game can be begun, trying again");
            }
            Err(_) => {}
        }
        if shared.stop.is_cancelled() {
            return Ok(None);
        }
        thread::sleep(NAMING_RETRY);
    }
}

/// A solution as a finished game.
fn recorded<G: Game>(
    drawn: &Drawn<G>,
    provenance: &str,
    named: (u64, GameId),
    setup: &Setup<G>,
) -> Result<Finished, SlotError> {
    let game = record::of_solution(drawn, provenance, named, setup).map_err(SlotError::Solution)?;
    Ok(Finished {
        id: named.1,
        bytes: game.encode_to_vec(),
    })
}
