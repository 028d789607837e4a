//! The UCI engine: handles the GUI's commands and writes answers, without ever waiting for the search.
//!
//! One loop receives events from two threads: lines from the reader, results from the [`worker`](super::worker). If a search
//! does not end in time (for example because an inference server hangs), the engine answers with the best move found so far.

use std::{
    io::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender},
    },
    time::{Duration, Instant},
};

use games::Game;
use parking_lot::Mutex;

use super::{
    clock::{self, Budget, Lag},
    command::{self, Command, Limits},
    options::Options,
    setup::Setup,
    worker::{Best, Clock, Event, Job, Task},
};

/// Time that a search gets to end by itself after a stop or after its time limit.
const STOP_TIMEOUT: Duration = Duration::from_millis(1000);
/// Time limit for the worker to end when the engine quits.
const QUIT_TIMEOUT: Duration = Duration::from_secs(3);

/// A search that is running, or has ended but may not be answered yet.
struct Searching {
    id: u64,
    limits: Limits,
    mover: usize,
    overhead: Duration,
    /// Time that the move is expected to lose outside the engine.
    lag: Duration,
    stop: Arc<AtomicBool>,
    clock: Arc<Clock>,
    best: Arc<Mutex<Option<Best>>>,
    /// Move to play if the search has found none.
    fallback: Option<String>,
    /// True if the answer must wait for `stop` or `ponderhit`.
    is_held: bool,
    /// The answer of a finished search that must wait.
    done: Option<Option<Best>>,
    /// Time at which the engine answers without waiting for the search any longer.
    give_up: Option<Instant>,
}

/// The engine.
pub struct Engine<W> {
    out: W,
    jobs: Sender<Job>,
    options: Options,
    /// The options that the worker's network was loaded with.
    loaded: Option<Options>,
    setup: Option<Setup>,
    searching: Option<Searching>,
    /// A search requested before the previous one was answered, as some GUIs do.
    next: Option<Limits>,
    /// Number of a search that was already answered but still keeps the worker busy.
    abandoned: Option<u64>,
    lag: Lag,
    next_id: u64,
    /// Number of `isready` commands that wait for the network.
    ready_asked: usize,
    is_loading: bool,
    /// True if the input has ended.
    is_closed: bool,
}

impl<W: Write> Engine<W> {
    /// Makes an engine that writes answers to `out` and sends its searches to `jobs`.
    pub fn new(options: Options, jobs: Sender<Job>, out: W) -> Self {
        Self {
            out,
            jobs,
            options,
            loaded: None,
            setup: Setup::new(None, &[], true).ok(),
            searching: None,
            next: None,
            abandoned: None,
            lag: Lag::default(),
            next_id: 1,
            ready_asked: 0,
            is_loading: false,
            is_closed: false,
        }
    }

    /// Handles events until `quit`, or until the input has ended and every request is answered.
    ///
    /// # Errors
    /// Error of writing the output; the GUI has closed it.
    pub fn run(mut self, events: &Receiver<Event>) -> io::Result<()> {
        let talked = self.talk(events);
        if let Some(searching) = &self.searching {
            searching.stop.store(true, Ordering::Relaxed);
        }
        let busy = self.searching.is_some() || self.abandoned.is_some() || self.is_loading;
        drop(self.jobs);
        // The runtime's threads must not be cut off in the middle of a batch.
        let until = Instant::now() + QUIT_TIMEOUT;
        let ends = |event| matches!(event, Ok(Event::Done(..) | Event::Loaded(_)) | Err(_));
        if busy {
            while !ends(events.recv_timeout(until.saturating_duration_since(Instant::now()))) {}
        }
        talked
    }

    fn talk(&mut self, events: &Receiver<Event>) -> io::Result<()> {
        loop {
            if self.is_closed && self.searching.is_none() && self.ready_asked == 0 {
                return Ok(());
            }
            let event = match self.searching.as_ref().and_then(|searching| searching.give_up) {
                Some(at) => events.recv_timeout(at.saturating_duration_since(Instant::now())),
                None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match event {
                Ok(Event::Line(line)) => {
                    if !self.line(&line)? {
                        return Ok(());
                    }
                }
                Ok(Event::Closed) => self.close()?,
                Ok(Event::Loaded(loaded)) => self.loaded(loaded)?,
                Ok(Event::Info(id, lines)) => {
                    if self
                        .searching
                        .as_ref()
                        .is_some_and(|searching| searching.id == id)
                    {
                        self.say(&lines)?;
                    }
                }
                Ok(Event::Done(id, done)) => self.done(id, done)?,
                Err(RecvTimeoutError::Timeout) => self.answer_for_the_search()?,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    /// Handles one line. False after `quit`.
    fn line(&mut self, line: &str) -> io::Result<bool> {
        match command::read(line) {
            Ok(Command::Quit) => return Ok(false),
            Ok(command) => self.obey(command)?,
            Err(error) => self.remark(&format!("error: {error}"))?,
        }
        Ok(true)
    }

    fn obey(&mut self, command: Command) -> io::Result<()> {
        match command {
            Command::Uci => {
                let list = self.options.list();
                let version = env!("CARGO_PKG_VERSION");
                self.say(&format!(
                    "id name Minuet {version}\nid author the Minuet project\n{list}uciok\n"
                ))
            }
            Command::IsReady => {
                self.load_if_needed();
                if self.is_loading {
                    self.ready_asked += 1;
                    Ok(())
                } else {
                    self.say("readyok\n")
                }
            }
            Command::SetOption { name, value } => self.set_option(&name, &value),
            Command::NewGame => {
                self.lag = Lag::default();
                self.order(Job::Forget);
                Ok(())
            }
            Command::Position { fen, moves } => {
                match Setup::new(fen.as_deref(), &moves, self.options.under_promotions) {
                    Ok(setup) => self.setup = Some(setup),
                    Err(error) => {
                        // Searching another position than the GUI's would be worse than none.
                        self.setup = None;
                        return self.remark(&format!("error: position: {error}"));
                    }
                }
                Ok(())
            }
            Command::Go(limits) => self.go(limits),
            Command::Stop => self.stop(),
            Command::PonderHit => self.ponder_hit(),
            Command::Debug(_) | Command::Nothing | Command::Quit => Ok(()),
        }
    }

    fn set_option(&mut self, name: &str, value: &str) -> io::Result<()> {
        if name.eq_ignore_ascii_case("clear hash") {
            self.order(Job::Forget);
            return Ok(());
        }
        match self.options.set(name, value) {
            Ok(()) => Ok(()),
            Err(error) => self.remark(&format!("error: {error}")),
        }
    }

    fn load_if_needed(&mut self) {
        let is_loaded = self
            .loaded
            .as_ref()
            .is_some_and(|loaded| !self.options.need_another_network(loaded));
        if is_loaded || self.options.model.is_empty() {
            return;
        }
        self.loaded = Some(self.options.clone());
        self.is_loading = true;
        self.order(Job::Load(self.options.clone()));
    }

    fn loaded(&mut self, loaded: Result<String, String>) -> io::Result<()> {
        self.is_loading = false;
        match loaded {
            Ok(description) => self.remark(&format!("network {description}"))?,
            Err(error) => {
                // Loading is tried again when needed, because a server may be available by then.
                self.loaded = None;
                self.remark(&format!("error: {error}"))?;
            }
        }
        let answers = "readyok\n".repeat(std::mem::take(&mut self.ready_asked));
        self.say(&answers)
    }

    fn go(&mut self, limits: Limits) -> io::Result<()> {
        if let Some(searching) = &self.searching {
            if searching.is_held || self.next.is_some() {
                return self.remark("error: a search is under way; stop it first");
            }
            self.next = Some(limits);
            return Ok(());
        }
        let Some(setup) = self.setup.clone() else {
            self.remark("error: no position to search: the last one was refused")?;
            return self.say("bestmove (none)\n");
        };
        self.load_if_needed();
        let only = setup.actions_of(&limits.search_moves);
        if only.len() < limits.search_moves.len() {
            self.remark("error: searchmoves: some are not legal here and are left out")?;
        }
        let id = self.next_id;
        self.next_id += 1;
        let mover = setup.chess.to_move().index();
        let began = Instant::now();
        let mut searching = Searching {
            id,
            mover,
            overhead: self.options.move_overhead,
            lag: self.lag.asked(&limits, mover),
            stop: Arc::default(),
            clock: Arc::default(),
            best: Arc::default(),
            fallback: setup.any_move().map(|action| setup.chess.uci(action)),
            is_held: limits.infinite || limits.ponder,
            done: None,
            give_up: None,
            limits: limits.clone(),
        };
        if !limits.ponder {
            searching.start_clock(began);
        }
        let task = Task {
            id,
            setup,
            only,
            limits,
            options: self.options.clone(),
            began,
            clock: Arc::clone(&searching.clock),
            stop: Arc::clone(&searching.stop),
            best: Arc::clone(&searching.best),
        };
        self.searching = Some(searching);
        self.order(Job::Think(Box::new(task)));
        Ok(())
    }

    fn stop(&mut self) -> io::Result<()> {
        let Some(searching) = &mut self.searching else {
            return Ok(());
        };
        searching.is_held = false;
        searching.stop.store(true, Ordering::Relaxed);
        searching.give_up = Some(Instant::now() + STOP_TIMEOUT);
        self.answer_if_done()
    }

    fn ponder_hit(&mut self) -> io::Result<()> {
        let Some(searching) = self
            .searching
            .as_mut()
            .filter(|searching| searching.limits.ponder)
        else {
            return Ok(());
        };
        searching.limits.ponder = false;
        searching.is_held = searching.limits.infinite;
        searching.start_clock(Instant::now());
        self.answer_if_done()
    }

    fn close(&mut self) -> io::Result<()> {
        self.is_closed = true;
        // A search with a limit is finished first, so that `echo go nodes 100 | minuet uci` is answered.
        let is_endless = self.searching.as_ref().is_some_and(Searching::is_endless);
        if is_endless { self.stop() } else { Ok(()) }
    }

    fn done(&mut self, id: u64, done: Result<Option<Best>, String>) -> io::Result<()> {
        if self.abandoned == Some(id) {
            self.abandoned = None;
        }
        let Some(searching) = self.searching.as_mut().filter(|searching| searching.id == id) else {
            return Ok(());
        };
        let (best, failure) = match done {
            Ok(best) => (best, None),
            // The best move found before the error is used.
            Err(error) => (searching.best.lock().clone(), Some(error)),
        };
        searching.done = Some(best);
        searching.give_up = None;
        if let Some(error) = failure {
            self.remark(&format!("error: {error}"))?;
        }
        self.answer_if_done()
    }

    fn answer_if_done(&mut self) -> io::Result<()> {
        match self.searching.take() {
            Some(Searching {
                done: Some(best),
                is_held: false,
                limits,
                mover,
                clock,
                ..
            }) => {
                self.answer(best, &limits, mover, &clock)?;
                self.begin_next()
            }
            still => {
                self.searching = still;
                Ok(())
            }
        }
    }

    /// Answers for a search that has not ended in time.
    fn answer_for_the_search(&mut self) -> io::Result<()> {
        let Some(searching) = self.searching.take() else {
            return Ok(());
        };
        searching.stop.store(true, Ordering::Relaxed);
        self.abandoned = Some(searching.id);
        let found = searching.best.lock().clone();
        let best = match (found, searching.fallback) {
            (Some(best), _) => Some(best),
            (None, Some(uci)) => {
                self.remark(
                    "error: the network has not answered in time: the move is an arbitrary legal one",
                )?;
                Some(Best { uci, ponder: None })
            }
            (None, None) => None,
        };
        self.answer(best, &searching.limits, searching.mover, &searching.clock)?;
        self.begin_next()
    }

    /// Begins the waiting search, if there is one.
    fn begin_next(&mut self) -> io::Result<()> {
        match self.next.take() {
            Some(limits) => self.go(limits),
            None => Ok(()),
        }
    }

    /// Writes the answer, and records the expected state of the clock.
    fn answer(&mut self, best: Option<Best>, limits: &Limits, mover: usize, clock: &Clock) -> io::Result<()> {
        self.best_move(best)?;
        if let Some((began, _)) = *clock.lock() {
            self.lag.answered(limits, mover, began.elapsed());
        }
        Ok(())
    }

    fn best_move(&mut self, best: Option<Best>) -> io::Result<()> {
        let text = match best {
            None => "bestmove (none)\n".to_owned(),
            Some(Best { uci, ponder: None }) => format!("bestmove {uci}\n"),
            Some(Best {
                uci,
                ponder: Some(ponder),
            }) => format!("bestmove {uci} ponder {ponder}\n"),
        };
        self.say(&text)
    }

    fn order(&self, job: Job) {
        // The worker lives as long as the engine.
        let _ = self.jobs.send(job);
    }

    fn remark(&mut self, text: &str) -> io::Result<()> {
        let text: String = text.chars().map(|c| if c == '\n' { ' ' } else { c }).collect();
        self.say(&format!("info string {text}\n"))
    }

    fn say(&mut self, lines: &str) -> io::Result<()> {
        self.out.write_all(lines.as_bytes())?;
        self.out.flush()
    }
}

impl Searching {
    /// Starts the time limit of the search.
    fn start_clock(&mut self, now: Instant) {
        let Some(budget) = clock::budget(&self.limits, self.mover, self.overhead, self.lag) else {
            return;
        };
        *self.clock.lock() = Some((now, budget));
        self.give_up = now.checked_add(search_timeout(budget, self.overhead));
    }

    fn is_endless(&self) -> bool {
        let Limits {
            time,
            depth,
            nodes,
            mate: _,
            move_time,
            ..
        } = &self.limits;
        let ends =
            time.iter().any(Option::is_some) || depth.is_some() || nodes.is_some() || move_time.is_some();
        self.is_held || !ends
    }
}

/// Returns the time that the engine waits for a search with this budget; it uses a part of the overhead.
fn search_timeout(budget: Budget, overhead: Duration) -> Duration {
    let grace = (overhead / 2).max(Duration::from_millis(5));
    if budget.may_save {
        budget.hard + grace
    } else {
        // With `movetime` no clock can run out.
        budget.hard + grace.max(STOP_TIMEOUT)
    }
}
