//! Parts that all tables share: networks, permits for searches, and the list of open tables.

use std::{sync::Arc, time::Duration};

use arena::{
    Player, Spec,
    analysis::Engine,
    players::{NetworkOptions, Networks},
};
use config::Provider;
use games::erased::AnyGame;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::table::Table;
use crate::{failure::Failure, run::Run};

/// Networks that stay open, apart from those that are in use.
const OPEN_NETWORKS: usize = 8;

/// Limits of play.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Searches at work at once.
    pub searches: usize,
    /// Most visits of one search.
    pub visits: u32,
    /// Time after which the searches of a table that nobody watches stop.
    pub unwatched: Duration,
    /// Most tables.
    pub tables: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            searches: 2,
            visits: 20_000,
            unwatched: Duration::from_secs(2),
            tables: 16,
        }
    }
}

/// Networks, permits and tables.
pub struct Tables {
    /// Run whose networks are offered.
    pub run: Option<Run>,
    /// Limits.
    pub limits: Limits,
    /// Permits for searches.
    pub searches: Arc<Semaphore>,
    /// Permit of the exact solver.
    pub solving: Arc<Semaphore>,
    /// Engine of all analyses, hints and answers about checkpoints.
    pub engine: Arc<Engine>,
    networks: Mutex<Networks>,
    open: Mutex<Vec<(String, Arc<Table>)>>,
}

impl std::fmt::Debug for Tables {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Tables({} open)", self.open.lock().len())
    }
}

impl Tables {
    /// No tables are open.
    pub fn new(run: Option<Run>, limits: Limits) -> Self {
        let engine = Arc::new(Engine::start(limits.searches));
        // Small batches: one thread of the processor, and a provider that needs no measurement.
        let mut networks = Networks::new(NetworkOptions {
            provider: Provider::Cpu,
            copies: limits.searches,
            batch: 64,
            ..NetworkOptions::default()
        });
        if let Some(run) = &run {
            networks = networks.of_run(run.config.security.clone());
        }
        Self {
            run,
            limits,
            searches: Arc::new(Semaphore::new(limits.searches)),
            solving: Arc::new(Semaphore::new(1)),
            engine,
            networks: Mutex::new(networks),
            open: Mutex::default(),
        }
    }

    /// Opens a player. Loading a network takes a moment.
    ///
    /// # Errors
    /// The network cannot be used.
    pub fn player(&self, game: &'static AnyGame, spec: &Spec) -> anyhow::Result<Player> {
        let mut networks = self.networks.lock();
        let player = Player::open(game, spec, &mut networks);
        networks.close_unused(OPEN_NETWORKS);
        player
    }

    /// The table with this id.
    ///
    /// # Errors
    /// [`Failure::Missing`] if it is closed.
    pub fn table(&self, id: &str) -> Result<Arc<Table>, Failure> {
        let open = self.open.lock();
        let found = open.iter().find(|(known, _)| known == id);
        let missing = || Failure::Missing("This table is closed. Start a new game.".into());
        found.map(|(_, table)| Arc::clone(table)).ok_or_else(missing)
    }

    /// Adds a table and returns its id. The table that nobody has watched for the longest time makes room.
    ///
    /// # Errors
    /// [`Failure::Busy`] if all tables are watched.
    pub fn add(&self, table: Arc<Table>) -> Result<String, Failure> {
        let mut open = self.open.lock();
        if open.len() >= self.limits.tables {
            let idle = |(at, (_, table)): (usize, &(String, Arc<Table>))| Some((table.unwatched_for()?, at));
            let longest = open.iter().enumerate().filter_map(idle).max();
            let busy = || Failure::Busy("All tables are in use; close one first.".into());
            let (_, at) = longest.ok_or_else(busy)?;
            open.remove(at).1.close();
        }
        let mut id = format!("{:08x}", rand::random::<u32>());
        while open.iter().any(|(known, _)| *known == id) {
            id = format!("{:08x}", rand::random::<u32>());
        }
        open.push((id.clone(), table));
        Ok(id)
    }
}
