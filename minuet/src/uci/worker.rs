//! The search thread: owns the network and the tree, does jobs in order and sends results to the engine.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, SyncSender},
    },
    time::Instant,
};

use ::network::batched::EvaluationSource;
use anyhow::{anyhow, ensure};
use arena::{
    Thinker,
    players::{NetworkOptions, Values, searches::searches},
};
use games::{Action, Game as _, chess::Chess, erased::Typed, registry};
use parking_lot::Mutex;
use search::{GameKey, Settings};

use super::{clock::Budget, command::Limits, mate, monitor::Monitor, options::Options, report, setup::Setup};
use crate::network;

/// A job for the search thread.
#[derive(Debug)]
pub enum Job {
    /// Load a network, named in the form of `--model`.
    Load(String, NetworkOptions),
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

/// Messages between the engine and the search thread during a search.
#[derive(Debug, Default)]
pub struct Control {
    /// Set to true to end the search.
    pub stop: AtomicBool,
    /// Start and time budget of the search; `None` while the engine ponders, because its clock does not run then.
    pub clock: Mutex<Option<(Instant, Budget)>>,
    /// Best move found so far.
    pub best: Mutex<Option<Best>>,
}

/// A search job.
#[derive(Debug)]
pub struct Task {
    /// Number of the search.
    pub id: u64,
    /// The position to search.
    pub setup: Arc<Setup>,
    /// Root moves to search; empty: all.
    pub only: Vec<Action>,
    /// Limits given by `go`.
    pub limits: Limits,
    /// Options at the time of `go`.
    pub options: Options,
    /// True to discard the tree of earlier searches.
    pub is_new_game: bool,
    /// Time at which the search began.
    pub began: Instant,
    /// Messages during the search.
    pub control: Arc<Control>,
}

/// Does jobs until the channel closes.
pub fn run(jobs: &Receiver<Job>, events: &SyncSender<Event>) {
    let mut worker = Worker::default();
    for job in jobs {
        let event = match job {
            Job::Load(model, options) => Event::Loaded(worker.load(&model, options)),
            Job::Think(task) => {
                let done = worker.think(&task, events);
                Event::Done(task.id, done.map_err(|error| format!("{error:#}")))
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
    setup: Arc<Setup>,
    /// True if the tree contains all moves of the root.
    is_whole: bool,
    settings: Settings,
}

impl Worker {
    fn load(&mut self, model: &str, options: NetworkOptions) -> Result<String, String> {
        (self.tree, self.source) = (None, None);
        match network::open::<Chess>(model, options) {
            Ok(source) => Ok(network::describe(self.source.insert(source))),
            Err(error) => Err(self.failure.insert(format!("{error:#}")).clone()),
        }
    }

    fn think(&mut self, task: &Task, events: &SyncSender<Event>) -> anyhow::Result<Option<Best>> {
        if task.is_new_game {
            self.tree = None;
        }
        let Some(root) = task.setup.searchable() else {
            let any = task.setup.any_move();
            return Ok(any.map(|action| best(&task.setup.chess, &[action])));
        };
        if let Some(moves) = task.limits.mate.filter(|_| task.only.is_empty())
            && let Some((moves, action)) = mate::forced(&root, moves)
        {
            let (uci, depth) = (root.uci(action), 2 * moves - 1);
            let found = format!("info depth 1 seldepth {depth} score mate {moves} pv {uci}\n");
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
    fn tree_for(&mut self, task: &Task, root: Chess) -> anyhow::Result<Tree> {
        let source = self.source.clone().ok_or_else(|| {
            let failure = self.failure.as_deref();
            anyhow!(
                "{}",
                failure.unwrap_or("no network: set the option Model, or start with --model")
            )
        })?;
        let settings = task.options.search();
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
            tree.setup = Arc::clone(&task.setup);
            tree.is_whole = true;
            return Ok(tree);
        }
        let key = GameKey {
            run_seed: task.began.elapsed().as_nanos() as u64,
            game: task.id,
        };
        let chess = registry::find(Chess::NAME)?;
        let state = Typed {
            state: root.clone(),
            encoding: Default::default(),
        };
        let searches = searches(chess, source, Values::Network, &task.options.model)?;
        let mut thinker = Thinker::new(&state, settings.clone(), key, searches)?;
        if !task.only.is_empty() {
            thinker.restrict_root(&task.only);
        }
        Ok(Tree {
            thinker,
            root,
            setup: Arc::clone(&task.setup),
            is_whole: task.only.is_empty(),
            settings,
        })
    }
}

fn search(tree: &mut Tree, task: &Task, events: &SyncSender<Event>) -> anyhow::Result<Best> {
    let Tree { thinker, root, .. } = tree;
    let mut monitor = Monitor::new(task, root, events);
    let nodes = task.limits.nodes;
    let visits = [
        nodes.map(|nodes| u32::try_from(nodes).unwrap_or(u32::MAX)),
        Some(task.options.visits).filter(|&visits| visits > 0),
    ];
    let visits = visits.into_iter().flatten().min();
    let visits = visits.map_or(Settings::MAX_VISITS, |visits| visits.max(1));
    let halt = AtomicBool::new(false);
    let look = |thinker: &Thinker| {
        if monitor.update(thinker.search()) {
            halt.store(true, Ordering::Relaxed);
        }
    };
    thinker.think(visits, &halt, look)?;
    let search = thinker.search();
    monitor.show(search);
    let temperature = Some(task.options.temperature).filter(|&temperature| temperature > 0.0);
    let drawn = temperature.and_then(|temperature| search.choose(temperature));
    let line = search.principal_variation(drawn);
    ensure!(!line.is_empty(), "the search found no move");
    Ok(best(root, &line))
}

/// Returns the first two moves of a line: best move and expected reply.
pub fn best(root: &Chess, line: &[Action]) -> Best {
    let mut texts = report::uci_line(root, line.get(..2).unwrap_or(line)).into_iter();
    Best {
        uci: texts.next().unwrap_or_else(|| "0000".into()),
        ponder: texts.next(),
    }
}
