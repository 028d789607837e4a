//! The state of one run of an experiment, kept in its folder: [`RunState`].

use std::{fs, io, path::Path};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

/// Name of the file in the folder of a run.
const FILE: &str = "lab.json";

/// Counts and measurements of a run so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunState {
    /// Budget spent.
    pub spent: Spent,
    /// Measurements of strength, oldest first.
    pub ratings: Vec<Rated>,
    /// True once the budget is spent and the last network is measured.
    pub is_complete: bool,
}

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// Number of rounds of self-play and training.
    pub rounds: u64,
    /// Visits of self-play; the fields after it say where their evaluations came from.
    pub visits: u64,
    /// Positions evaluated by the network.
    pub evaluations: u64,
    /// Evaluations found in the cache.
    pub cached: u64,
    /// Evaluations shared with an equal position of the same batch.
    pub duplicates: u64,
    /// Visits that used evaluations kept in the tree.
    pub gray: u64,
    /// Visits that ended in a finished game.
    pub terminal: u64,
    /// Games stored.
    pub games: u64,
    /// Positions of these games.
    pub positions: u64,
    /// Training steps.
    pub steps: u64,
    /// Samples trained on.
    pub samples: u64,
    /// Processor time of self-play in seconds.
    pub self_play_cpu_seconds: f64,
    /// Processor time of the learner in seconds.
    pub learner_cpu_seconds: f64,
}

/// A measurement of strength.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rated {
    /// Version of the network.
    pub version: String,
    /// Budget spent when the network was measured.
    pub spent: Spent,
    /// Results against the opponents, in the order of the experiment.
    pub matches: Vec<Match>,
    /// Share of optimal moves of the network alone, in [0, 1].
    pub optimal_alone: Option<f64>,
    /// Share of optimal moves with search, in [0, 1].
    pub optimal_searched: Option<f64>,
}

/// Result against one opponent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Match {
    /// The opponent.
    pub against: String,
    /// Games won, drawn and lost.
    pub games: [u64; 3],
    /// Score in [0, 1].
    pub score: f64,
    /// Difference in Elo; `None` if no game or every game was won.
    pub elo: Option<f64>,
    /// Bounds of the 95 % interval of the difference.
    pub elo_interval: [Option<f64>; 2],
}

impl RunState {
    /// Reads the state of the run in `folder`; that of a new run if there is none.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn read(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(FILE);
        match fs::read(&path) {
            Ok(bytes) => {
                serde_json::from_slice(&bytes).with_context(|| format!("{} is damaged", path.display()))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// Writes the state durably into the folder of the run.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let path = folder.join(FILE);
        durable::write(&path, &serde_json::to_vec_pretty(self)?)
            .with_context(|| format!("cannot write {}", path.display()))
    }
}
