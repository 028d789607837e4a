//! The queries of one client: [`Session`].

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI32, Ordering},
    },
    time::{Duration, Instant},
};

use arena::{
    Player,
    analysis::{End, Job, Report},
};
use games::erased::AnyState;
use parking_lot::{Condvar, Mutex};
use proto::v1::{AnalyzeReply, AnalyzeRequest};
use search::GameKey;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    analysis::Analysis,
    answer,
    query::{ANSWER_BYTES, Query, Request, Wanted, read, read_message},
};

/// Memory of the answers of one client that wait to be searched or read, in bytes. A request that comes then waits for room.
const ROOM: usize = 8 << 20;

/// Queries of one client, and the place to which their answers go.
pub struct Session {
    analysis: Arc<Analysis>,
    client: u64,
    state: Mutex<State>,
    changed: Condvar,
    /// Takes an answer; returns false once nobody reads any more.
    write: Box<dyn Fn(Message) -> bool + Send + Sync>,
}

#[derive(Default)]
struct State {
    /// Queries that are not answered, by id.
    open: HashMap<String, Open>,
    /// Memory of answers that wait, in bytes.
    waiting: usize,
    /// True once no further line comes.
    is_closed: bool,
    /// True once the client has gone or the process stops.
    is_stopped: bool,
}

/// A line of output. Its place among the waiting answers is free once it is dropped.
#[derive(Default, Serialize)]
pub struct Message {
    /// Id of the query or command; null if it has none.
    pub id: Value,
    /// The answer, without its id.
    #[serde(flatten)]
    pub reply: AnalyzeReply,
    /// Answer to a command.
    #[serde(flatten)]
    more: Option<Value>,
    #[serde(skip)]
    _room: Option<Arc<Room>>,
    /// Clone of [`Asked::unread`].
    #[serde(skip)]
    _unread: Option<Arc<()>>,
}

impl Message {
    /// Returns the answer on the wire.
    pub fn into_reply(self) -> AnalyzeReply {
        let id = match self.id {
            Value::String(id) => id,
            _ => String::new(),
        };
        AnalyzeReply { id, ..self.reply }
    }
}

/// Memory of the answers of a query, until the last of them has been read.
struct Room {
    session: Arc<Session>,
    bytes: usize,
}

/// A query that is not answered.
struct Open {
    stop: Arc<AtomicBool>,
    priority: Arc<AtomicI32>,
    /// Positions that wait for their answer.
    left: usize,
}

/// One position of a query.
struct Asked {
    player: Arc<Player>,
    room: Arc<Room>,
    id: Value,
    turn: usize,
    state: Box<dyn AnyState>,
    wanted: Wanted,
    begun: Instant,
    report: Option<Duration>,
    reported: Instant,
    /// Shared with the last partial answer until it has been read. No other one is written before that.
    unread: Arc<()>,
}

impl Session {
    /// Makes a session without queries. `write` takes each answer and returns false if nobody reads it.
    pub fn new(
        analysis: Arc<Analysis>,
        client: u64,
        write: impl Fn(Message) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self {
            analysis,
            client,
            state: Mutex::default(),
            changed: Condvar::new(),
            write: Box::new(write),
        }
    }

    /// Reads a line. Waits while too many answers wait.
    pub fn read(self: &Arc<Self>, line: &[u8]) {
        let player = self.player();
        let (id, request) = read(player.game(), line);
        self.execute(player, id, request);
    }

    /// Reads a message, like [`Self::read`].
    pub fn read_message(self: &Arc<Self>, message: AnalyzeRequest) {
        let player = self.player();
        let (id, request) = read_message(player.game(), message);
        self.execute(player, id, request);
    }

    fn player(&self) -> Arc<Player> {
        Arc::clone(&self.analysis.player.read())
    }

    fn execute(self: &Arc<Self>, player: Arc<Player>, id: Value, request: Result<Request, String>) {
        let done = request.and_then(|request| match request {
            Request::Query(query) => self.ask(player, &id, &query).map(|()| None),
            Request::Cancel(of) => self
                .change(&of, |open| open.stop.store(true, Ordering::Relaxed))
                .map(|()| Some(json!({"do": "cancel", "of": of}))),
            Request::Priority(of, priority) => self
                .change(&of, |open| open.priority.store(priority, Ordering::Relaxed))
                .map(|()| Some(json!({"do": "priority", "of": of, "priority": priority}))),
            Request::Version => Ok(Some(json!({"version": env!("CARGO_PKG_VERSION")}))),
            Request::Models => Ok(Some(json!({"models": [self.analysis.model()]}))),
            Request::ClearCache => {
                self.analysis.engine.clear_trees();
                if let Some(network) = player.network() {
                    network.clear_cache();
                }
                Ok(Some(json!({"do": "clear-cache"})))
            }
        });
        match done {
            Ok(None) => {}
            Ok(Some(more)) => self.reply(id, None, Some(more)),
            Err(error) => self.refuse(id, error),
        }
    }

    /// Answers a line that cannot be read.
    pub fn refuse(self: &Arc<Self>, id: Value, error: String) {
        self.analysis.metrics.refused.increment(1);
        self.reply(id, Some(error), None);
    }

    /// Answers without a search, once there is room.
    fn reply(self: &Arc<Self>, id: Value, error: Option<String>, more: Option<Value>) {
        let bytes = ANSWER_BYTES + error.as_ref().map_or(0, String::len);
        if let Some(room) = self.room(bytes) {
            self.write(Message {
                id,
                reply: AnalyzeReply {
                    error,
                    ..AnalyzeReply::default()
                },
                more,
                _room: Some(room),
                ..Message::default()
            });
        }
    }

    /// Waits for room for answers of so many bytes; `None` if no answers are written any more.
    fn room(self: &Arc<Self>, bytes: usize) -> Option<Arc<Room>> {
        let mut state = self.state.lock();
        while state.waiting > 0 && state.waiting + bytes > ROOM && !state.is_stopped {
            self.changed.wait(&mut state);
        }
        if state.is_stopped {
            return None;
        }
        state.waiting += bytes;
        self.analysis.metrics.waiting.increment(bytes as f64);
        Some(Arc::new(Room {
            session: Arc::clone(self),
            bytes,
        }))
    }

    /// Notes that no further line comes.
    pub fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Ends all searches early. No further query is taken.
    pub fn stop(&self) {
        let mut state = self.state.lock();
        state.is_stopped = true;
        let open = state.open.values();
        open.for_each(|open| open.stop.store(true, Ordering::Relaxed));
        self.changed.notify_all();
    }

    /// Waits until no further line comes, or nobody reads the answers, and every search has ended.
    pub fn wait(&self) {
        let mut state = self.state.lock();
        while !(state.is_stopped || state.is_closed) || state.waiting > 0 {
            self.changed.wait(&mut state);
        }
    }

    /// Changes a query that is not answered.
    fn change(&self, of: &Value, change: impl FnOnce(&Open)) -> Result<(), String> {
        let state = self.state.lock();
        let open = state.open.get(&of.to_string());
        change(open.ok_or_else(|| format!("of: no query {of} waits for its answer"))?);
        Ok(())
    }

    fn ask(self: &Arc<Self>, player: Arc<Player>, id: &Value, query: &Query) -> Result<(), String> {
        let (stop, priority) = (
            Arc::<AtomicBool>::default(),
            Arc::new(AtomicI32::new(query.priority)),
        );
        let bytes = query.bytes;
        if bytes > ROOM {
            return Err(format!(
                "turns: the answers would take {bytes} bytes, more than {ROOM}; ask for fewer positions or lines"
            ));
        }
        let Some(room) = self.room(bytes) else {
            return Ok(());
        };
        {
            let mut state = self.state.lock();
            if state.open.contains_key(&id.to_string()) {
                return Err("id: a query with this id waits for its answer".into());
            }
            let open = Open {
                stop: Arc::clone(&stop),
                priority: Arc::clone(&priority),
                left: query.turns.len(),
            };
            state.open.insert(id.to_string(), open);
            // All searches end early from then on.
            stop.store(state.is_stopped, Ordering::Relaxed);
        }
        for &(turn, end) in &query.turns {
            let state = query.course.state_after(end);
            let place = format!("{}|{:?}", query.begin, &query.course.actions()[..end]);
            let job = Job {
                key: GameKey {
                    run_seed: query.seed,
                    game: 0,
                },
                time: query.time_ms.map(Duration::from_millis),
                client: self.client,
                priority: Arc::clone(&priority),
                stop: Arc::clone(&stop),
                ..Job::new(Arc::clone(&player), state.copy(), place, query.visits)
            };
            let mut asked = Asked {
                player: Arc::clone(&player),
                room: Arc::clone(&room),
                id: id.clone(),
                turn,
                state,
                wanted: query.wanted.clone(),
                begun: Instant::now(),
                report: query.report_ms.map(Duration::from_millis),
                reported: Instant::now(),
                unread: Arc::default(),
            };
            self.analysis
                .engine
                .submit(job, move |report| asked.report(report));
        }
        Ok(())
    }

    /// Writes an answer, and stops all queries if nobody reads it.
    fn write(&self, message: Message) {
        if !(self.write)(message) {
            self.stop();
        }
    }

    /// Notes that a position has its answer, before the answer is written: the client may use the id again once it has read it.
    fn leave(&self, id: &Value) {
        let (mut state, id) = (self.state.lock(), id.to_string());
        if let Some(open) = state.open.get_mut(&id) {
            open.left -= 1;
            if open.left == 0 {
                state.open.remove(&id);
            }
        }
    }
}

impl Asked {
    /// Writes a partial answer if it is time for one, and the answer at the end.
    fn report(&mut self, report: &Report<'_>) {
        let is_due = self
            .report
            .is_some_and(|interval| self.reported.elapsed() >= interval);
        if report.end.is_none() && !(is_due && Arc::strong_count(&self.unread) == 1) {
            return;
        }
        self.reported = Instant::now();
        let network = self.player.network().map(|network| network.description());
        let answer = report
            .search
            .map(|search| answer::of(&*self.state, search, report.fresh, network, &self.wanted));
        let mut message = Message {
            id: self.id.clone(),
            reply: AnalyzeReply {
                turn: Some(self.turn as u32),
                answer,
                ..AnalyzeReply::default()
            },
            _room: Some(Arc::clone(&self.room)),
            ..Message::default()
        };
        let (reply, session) = (&mut message.reply, &self.room.session);
        let metrics = &session.analysis.metrics;
        match &report.end {
            None => {
                reply.partial = Some(true);
                message._unread = Some(Arc::clone(&self.unread));
                return session.write(message);
            }
            Some(End::Done) => {}
            Some(End::Cancelled) => reply.cancelled = Some(true),
            Some(End::Failed(reason)) => {
                metrics.refused.increment(1);
                (reply.answer, reply.error) = (None, Some(reason.clone()));
            }
        }
        metrics.answered.increment(1);
        metrics.evaluations.increment(report.fresh);
        metrics.seconds.record(self.begun.elapsed().as_secs_f64());
        session.leave(&self.id);
        session.write(message);
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.session.analysis.metrics.waiting.decrement(self.bytes as f64);
        self.session.state.lock().waiting -= self.bytes;
        self.session.changed.notify_all();
    }
}
