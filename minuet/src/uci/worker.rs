//! The search thread: owns the network and the tree, does jobs in order and sends results to the engine.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, SyncSender},
    },
    time::{Duration, Instant},
};

use ::network::batched::EvaluationSource;
use arena::{
    Thinker,
    players::{
        NetworkOptions, Values,
        searches::{AnySearch, searches},
    },
};
use games::{Action, Game as _, chess::Chess, erased::Typed, registry};
use parking_lot::Mutex;
use search::{GameKey, Settings};

use super::{
    clock::Budget,
    command::Limits,
    mate,
    options::Options,
    report::{self, Snapshot},
    setup::Setup,
};
use crate::network;

/// Shortest time between `info` lines, which are sent when the best move changes or the line grows.
const INFO_PAUSE: Duration = Duration::from_millis(50);
/// Longest time between `info` lines.
const INFO_INTERVAL: Duration = Duration::from_secs(1);

/// A job for the search thread.
#[derive(Debug)]
pub enum Job {
    /// Load the network that the options name.
    Load(Options),
    /// Discard the tree, because another game begins.
    Forget,
    /// Search a position.
    Think(Box<Task>),
}

/// An event for the engine.
#[derive(Debug)]
pub enum Event {
    /// A line was read.
    Line(String),
    /// The input has ended.
    Closed,
    /// The network is loaded (with its description), or could not be (with the reason).
    Loaded(Result<String, String>),
    /// `info` lines of a search.
    Info(u64, String),
    /// A search has ended, with the best move (`None` if there is no legal move) or with an error.
    Done(u64, Result<Option<Best>, String>),
}

/// The move to play, and the expected reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Best {
    /// The move in UCI notation.
    pub uci: String,
    /// The expected reply in UCI notation.
    pub ponder: Option<String>,
}

/// Start and time budget of a search; `None` while the engine ponders, because its clock does not run then.
pub type Clock = Mutex<Option<(Instant, Budget)>>;

/// A search job.
#[derive(Debug)]
pub struct Task {
    /// Number of the search.
    pub id: u64,
    /// The position to search.
    pub setup: Setup,
    /// Root moves to search; empty: all.
    pub only: Vec<Action>,
    /// Limits given by `go`.
    pub limits: Limits,
    /// Options at the start of the search.
    pub options: Options,
    /// Time of the request.
    pub began: Instant,
    /// Time limit of the search.
    pub clock: Arc<Clock>,
    /// Set to true to end the search.
    pub stop: Arc<AtomicBool>,
    /// Best move found so far.
    pub best: Arc<Mutex<Option<Best>>>,
}

/// Does jobs until the channel closes.
pub fn run(jobs: &Receiver<Job>, events: &SyncSender<Event>) {
    let mut worker = Worker::default();
    for job in jobs {
        let event = match job {
            Job::Load(options) => Event::Loaded(worker.load(&options)),
            Job::Forget => {
                worker.forget();
                continue;
            }
            Job::Think(task) => {
                let done = worker.think(&task, events);
                Event::Done(task.id, done)
            }
        };
        if events.send(event).is_err() {
            return;
        }
    }
}

#[derive(Default)]
struct Worker {
    source: Option<EvaluationSource>,
    /// Reason why no network is loaded.
    failure: Option<String>,
    tree: Option<Tree>,
}

/// A tree that may be used again.
struct Tree {
    thinker: Thinker,
    /// State in which the search decides.
    root: Chess,
    setup: Setup,
    /// True if the tree contains all moves of the root.
    is_whole: bool,
    settings: Settings,
}

impl Worker {
    fn load(&mut self, options: &Options) -> Result<String, String> {
        self.forget();
        self.source = None;
        match network::open::<Chess>(&options.model, network_options(options)) {
            Ok(source) => {
                self.failure = None;
                let description = network::describe(&source);
                self.source = Some(source);
                Ok(description)
            }
            Err(error) => {
                let reason = format!("{error:#}");
                self.failure = Some(reason.clone());
                Err(reason)
            }
        }
    }

    fn forget(&mut self) {
        self.tree = None;
    }

    fn think(&mut self, task: &Task, events: &SyncSender<Event>) -> Result<Option<Best>, String> {
        let Some(root) = task.setup.searchable() else {
            return Ok(task
                .setup
                .any_move()
                .map(|action| best(&task.setup.chess, &[action])));
        };
        if let Some(moves) = task.limits.mate.filter(|_| task.only.is_empty())
            && let Some((moves, action)) = mate::forced(&root, moves)
        {
            let uci = root.uci(action);
            let found = format!(
                "info depth 1 seldepth {} score mate {moves} pv {uci}\n",
                2 * moves - 1
            );
            // Sending fails only if the engine has ended.
            let _ = events.send(Event::Info(task.id, found));
            return Ok(Some(best(&root, &[action])));
        }
        let mut tree = self.tree_for(task, root)?;
        let done = search(&mut tree, task, events);
        self.tree = Some(tree);
        done.map(Some)
    }

    /// Returns the tree of the last search if it can be reused, else a new one.
    fn tree_for(&mut self, task: &Task, root: Chess) -> Result<Tree, String> {
        let source = self.source.clone().ok_or_else(|| {
            self.failure
                .clone()
                .unwrap_or_else(|| "no network: set the option Model, or start with --model".into())
        })?;
        let settings = task.options.search.clone();
        if let Some(mut tree) = self.tree.take()
            && tree.settings == settings
            && task.only.is_empty()
            && let Some(moves) = task.setup.moves_since(&tree.setup)
            // A tree whose root lacks moves can be reused below the root.
            && (tree.is_whole || !moves.is_empty())
            && moves.iter().all(|&action| tree.thinker.advance(action).is_ok())
            && Typed::<Chess>::find(tree.thinker.state()).is_some_and(|found| found.state == root)
        {
            tree.root = root;
            tree.setup = task.setup.clone();
            tree.is_whole = true;
            return Ok(tree);
        }
        let key = GameKey {
            run_seed: task.began.elapsed().as_nanos() as u64,
            game: task.id,
        };
        let chess = registry::find(Chess::NAME).map_err(|error| error.to_string())?;
        let state = Typed {
            state: root.clone(),
            encoding: Default::default(),
        };
        let said = |error: anyhow::Error| format!("{error:#}");
        let searches = searches(chess, source, Values::Network, &task.options.model).map_err(said)?;
        let mut thinker = Thinker::new(&state, settings.clone(), key, searches).map_err(said)?;
        if !task.only.is_empty() {
            thinker.restrict_root(&task.only);
        }
        Ok(Tree {
            thinker,
            root,
            setup: task.setup.clone(),
            is_whole: task.only.is_empty(),
            settings,
        })
    }
}

fn network_options(options: &Options) -> NetworkOptions {
    NetworkOptions {
        provider: options.provider,
        copies: 1,
        threads: options.threads as usize,
        batch: options.search.leaves as usize,
        cache_mib: options.cache as usize,
    }
}

fn search(tree: &mut Tree, task: &Task, events: &SyncSender<Event>) -> Result<Best, String> {
    let Tree { thinker, root, .. } = tree;
    let root = &*root;
    let mut monitor = SearchMonitor {
        task,
        root,
        events,
        shown: task.began,
        shown_best: None,
        shown_depth: 0,
        mates: HashMap::new(),
    };
    let visits = [
        task.limits
            .nodes
            .map(|nodes| u32::try_from(nodes).unwrap_or(u32::MAX)),
        Some(task.options.visits).filter(|&visits| visits > 0),
    ];
    let visits = visits.into_iter().flatten().min();
    let visits = visits.map_or(Settings::MAX_VISITS, |visits| visits.max(1));
    let halt = AtomicBool::new(false);
    let ended = thinker.think(visits, &halt, |thinker| {
        if monitor.update(thinker.search()) {
            halt.store(true, Ordering::Relaxed);
        }
    });
    if let Err(error) = ended {
        return Err(format!("{error:#}"));
    }
    let search = thinker.search();
    monitor.show(search);
    let chosen = match task.options.temperature > 0.0 {
        true => search.choose(task.options.temperature),
        false => None,
    };
    let best_move = chosen.or_else(|| search.principal_variation(None).first().copied());
    let line = search.principal_variation(best_move);
    if line.is_empty() {
        return Err("the search found no move".into());
    }
    Ok(best(root, &line))
}

/// Returns the first two moves of a line: best move and expected reply.
fn best(root: &Chess, line: &[Action]) -> Best {
    let mut texts = report::uci_line(root, line.get(..2).unwrap_or(line)).into_iter();
    Best {
        uci: texts.next().unwrap_or_else(|| "0000".into()),
        ponder: texts.next(),
    }
}

/// Called after each batch of a search: reports the results so far and decides when the search ends.
struct SearchMonitor<'a> {
    task: &'a Task,
    root: &'a Chess,
    events: &'a SyncSender<Event>,
    shown: Instant,
    shown_best: Option<Action>,
    shown_depth: usize,
    /// Proven mate distances, by first move and length of the line; `None`: not proven.
    mates: HashMap<(Action, usize), Option<i32>>,
}

impl SearchMonitor<'_> {
    /// Reports the results so far. Returns true if the search should end.
    fn update(&mut self, search: &dyn AnySearch) -> bool {
        if search.visits_done() == 0 {
            return false;
        }
        let line = search.principal_variation(None);
        let first = line.first().copied();
        if first.is_some() {
            *self.task.best.lock() = Some(best(self.root, &line));
        }
        let is_new = first != self.shown_best || line.len() > self.shown_depth;
        let pause = if is_new { INFO_PAUSE } else { INFO_INTERVAL };
        if self.shown.elapsed() >= pause {
            self.show(search);
        }
        self.task.stop.load(Ordering::Relaxed)
            || self
                .task
                .limits
                .depth
                .is_some_and(|depth| line.len() >= depth as usize)
            || self.has_found_mate(&line)
            || self.is_time_up(search)
    }

    fn show(&mut self, search: &dyn AnySearch) {
        let line = search.principal_variation(None);
        self.shown = Instant::now();
        self.shown_best = line.first().copied();
        self.shown_depth = line.len();
        let root = self.root;
        let mates = &mut self.mates;
        let lines = report::lines(
            &Snapshot {
                root,
                search,
                elapsed: self.task.began.elapsed(),
                multi_pv: self.task.options.multi_pv as usize,
                show_wdl: self.task.options.show_wdl,
                hash_bytes: self.task.options.search.tree_bytes as u64,
            },
            |line| {
                *mates
                    .entry((line.first().copied().unwrap_or_default(), line.len()))
                    .or_insert_with(|| mate::score(root, line))
            },
        );
        // Sending fails only if the engine has ended.
        let _ = self.events.send(Event::Info(self.task.id, lines));
    }

    fn has_found_mate(&self, line: &[Action]) -> bool {
        let Some(moves) = self.task.limits.mate else {
            return false;
        };
        line.len().div_ceil(2) <= moves as usize
            && mate::score(self.root, line).is_some_and(|found| found > 0)
    }

    fn is_time_up(&self, search: &dyn AnySearch) -> bool {
        let Some((began, budget)) = *self.task.clock.lock() else {
            return false;
        };
        let elapsed = began.elapsed();
        if elapsed >= budget.hard {
            return true;
        }
        if !budget.may_save {
            return false;
        }
        let decision = search.decision();
        if decision.actions.len() == 1 {
            return true;
        }
        let mut visits: Vec<u32> = decision.visits.clone();
        visits.sort_unstable_by(|left, right| right.cmp(left));
        let lead = match visits[..] {
            [first, second, ..] => f64::from(first - second),
            _ => return true,
        };
        // If the most visited move does not have the best value, more visits may change the decision.
        if elapsed >= budget.soft {
            return !is_doubtful(&decision.visits, &decision.values);
        }
        let rate = f64::from(search.visits_done()) / elapsed.as_secs_f64().max(1e-3);
        lead > rate * (budget.soft - elapsed).as_secs_f64()
    }
}

/// True if a move with nearly as many visits has a better value than the most visited one.
fn is_doubtful(visits: &[u32], values: &[games::MoverValue]) -> bool {
    let Some(best) = (0..visits.len()).max_by_key(|&index| visits[index]) else {
        return false;
    };
    (0..visits.len()).any(|index| {
        2 * u64::from(visits[index]) > u64::from(visits[best])
            && values[index].get() > values[best].get() + 0.01
    })
}
