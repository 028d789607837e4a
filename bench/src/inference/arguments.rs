//! Arguments of the benchmark.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use games::registry;

use super::{load::Load, network::Network};

/// Arguments of `minuet bench inference`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  minuet bench inference --json
  minuet bench inference --networks 6x64 --loads 4x64 --providers cpu
  minuet bench inference --providers cuda --batch 512 --networks 6x64,20x256 --loads 16x256,64x16 --json   (on a GPU)")]
pub struct Arguments {
    /// Game whose positions are evaluated.
    #[arg(long, default_value = "paco-sako", value_parser = PossibleValuesParser::new(registry::NAMES))]
    pub(super) game: String,
    /// Networks of random weights, as BLOCKSxFILTERS.
    #[arg(long, value_delimiter = ',', default_value = "2x32,6x64")]
    pub(super) networks: Vec<Network>,
    /// Loads, as STREAMSxPOSITIONS (per request). Each stream has a connection of its own and one request at a time.
    #[arg(long, value_delimiter = ',', default_value = "4x64,64x1")]
    pub(super) loads: Vec<Load>,
    /// Largest batch, and the batch size of the direct calls.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(super) batch: u16,
    /// Providers to measure, as in `inference.provider`.
    #[arg(long, value_delimiter = ',', default_value = "cpu,auto")]
    pub(super) providers: Vec<String>,
    /// Number of rounds; results are medians.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..))]
    pub(super) rounds: u8,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 1.0)]
    pub(super) seconds: f64,
    /// Load of the overload test, as a multiple of the server's capacity; 0: no overload test.
    #[arg(long, default_value_t = 3.0)]
    pub(super) overload: f64,
    /// Greatest number of queued positions in the server.
    #[arg(long, default_value_t = 1024)]
    pub(super) queue: u32,
    /// Print one JSON object.
    #[arg(long)]
    pub(super) json: bool,
    /// Internal: call this model directly, controlled by standard input.
    #[arg(long, hide = true)]
    pub(super) direct: Option<PathBuf>,
}
