//! Arguments of the benchmark, and [`Network`], the size of a measured network.

use std::{fmt, path::PathBuf, str::FromStr};

use clap::builder::PossibleValuesParser;
use games::registry;

use super::load::Load;

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
    /// Loads of the overload test, as multiples of the highest rate that the server keeps up with; 0: no open loads.
    #[arg(long, value_delimiter = ',', default_value = "2,3", value_parser = times)]
    pub(super) overload: Vec<f64>,
    /// Largest number of queued positions in the server.
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
    times.ok_or_else(|| format!("`{text}` is not a multiple from 0 to 100"))
}

/// Size of a residual tower; over clans, `blocks` is the number of a fish-eye network's convolutions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Residual blocks.
    pub blocks: usize,
    /// Filters of each block.
    pub filters: usize,
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let network = text.split_once('x').and_then(|(blocks, filters)| {
            let (blocks, filters) = (blocks.parse().ok()?, filters.parse().ok()?);
            Some(Self { blocks, filters })
        });
        network
            .filter(|network| network.blocks <= 100 && (1..=4096).contains(&network.filters))
            .ok_or_else(|| format!("`{text}` is not a network; write blocks x filters, e.g. 6x64"))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}x{}", self.blocks, self.filters)
    }
}
