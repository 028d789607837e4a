//! The UCI engine: a state machine that takes events and the time, writes answers and gives orders, and never waits.
//!
//! Each `go` is kept with the position and the options of its time until it is answered: the first one is searched, the others wait
//! for their turn. `stop` and `ponderhit` apply to all of them. So each `go` gets exactly one `bestmove`, in order, however fast the
//! commands come. If a search does not end in time (for example because an inference server hangs), the engine answers with the
//! best move found so far.

use std::{
    collections::VecDeque,
    io::{self, Write},
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{Receiver, RecvTimeoutError, Sender},
    },
    time::{Duration, Instant},
};

use arena::players::NetworkOptions;
use games::Game as _;

use super::{
    clock::{self, Lag},
    command::{self, Command, Limits},
    options::{self, Options},
    setup::Setup,
    worker::{self, Best, Control, Event, Job, Task},
};

/// Time that a search gets to end by itself after a stop or after its time limit.
const STOP_TIMEOUT: Duration = Duration::from_millis(1000);
/// Time limit for the worker to end when the engine quits.
const QUIT_TIMEOUT: Duration = Duration::from_secs(3);

/// A `go` that is not answered yet.
struct Go {
    id: u64,
    /// The position; `None` if the last one was refused.
    setup: Option<Arc<Setup>>,
    limits: Limits,
    options: Options,
    is_new_game: bool,
    is_stopped: bool,
    control: Arc<Control>,
    stage: Stage,
    /// Time at which the engine answers without waiting for the search any longer.
    give_up: Option<Instant>,
}

enum Stage {
    Waiting,
    Searching,
    Done(Option<Best>),
}

/// The engine.
pub struct Engine<W> {
    out: W,
    jobs: Sender<Job>,
    options: Options,
    /// The network that the worker has, or loads.
    loaded: Option<(String, NetworkOptions)>,
    setup: Option<Arc<Setup>>,
    is_new_game: bool,
    /// All that are not answered. Only the first may have begun.
    goes: VecDeque<Go>,
    last_id: u64,
    lag: Lag,
    /// Number of `isready` commands that wait for the network.
    ready_asked: usize,
    /// Number of networks that the worker has to load.
    loading: usize,
    /// Number of searches that keep the worker busy, those that were answered without waiting included.
    thinking: usize,
    /// True after `quit`, and if the input has ended.
    is_closed: bool,
}

impl<W: Write> Engine<W> {
    /// Makes an engine that writes answers to `out` and gives its orders to `jobs`.
    pub fn new(options: Options, jobs: Sender<Job>, out: W) -> Self {
        Self {
            out,
            jobs,
            options,
            loaded: None,
            setup: Setup::new(None, &[], true).ok().map(Arc::new),
            is_new_game: false,
            goes: VecDeque::new(),
            last_id: 0,
            lag: Lag::default(),
            ready_asked: 0,
            loading: 0,
            thinking: 0,
            is_closed: false,
        }
    }

    /// Handles events until `quit` or the end of the input, and until every request before it is answered.
    ///
    /// # Errors
    /// Error of writing the output; the GUI has closed it.
    pub fn run(mut self, events: &Receiver<Event>) -> io::Result<()> {
        let mut talked = Ok(());
        while talked.is_ok() && !self.is_over() {
            let event = match self.deadline() {
                Some(at) => events.recv_timeout(at.saturating_duration_since(Instant::now())),
                None => events.recv().map_err(RecvTimeoutError::from),
            };
            let event = match event {
                Ok(event) => Some(event),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            talked = self.handle(event, Instant::now());
        }
        // The runtime's threads must not be cut off in the middle of a batch.
        let until = Instant::now() + QUIT_TIMEOUT;
        self.goes.iter_mut().for_each(|go| go.stop(until));
        let mut busy = self.thinking + self.loading;
        while busy > 0 {
            match events.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Event::Done(..) | Event::Loaded(_)) => busy -= 1,
                Ok(_) => {}
                Err(_) => break,
            }
        }
        talked
    }

    /// True after `quit` or the end of the input, once every request is answered.
    pub fn is_over(&self) -> bool {
        self.is_closed && self.goes.is_empty() && self.ready_asked == 0
    }

    /// Returns the time at which [`handle`](Self::handle) must be called even without an event.
    pub fn deadline(&self) -> Option<Instant> {
        self.goes.front().and_then(|go| go.give_up)
    }

    /// Handles an event; `None`: the deadline has passed.
    ///
    /// # Errors
    /// Error of writing the output.
    pub fn handle(&mut self, event: Option<Event>, now: Instant) -> io::Result<()> {
        match event {
            // Nothing counts after `quit`.
            Some(Event::Line(_)) if self.is_closed => {}
            Some(Event::Line(line)) => match command::read(&line) {
                Ok(command) => self.obey(command, now)?,
                Err(error) => self.remark(&format!("error: {error}"))?,
            },
            Some(Event::Closed) => {
                self.is_closed = true;
                // A search with a limit is finished first, so that `echo go nodes 100 | minuet uci` is answered.
                let endless = self.goes.iter_mut().filter(|go| !go.limits.ends());
                endless.for_each(|go| go.stop(now + STOP_TIMEOUT));
            }
            Some(Event::Loaded(loaded)) => self.loaded(loaded)?,
            Some(Event::Done(id, done)) => self.done(id, done)?,
            Some(Event::Info(id, lines)) if self.goes.front().is_some_and(|go| go.id == id) => {
                self.say(&lines)?;
            }
            // Lines of a search that was answered without waiting for it are too late.
            Some(Event::Info(..)) | None => {}
        }
        self.advance(now)
    }

    fn obey(&mut self, command: Command, now: Instant) -> io::Result<()> {
        match command {
            Command::Uci => {
                let (list, version) = (self.options.list(), env!("CARGO_PKG_VERSION"));
                return self.say(&format!(
                    "id name Minuet {version}\nid author the Minuet project\n{list}uciok\n"
                ));
            }
            Command::IsReady => return self.get_ready(),
            Command::SetOption { name, value } => {
                if let Err(error) = self.options.set(&name, &value) {
                    return self.remark(&format!("error: {error}"));
                }
                self.is_new_game |= name.eq_ignore_ascii_case(options::CLEAR_HASH);
            }
            Command::NewGame => self.is_new_game = true,
            Command::Position { fen, moves } => {
                let setup = Setup::new(fen.as_deref(), &moves, self.options.under_promotions);
                let refused = setup.as_ref().err().map(ToString::to_string);
                // After an error there is none: searching another position than the GUI's would be worse.
                self.setup = setup.ok().map(Arc::new);
                if let Some(error) = refused {
                    return self.remark(&format!("error: position: {error}"));
                }
            }
            Command::Go { limits, remarks } => {
                self.last_id += 1;
                self.goes.push_back(Go {
                    id: self.last_id,
                    setup: self.setup.clone(),
                    limits,
                    options: self.options.clone(),
                    is_new_game: std::mem::take(&mut self.is_new_game),
                    is_stopped: false,
                    control: Arc::default(),
                    stage: Stage::Waiting,
                    give_up: None,
                });
                for remark in remarks {
                    self.remark(&remark)?;
                }
            }
            Command::Stop => self.goes.iter_mut().for_each(|go| go.stop(now + STOP_TIMEOUT)),
            Command::PonderHit => {
                for go in self.goes.iter_mut().filter(|go| go.limits.ponder) {
                    go.limits.ponder = false;
                    if matches!(go.stage, Stage::Searching) {
                        go.start_clock(&mut self.lag, now);
                    }
                }
            }
            Command::Quit => {
                self.is_closed = true;
                self.goes.iter_mut().for_each(|go| go.stop(now + STOP_TIMEOUT));
            }
            Command::Nothing => {}
        }
        Ok(())
    }

    /// Answers `isready` once the network is loaded. During a search it is answered at once, as the protocol demands.
    fn get_ready(&mut self) -> io::Result<()> {
        if self.goes.is_empty() {
            self.load_if_needed(&self.options.clone());
        }
        if self.loading == 0 {
            return self.say("readyok\n");
        }
        self.ready_asked += 1;
        Ok(())
    }

    fn load_if_needed(&mut self, options: &Options) {
        let wanted = (options.model.clone(), options.network());
        if !options.model.is_empty() && self.loaded.as_ref() != Some(&wanted) {
            self.loading += 1;
            self.loaded = Some(wanted.clone());
            self.order(Job::Load(wanted.0, wanted.1));
        }
    }

    fn loaded(&mut self, loaded: Result<String, String>) -> io::Result<()> {
        self.loading -= 1;
        match loaded {
            Ok(description) => self.remark(&format!("network {description}"))?,
            Err(error) => {
                // Loading is tried again when needed, because a server may be available by then.
                self.loaded = None;
                self.remark(&format!("error: {error}"))?;
            }
        }
        if self.loading > 0 {
            return Ok(());
        }
        let answers = "readyok\n".repeat(std::mem::take(&mut self.ready_asked));
        self.say(&answers)
    }

    fn done(&mut self, id: u64, done: Result<Option<Best>, String>) -> io::Result<()> {
        self.thinking -= 1;
        let Some(go) = self.goes.front_mut().filter(|go| go.id == id) else {
            return Ok(());
        };
        let (best, error) = match done {
            Ok(best) => (best, None),
            // The best move found before the error is used.
            Err(error) => (go.control.best.lock().clone(), Some(error)),
        };
        (go.stage, go.give_up) = (Stage::Done(best), None);
        match error {
            Some(error) => self.remark(&format!("error: {error}")),
            None => Ok(()),
        }
    }

    /// Begins and answers in the order of the commands, as far as that is possible now.
    fn advance(&mut self, now: Instant) -> io::Result<()> {
        while let Some(mut go) = self.goes.pop_front() {
            if let Stage::Waiting = go.stage {
                self.begin(&mut go, now)?;
            }
            if go.give_up.is_some_and(|at| at <= now) {
                self.give_up(&mut go)?;
            }
            let is_held = !go.is_stopped && (go.limits.infinite || go.limits.ponder);
            match &go.stage {
                Stage::Done(best) if !is_held => self.answer(&go, best.as_ref(), now)?,
                _ => {
                    self.goes.push_front(go);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn begin(&mut self, go: &mut Go, now: Instant) -> io::Result<()> {
        let Some(setup) = go.setup.clone() else {
            (go.is_stopped, go.stage) = (true, Stage::Done(None));
            return self.remark("error: no position to search: the last one was refused");
        };
        if go.is_new_game {
            self.lag = Lag::default();
        }
        self.load_if_needed(&go.options);
        let only = setup.actions_of(&go.limits.search_moves);
        if only.len() < go.limits.search_moves.len() {
            self.remark("error: searchmoves: some are not legal here and are left out")?;
        }
        go.stage = Stage::Searching;
        if go.is_stopped {
            go.stop(now + STOP_TIMEOUT);
        } else if !go.limits.ponder {
            go.start_clock(&mut self.lag, now);
        }
        self.thinking += 1;
        self.order(Job::Think(Box::new(Task {
            id: go.id,
            setup,
            only,
            limits: go.limits.clone(),
            options: go.options.clone(),
            is_new_game: go.is_new_game,
            began: now,
            control: Arc::clone(&go.control),
        })));
        Ok(())
    }

    /// Takes the best move so far as the result of a search that has not ended in time.
    fn give_up(&mut self, go: &mut Go) -> io::Result<()> {
        go.stop_search();
        let found = go.control.best.lock().clone();
        let is_arbitrary = found.is_none();
        let any = || {
            let setup = go.setup.as_ref()?;
            Some(worker::best(&setup.chess, &[setup.any_move()?]))
        };
        (go.stage, go.give_up) = (Stage::Done(found.or_else(any)), None);
        match is_arbitrary {
            true => {
                self.remark("error: the network has not answered in time: the move is an arbitrary legal one")
            }
            false => Ok(()),
        }
    }

    /// Writes the answer, and records the expected state of the clock.
    fn answer(&mut self, go: &Go, best: Option<&Best>, now: Instant) -> io::Result<()> {
        let best_move = best.map_or("(none)", |best| &best.uci);
        let ponder = best.and_then(|best| best.ponder.as_ref());
        let ponder = ponder.map_or(String::new(), |reply| format!(" ponder {reply}"));
        self.say(&format!("bestmove {best_move}{ponder}\n"))?;
        if let Some((began, _)) = *go.control.clock.lock() {
            let used = now.saturating_duration_since(began);
            self.lag.answered(&go.limits, go.mover(), used);
        }
        Ok(())
    }

    fn order(&self, job: Job) {
        // The worker lives as long as the engine.
        let _ = self.jobs.send(job);
    }

    fn remark(&mut self, text: &str) -> io::Result<()> {
        self.say(&format!(
            "info string {}\n",
            service::plain(&text.replace('\n', " "))
        ))
    }

    fn say(&mut self, lines: &str) -> io::Result<()> {
        self.out.write_all(lines.as_bytes())?;
        self.out.flush()
    }
}

impl Go {
    /// Ends the search, which may still have to begin. The engine answers at the time `give_up` at the latest.
    fn stop(&mut self, give_up: Instant) {
        self.is_stopped = true;
        self.stop_search();
        if let Stage::Searching = self.stage {
            // A second `stop` does not wait longer.
            self.give_up = Some(self.give_up.map_or(give_up, |at| at.min(give_up)));
        }
    }

    fn stop_search(&self) {
        self.control.stop.store(true, Ordering::Relaxed);
    }

    /// Starts the time limit of the search, if it has one.
    fn start_clock(&mut self, lag: &mut Lag, now: Instant) {
        let (mover, overhead) = (self.mover(), self.options.move_overhead());
        let lag = lag.asked(&self.limits, mover);
        if let Some(budget) = clock::budget(&self.limits, mover, overhead, lag)
            && !self.is_stopped
        {
            *self.control.clock.lock() = Some((now, budget));
            // Waiting uses a part of the overhead. With `movetime` no clock can run out.
            let grace = (overhead / 2).max(Duration::from_millis(5));
            let grace = if budget.may_save {
                grace
            } else {
                grace.max(STOP_TIMEOUT)
            };
            self.give_up = now.checked_add(budget.hard + grace);
        }
    }

    fn mover(&self) -> usize {
        let setup = self.setup.as_ref();
        setup.map_or(0, |setup| setup.chess.to_move().index())
    }
}
