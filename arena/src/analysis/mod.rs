//! Searches of many positions at once, for engines, pages and servers: [`Engine`].
//!
//! Threads take [`Job`]s from one fair queue. The searches of a thread share batches, and those of a network its cache of evaluations. A
//! job's answer is the one that its search gives alone: it depends on neither the other jobs nor the order of the batches. The tree of
//! a job is kept for a while, and a job with the same position continues it, with the result of a search from the beginning. Players and
//! engines with a clock search with a [`Thinker`](crate::Thinker) instead, whose tree follows the game.
//!
//! | module | contents |
//! |---|---|
//! | [`engine`] | threads that search, each some positions at once |
//! | `queue` | whose job is next |
//! | `trees` | trees of ended jobs, bounded in bytes |
//! | [`review`] | a whole game: values and mistakes |
//! | [`figures`] | a search in numbers: value, visits, lines of the moves |

pub mod engine;
pub mod figures;
mod queue;
pub mod review;
mod trees;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI32},
    },
    time::Duration,
};

use games::erased::AnyState;
use search::{GameKey, Reuse, Root, Settings};

pub use engine::Engine;
pub use figures::Figures;

use crate::{Player, players::searches::AnySearch};

/// Leaves that an analysis evaluates at once.
const LEAVES: u32 = 8;
/// Memory of one tree, in bytes.
const TREE_BYTES: usize = 64 << 20;

/// A position to search.
#[derive(Clone, Debug)]
pub struct Job {
    /// Player whose network evaluates.
    pub player: Arc<Player>,
    /// The position. The game is not over.
    pub state: Box<dyn AnyState>,
    /// Text that tells the position from every other one: rules, start and actions. Jobs with equal texts, players, settings and keys
    /// share a tree.
    pub place: String,
    /// Settings of the search; `visits` is the number at which the job ends.
    pub settings: Settings,
    /// Key of all random draws.
    pub key: GameKey,
    /// Time after the first visit at which the job ends even with fewer visits.
    pub time: Option<Duration>,
    /// Number of the client. Clients get equal numbers of visits while they wait.
    pub client: u64,
    /// Place among the jobs of a client: the largest number is first, and of equal ones the oldest job.
    pub priority: Arc<AtomicI32>,
    /// Ends the job early once it is set.
    pub stop: Arc<AtomicBool>,
}

impl Job {
    /// Makes a job of `visits` visits with the usual [`settings`], without a limit of time, of client 0, with priority 0 and the same key for
    /// every position.
    pub fn new(player: Arc<Player>, state: Box<dyn AnyState>, place: String, visits: u32) -> Self {
        Self {
            settings: settings(&player, visits),
            player,
            state,
            place,
            key: GameKey { run_seed: 0, game: 0 },
            time: None,
            client: 0,
            priority: Arc::default(),
            stop: Arc::default(),
        }
    }
}

/// State of a job, after a batch and at its end.
#[derive(Debug)]
pub struct Report<'a> {
    /// The search; `None` if the job ended before it began.
    pub search: Option<&'a dyn AnySearch>,
    /// Positions that the network evaluated for this job.
    pub fresh: u64,
    /// End of the job; `None` while it is at work.
    pub end: Option<End>,
}

/// End of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// All visits are done, the time is up, or the search needs no more visits.
    Done,
    /// The job was stopped.
    Cancelled,
    /// The search failed, for this reason.
    Failed(String),
}

/// Receives the reports of a job, on a thread that searches: it must not wait.
pub type Reporter = Box<dyn FnMut(&Report<'_>) + Send>;

/// Returns the settings of an analysis of `visits` visits by a player: nothing is drawn, wins by one action are seen, and the search
/// continues where the outcome is proven.
pub fn settings(player: &Player, visits: u32) -> Settings {
    let own = player.settings().cloned().unwrap_or_default();
    let has_one_player = player.game().players == 1;
    Settings {
        visits: visits.clamp(1, Settings::MAX_VISITS),
        root: Root::Puct,
        leaves: LEAVES,
        noise_fraction: 0.0,
        // A symmetry drawn for each leaf would halve the hits of the cache; canonical colours raise them.
        random_symmetry: own.random_symmetry && has_one_player,
        reuse: Reuse::Drop,
        solver: true,
        stop_when_solved: own.stop_when_solved && has_one_player,
        tree_bytes: TREE_BYTES,
        ..own
    }
}
