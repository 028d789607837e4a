//! A worker thread: plays many games at once with several requests in flight.
//!
//! The thread takes one game that can continue, lets its search gather leaves, and adds these to the open batch. A full batch
//! is sent as a request. A partial batch is sent only when every game waits for an evaluation. The thread blocks only then, or
//! when the largest number of requests is in flight and another batch is full.

use std::{
    collections::VecDeque,
    ops::ControlFlow,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use config::ConfigError;
use games::{Game, outside::Failures};
use network::batched::Batcher;
use prost::Message as _;
use proto::v1::{self, EvaluateRequest};
use service::log_throttle::LogThrottle;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    begin::{self, Begun},
    curriculum::{Curriculum, ProgressGauges},
    naming::Naming,
    pace::Pace,
    record::{self, GameEnd},
    setup::Setup,
    slot::GameSlot,
};
use crate::{
    GameId,
    cache::Cache,
    evaluator::{EvaluatedRequest, StampedRequest, Versions},
    metrics::Metrics,
    spool::{Finished, FinishedGames},
};

/// Delay before another attempt to reserve game numbers on a disk that failed.
const NAMING_RETRY: Duration = Duration::from_millis(500);
/// Shortest time between two log lines about such failures.
pub(crate) const NAMING_LOG_INTERVAL: Duration = Duration::from_secs(30);

/// Data that all worker threads share.
pub struct Shared<G: Game> {
    /// Settings that all games have in common.
    pub setup: Setup<G>,
    /// Names new games.
    pub naming: Naming,
    /// Level of the problems.
    pub curriculum: Curriculum,
    /// Gauges about the curriculum.
    pub progress: ProgressGauges,
    /// Evaluation cache. `None`: the cache is off.
    pub cache: Option<Arc<Cache>>,
    /// Model versions.
    pub versions: Arc<Versions>,
    /// Metrics.
    pub metrics: Arc<Metrics>,
    /// Label or version of the model that evaluates.
    pub model: String,
    /// Numbers of games and of requests in flight of each thread.
    pub pace: Arc<Pace>,
    /// Number of rows in a full request.
    pub rows_per_request: usize,
    /// Log throttle for failures to reserve game numbers, shared by all threads.
    pub(crate) naming_errors: LogThrottle,
    /// Games in which the rules failed.
    pub(crate) failures: Failures,
    /// Ends self-play. Games in progress are dropped: their numbers are not used again.
    pub shutdown: CancellationToken,
}

impl<G: Game> Shared<G> {
    /// Takes note of a game that ends without a record, because the rules failed in it. The rules themselves have told where.
    ///
    /// # Errors
    /// [`ConfigError`] if that happened in too many games in a row.
    fn note_failed(&self, reason: &str) -> Result<(), ConfigError> {
        self.metrics.games_failed.add(1);
        let failed = self.failures.add(G::name(), reason);
        let last = failed.map_err(|error| ConfigError::Invalid(error.to_string()))?;
        tracing::warn!(
            reason = last,
            "a game ends without a record, because its rules failed"
        );
        Ok(())
    }
}

/// The games of one thread.
pub struct Worker<G: Game> {
    shared: Arc<Shared<G>>,
    slots: Vec<Option<GameSlot<G>>>,
    /// Slots whose game can continue.
    ready: VecDeque<usize>,
    /// Slots beyond the present number of games. Their games continue when other games have ended.
    parked: Vec<usize>,
    batcher: Batcher,
    requests: mpsc::Sender<StampedRequest>,
    evaluations: mpsc::Receiver<EvaluatedRequest>,
    finished: FinishedGames,
    /// End of the last wait, or the start of the thread.
    busy_since: Instant,
}

impl<G: Game> Worker<G> {
    /// Returns a worker that sends `requests`, receives their `evaluations`, and hands `finished` games to the spool.
    pub fn new(
        shared: Arc<Shared<G>>,
        requests: mpsc::Sender<StampedRequest>,
        evaluations: mpsc::Receiver<EvaluatedRequest>,
        finished: FinishedGames,
    ) -> Self {
        let batcher = Batcher::new(shared.cache.clone(), shared.rows_per_request);
        Self {
            slots: Vec::new(),
            ready: VecDeque::new(),
            parked: Vec::new(),
            batcher,
            requests,
            evaluations,
            finished,
            busy_since: Instant::now(),
            shared,
        }
    }

    /// Plays until the shutdown or until the channel of evaluations is closed.
    ///
    /// # Errors
    /// The search and the rules contradict each other, or the rules of a game from outside failed in many games in a row. No reply of a
    /// server can cause this.
    pub fn run(mut self) -> anyhow::Result<()> {
        self.busy_since = Instant::now();
        while !self.shared.shutdown.is_cancelled() {
            while let Ok(evaluated) = self.evaluations.try_recv() {
                self.apply(&evaluated)?;
            }
            self.follow_pace();
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
            if next.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Adds slots, or parks slots, so that as many are in use as the pace says.
    fn follow_pace(&mut self) {
        let games = self.shared.pace.games();
        let present = self.slots.len();
        if present < games {
            self.slots.resize_with(games, || None);
            self.ready.extend(present..games);
        }
        if present > games {
            let (ready, parked) = (&mut self.ready, &mut self.parked);
            ready.retain(|&slot| {
                slot < games || {
                    parked.push(slot);
                    false
                }
            });
        }
        if self.parked.iter().any(|&slot| slot < games) {
            let again = self.parked.extract_if(.., |slot| *slot < games);
            self.ready.extend(again);
        }
    }

    /// Sends full batches. Sends a partial batch only if no game can add to it before an evaluation arrives.
    fn send(&mut self) {
        let shared = &self.shared;
        while self.batcher.in_flight() < shared.pace.requests() {
            let Some((id, positions)) = self.batcher.next_batch(self.ready.is_empty()) else {
                return;
            };
            let request = EvaluateRequest {
                id,
                model: shared.model.clone(),
                ..positions.to_request(0..positions.len(), shared.setup.row_len)
            };
            let request = StampedRequest {
                request: Arc::new(request),
                stamp: shared.versions.stamp(),
            };
            // The channel has room for all requests in flight. If it is closed, so is the channel of evaluations.
            if self.requests.try_send(request).is_err() {
                return;
            }
        }
    }

    /// Blocks until evaluations arrive.
    fn wait(&mut self) -> anyhow::Result<ControlFlow<()>> {
        if self.batcher.in_flight() == 0 {
            anyhow::bail!("every game waits for an evaluation, but no request is in flight");
        }
        let began = Instant::now();
        let evaluated = self.evaluations.blocking_recv();
        let ended = Instant::now();
        let metrics = &self.shared.metrics;
        metrics.waiting_us.add((ended - began).as_micros() as u64);
        metrics.busy_us.add((began - self.busy_since).as_micros() as u64);
        self.busy_since = ended;
        match evaluated {
            Some(evaluated) => {
                self.apply(&evaluated)?;
                Ok(ControlFlow::Continue(()))
            }
            None => Ok(ControlFlow::Break(())),
        }
    }

    /// Passes the evaluations of a request to the games that wait for them.
    fn apply(&mut self, evaluated: &EvaluatedRequest) -> anyhow::Result<()> {
        let Self {
            batcher,
            slots,
            ready,
            ..
        } = self;
        let EvaluatedRequest {
            id,
            version,
            ref predictions,
        } = *evaluated;
        batcher.complete(id, version, predictions, |waiter, evaluation| {
            let Some(slot) = slots.get_mut(waiter.slot).and_then(Option::as_mut) else {
                return Ok(());
            };
            slot.apply(waiter.leaf, evaluation, version)?;
            if !slot.search.is_waiting() {
                ready.push_back(waiter.slot);
            }
            Ok(())
        })
    }

    /// Takes a game one step further: begins it, plays a move, or gathers leaves once.
    fn advance(&mut self, index: usize) -> anyhow::Result<ControlFlow<()>> {
        let Some(slot) = self.slots.get_mut(index) else {
            return Ok(ControlFlow::Continue(()));
        };
        let slot = match slot {
            Some(slot) => slot,
            empty => match begin(&self.shared)? {
                None => return Ok(ControlFlow::Break(())),
                Some(Begun::Game(new)) => empty.insert(*new),
                Some(Begun::Recorded(id, game)) => {
                    self.ready.push_back(index);
                    self.shared.metrics.games_recorded.add(1);
                    return Ok(self.keep(id, &game));
                }
            },
        };
        if let Some(reason) = slot.search.fault() {
            self.shared.note_failed(reason)?;
            self.slots[index] = None;
            self.ready.push_back(index);
            return Ok(ControlFlow::Continue(()));
        }
        if slot.search.is_decided() {
            return self.play(index);
        }
        let batcher = &mut self.batcher;
        let (encoding, current) = (self.shared.setup.encoding, self.shared.versions.current());
        slot.gather(|leaf| batcher.add(index, leaf, encoding, current));
        batcher.take_known(|waiter, evaluation, version| slot.apply(waiter.leaf, evaluation, version))?;
        if !slot.search.is_waiting() {
            // The game goes to the end of the queue, so that a game whose positions are all cached does not hold up the
            // others.
            self.ready.push_back(index);
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Plays the move that a search has decided on. A finished game goes to the spool.
    fn play(&mut self, index: usize) -> anyhow::Result<ControlFlow<()>> {
        self.ready.push_back(index);
        let Some(mut playing) = self.slots.get_mut(index).and_then(Option::take) else {
            return Ok(ControlFlow::Continue(()));
        };
        let end = playing.play(&self.shared.setup)?;
        let metrics = &self.shared.metrics;
        metrics.actions.add(1);
        metrics.add(&playing.uncounted());
        let Some(end) = end else {
            self.slots[index] = Some(playing);
            return Ok(ControlFlow::Continue(()));
        };
        // A parked game continues before a new one begins.
        if let Some(&parked) = self.parked.iter().find(|&&slot| self.slots[slot].is_some()) {
            self.slots.swap(index, parked);
        }
        let id = playing.record.id;
        if end == GameEnd::MaxActions {
            metrics.games_cut.add(1);
        }
        self.shared.failures.clear();
        let second = self.note_problem(&playing)?;
        let game = playing.finish(end, &self.shared.setup, &self.shared.versions);
        let next = self.keep(id, &game);
        match second.filter(|_| next.is_continue()) {
            Some((id, second)) => Ok(self.keep(id, &second)),
            None => Ok(next),
        }
    }

    /// Counts the result of a problem. For an unsolved problem, returns the record of the problem that the play did solve.
    fn note_problem(&self, playing: &GameSlot<G>) -> anyhow::Result<Option<(GameId, v1::Game)>> {
        let Shared {
            curriculum,
            metrics,
            progress,
            ..
        } = &*self.shared;
        let Some((rung, solution)) = playing.problem() else {
            return Ok(None);
        };
        metrics.problems_played.add(1);
        metrics.problems_solved.add(u64::from(solution.is_some()));
        match curriculum.note(rung, solution) {
            Ok(None) => {}
            Ok(Some(level)) => tracing::info!(level, "the level of problems is raised"),
            Err(error) => {
                tracing::error!(error = %service::chain(&*error), "the new level of problems cannot be saved")
            }
        }
        progress.show(curriculum);
        if solution.is_some() {
            return Ok(None);
        }
        let Some(drawn) = playing.in_hindsight() else {
            return Ok(None);
        };
        // Without a number the second record is omitted.
        let Ok(named) = self.shared.naming.next_game() else {
            return Ok(None);
        };
        metrics.games_recorded.add(1);
        let game = record::of_solution(&drawn, "hindsight", named, &self.shared.setup);
        Ok(Some((named.1, game?)))
    }

    /// Hands a finished game to the spool. Blocks while self-play is paused. Stops the thread if the spool's writer has ended;
    /// the writer reports the reason.
    fn keep(&self, id: GameId, game: &v1::Game) -> ControlFlow<()> {
        let bytes = game.encode_to_vec();
        match self.finished.send(Finished { id, bytes }) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

/// Begins the next game. Returns `None` at shutdown.
fn begin<G: Game>(shared: &Shared<G>) -> anyhow::Result<Option<Begun<G>>> {
    loop {
        match shared.naming.next_game() {
            Ok(named) => {
                return begin::begin(&shared.setup, &shared.curriculum, named).map(Some);
            }
            Err(error) if shared.naming_errors.allows() => {
                tracing::error!(error = %service::chain(&*error), "no game number can be reserved, trying again");
            }
            Err(_) => {}
        }
        if shared.shutdown.is_cancelled() {
            return Ok(None);
        }
        thread::sleep(NAMING_RETRY);
    }
}
