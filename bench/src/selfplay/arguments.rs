//! Arguments of the benchmark.

use config::Override;
use network::ModelName;

use super::device::Pace;

/// Arguments of `minuet bench selfplay`.
#[derive(clap::Args)]
#[command(after_help = "Example: minuet bench selfplay --blocks 4 --filters 64 --seconds 30 --json")]
pub struct Arguments {
    /// The game.
    #[arg(long, default_value = "paco-sako")]
    pub(super) game: String,
    /// Length of the measurement, in seconds.
    #[arg(long, default_value_t = 20)]
    pub(super) seconds: u64,
    /// Length of the warm-up from the first visit on, in seconds.
    #[arg(long, default_value_t = 10)]
    pub(super) warm_up: u64,
    /// Trained network: a run, a checkpoint's folder or an .onnx file. Default: a network of random weights.
    #[arg(long, conflicts_with_all = ["blocks", "filters"])]
    pub(super) model: Option<ModelName>,
    /// Residual blocks of the random network. [default: those of a new run of the game]
    #[arg(long)]
    pub(super) blocks: Option<u32>,
    /// Filters of the random network. [default: those of a new run of the game]
    #[arg(long)]
    pub(super) filters: Option<u32>,
    /// Visits per move. [default: those of a new run of the game]
    #[arg(long)]
    pub(super) visits: Option<u32>,
    /// Answer batches by a simulated device that takes FIXED microseconds and ROW for each row, e.g. 300+2, and uses no core
    /// meanwhile, as a GPU. Without it, the network is evaluated.
    #[arg(long, value_name = "FIXED+ROW")]
    pub(super) device_pace: Option<Pace>,
    /// Set another key of the run's configuration, e.g. --set actor.games_per_thread=128. May be repeated.
    #[arg(long = "set", value_name = "SECTION.KEY=VALUE")]
    pub(super) overrides: Vec<Override>,
    /// Show the logs of the processes.
    #[arg(long)]
    pub(super) logs: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub(super) json: bool,
}
