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
    analysis::{self, End, Engine, Job, Report},
};
use games::erased::AnyState;
use parking_lot::{Condvar, Mutex};
use search::GameKey;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    answer::Answer,
    query::{MAX_TURNS, Query, Request, Wanted, read},
};

/// Positions of a client that wait for their answer. A line that comes then is read once there is room.
const MOST: usize = 4096;

/// Queries of one client, and the place to which their answers go.
pub struct Session {
    player: Arc<Player>,
    engine: Arc<Engine>,
    client: u64,
    state: Mutex<State>,
    changed: Condvar,
    /// Takes an answer; returns false once nobody reads any more.
    write: Box<dyn Fn(&Message) -> bool + Send + Sync>,
}

#[derive(Default)]
struct State {
    /// Queries that are not answered, by id.
    open: HashMap<String, Open>,
    /// Positions of these queries.
    waiting: usize,
    /// True once no further line comes.
    is_closed: bool,
    /// True once nobody reads the answers any more.
    is_deaf: bool,
}

/// A line of output.
#[derive(Debug, Default, Serialize)]
pub struct Message {
    /// Id of the query or command; null if it has none.
    pub id: Value,
    /// Turn of the position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<usize>,
    /// Reason for which there is no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// True if the search continues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial: Option<bool>,
    /// True if the query was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<bool>,
    /// The search.
    #[serde(flatten)]
    pub answer: Option<Answer>,
    /// Answer to a command.
    #[serde(flatten)]
    more: Option<Value>,
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
    session: Arc<Session>,
    id: Value,
    turn: usize,
    state: Box<dyn AnyState>,
    wanted: Wanted,
    report: Option<Duration>,
    reported: Instant,
}

impl Session {
    /// Makes a session without queries. `write` takes each answer and returns false if nobody reads it.
    pub fn new(
        player: Arc<Player>,
        engine: Arc<Engine>,
        client: u64,
        write: impl Fn(&Message) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self {
            player,
            engine,
            client,
            state: Mutex::default(),
            changed: Condvar::new(),
            write: Box::new(write),
        }
    }

    /// Reads a line. Waits while too many positions wait for their answer.
    pub fn read(self: &Arc<Self>, line: &[u8]) {
        let (id, request) = read(self.player.game(), line);
        let done = request.and_then(|request| match request {
            Request::Query(query) => self.ask(&id, &query).map(|()| None),
            Request::Cancel(of) => self
                .change(&of, |open| open.stop.store(true, Ordering::Relaxed))
                .map(|()| Some(json!({"do": "cancel", "of": of}))),
            Request::Priority(of, priority) => self
                .change(&of, |open| open.priority.store(priority, Ordering::Relaxed))
                .map(|()| Some(json!({"do": "priority", "of": of, "priority": priority}))),
            Request::Version => Ok(Some(json!({"version": env!("CARGO_PKG_VERSION")}))),
            Request::Models => Ok(Some(json!({"models": self.models()}))),
            Request::ClearCache => {
                self.engine.clear_trees();
                if let Some(network) = self.player.network() {
                    network.clear_cache();
                }
                Ok(Some(json!({"do": "clear-cache"})))
            }
        });
        match done {
            Ok(None) => {}
            Ok(Some(more)) => self.write(&Message {
                id,
                more: Some(more),
                ..Message::default()
            }),
            Err(error) => self.refuse(id, error),
        }
    }

    /// Answers a line that cannot be read.
    pub fn refuse(&self, id: Value, error: String) {
        self.write(&Message {
            id,
            error: Some(error),
            ..Message::default()
        });
    }

    /// Notes that no further line comes.
    pub fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Waits until no further line comes, or nobody reads the answers, and every search has ended.
    pub fn wait(&self) {
        let mut state = self.state.lock();
        while !(state.is_deaf || state.is_closed) || state.waiting > 0 {
            self.changed.wait(&mut state);
        }
    }

    fn models(&self) -> Value {
        let network = self.player.network().map(|network| network.description());
        let network = network.map(|network| {
            json!({
                "name": self.player.written(),
                "game": network.layout.title(),
                "version": network.version,
                "step": network.step,
                "provider": network.provider,
            })
        });
        json!(network.as_slice())
    }

    /// Changes a query that is not answered.
    fn change(&self, of: &Value, change: impl FnOnce(&Open)) -> Result<(), String> {
        let state = self.state.lock();
        let open = state.open.get(&of.to_string());
        change(open.ok_or_else(|| format!("of: no query {of} waits for its answer"))?);
        Ok(())
    }

    fn ask(self: &Arc<Self>, id: &Value, query: &Query) -> Result<(), String> {
        let (stop, priority) = (Arc::default(), Arc::new(AtomicI32::new(query.priority)));
        {
            let mut state = self.state.lock();
            while state.waiting + query.turns.len() > MOST.max(MAX_TURNS) && !state.is_deaf {
                self.changed.wait(&mut state);
            }
            if state.is_deaf {
                return Ok(());
            }
            if state.open.contains_key(&id.to_string()) {
                return Err("id: a query with this id waits for its answer".into());
            }
            state.waiting += query.turns.len();
            let open = Open {
                stop: Arc::clone(&stop),
                priority: Arc::clone(&priority),
                left: query.turns.len(),
            };
            state.open.insert(id.to_string(), open);
        }
        for &(turn, end) in &query.turns {
            let state = query.course.state_after(end);
            let job = Job {
                player: Arc::clone(&self.player),
                state: state.copy(),
                place: format!("{}|{:?}", query.begin, &query.course.actions()[..end]),
                settings: analysis::settings(&self.player, query.visits),
                key: GameKey {
                    run_seed: query.seed,
                    game: 0,
                },
                time: query.time_ms.map(Duration::from_millis),
                client: self.client,
                priority: Arc::clone(&priority),
                stop: Arc::clone(&stop),
            };
            let mut asked = Asked {
                session: Arc::clone(self),
                id: id.clone(),
                turn,
                state,
                wanted: query.wanted.clone(),
                report: query.report_ms.map(Duration::from_millis),
                reported: Instant::now(),
            };
            self.engine.submit(job, move |report| asked.report(report));
        }
        Ok(())
    }

    /// Writes an answer, and stops all queries if nobody reads it.
    fn write(&self, message: &Message) {
        if !(self.write)(message) {
            let mut state = self.state.lock();
            state.is_deaf = true;
            state
                .open
                .values()
                .for_each(|open| open.stop.store(true, Ordering::Relaxed));
            self.changed.notify_all();
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
        if report.end.is_none() && !is_due {
            return;
        }
        self.reported = Instant::now();
        let network = self.session.player.network();
        let network = network.map(|network| network.description());
        let mut message = Message {
            id: self.id.clone(),
            turn: Some(self.turn),
            answer: report
                .search
                .map(|search| Answer::of(&*self.state, search, report.fresh, network, &self.wanted)),
            ..Message::default()
        };
        match &report.end {
            None => message.partial = Some(true),
            Some(End::Done) => {}
            Some(End::Cancelled) => message.cancelled = Some(true),
            Some(End::Failed(reason)) => (message.answer, message.error) = (None, Some(reason.clone())),
        }
        let session = &self.session;
        if report.end.is_none() {
            return session.write(&message);
        }
        session.leave(&self.id);
        session.write(&message);
        session.state.lock().waiting -= 1;
        session.changed.notify_all();
    }
}
