//! Arguments of the benchmark.

use std::path::PathBuf;

use network::ModelName;

/// Arguments of `minuet bench playouts`.
#[derive(clap::Args)]
#[command(
    after_help = "Example: minuet bench playouts --game chess --json --python \"$(python3 scripts/python_env.py onnxruntime)\""
)]
pub struct Arguments {
    /// The game.
    #[arg(long, default_value = "chess")]
    pub(super) game: String,
    /// Trained network: a run, a checkpoint's folder or an .onnx file. Default: a network of random weights.
    #[arg(long, conflicts_with_all = ["blocks", "filters"])]
    pub(super) model: Option<ModelName>,
    /// Residual blocks of the random network.
    #[arg(long, default_value_t = 4)]
    pub(super) blocks: usize,
    /// Filters of the random network.
    #[arg(long, default_value_t = 64)]
    pub(super) filters: usize,
    /// Visits per move.
    #[arg(long, default_value_t = 800)]
    pub(super) visits: u32,
    /// Number of games in progress; their leaves share batches.
    #[arg(long, default_value_t = 64)]
    pub(super) games: usize,
    /// Leaves per search and batch; 1 is serial UCT.
    #[arg(long, default_value_t = 1)]
    pub(super) leaves: u32,
    /// Memory of the evaluation cache, in MiB.
    #[arg(long, default_value_t = 256)]
    pub(super) cache: usize,
    /// Execution provider; auto uses the fastest one whose results agree with f32, as `minuet up` does.
    #[arg(long, default_value = "auto")]
    pub(super) provider: config::Provider,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 5.0)]
    pub(super) seconds: f64,
    /// Python interpreter with ONNX Runtime, for the comparison.
    #[arg(long)]
    pub(super) python: Option<PathBuf>,
    /// Number of rounds; results are medians.
    #[arg(long, default_value_t = 3)]
    pub(super) rounds: usize,
    /// Print one JSON object.
    #[arg(long)]
    pub(super) json: bool,
}
