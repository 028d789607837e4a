//! Arguments of `minuet studio`.

use std::path::PathBuf;

/// Arguments of `minuet studio`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  minuet studio --run runs/paco-sako --open
      shows a run, at work or stopped, in the browser
  minuet studio --open
      offers play against the shipped networks
  minuet studio --run runs/chess --port 8080
      serves http://127.0.0.1:8080/
  minuet studio --run runs/chess --report chess.html
      writes a report, which opens from a disk

The first line of the output is the address. Only this machine can reach it; from elsewhere, forward the port:
  ssh -L 7070:127.0.0.1:7070 HOST")]
pub struct Arguments {
    /// Folder of the run. Without it, people play against the networks that come with Minuet.
    #[arg(long, value_name = "DIR")]
    pub run: Option<PathBuf>,
    /// Port on 127.0.0.1. [default: 7070, or a free one if it is taken]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// Open the page in the browser.
    #[arg(long)]
    pub open: bool,
    /// Write the run as one HTML file, and exit.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["port", "open"])]
    pub report: Option<PathBuf>,
    /// Stop when standard input closes, that is, when the parent process ends.
    #[arg(long, hide = true)]
    pub supervised: bool,
    /// Lower the priority of the process: its nice value, 0 to 19.
    #[arg(long, hide = true, value_name = "N", value_parser = clap::value_parser!(i32).range(0..=19))]
    pub nice: Option<i32>,
}
