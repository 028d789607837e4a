//! Arguments of the benchmark.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use games::registry;

use super::{load::Load, network::Network};

/// Arguments of `minuet bench inference`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  minuet bench inference --json --python \"$(python3 scripts/python_env.py onnxruntime)\"
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
    #[arg(long, value_delimiter = ',', default_value = "1x1,8x1,64x1,4x64")]
    pub(super) loads: Vec<Load>,
    /// Largest batch, also of the direct calls, unless the load has fewer positions in flight.
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
    /// Loads of the overload test, as multiples of the greatest rate that the server keeps up with; 0: no open loads.
    #[arg(long, value_delimiter = ',', default_value = "2,3", value_parser = times)]
    pub(super) overload: Vec<f64>,
    /// Greatest number of queued positions in the server.
    #[arg(long, default_value_t = 1024)]
    pub(super) queue: u32,
    /// Print one JSON object.
    #[arg(long)]
    pub(super) json: bool,
    /// Python interpreter with ONNX Runtime, for the comparison.
    #[arg(long)]
    pub(super) python: Option<PathBuf>,
}

impl Arguments {
    /// Returns the loads of the overload test.
    pub(super) fn overloads(&self) -> impl Iterator<Item = f64> {
        self.overload.iter().copied().filter(|&times| times > 0.0)
    }
}

fn times(text: &str) -> Result<f64, String> {
    let times = text.parse().ok().filter(|times| (0.0..=100.0).contains(times));
    times.ok_or_else(|| format!("`{text}` is no multiple from 0 to 100"))
}
