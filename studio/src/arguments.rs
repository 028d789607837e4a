//! Arguments of `minuet studio`.

use std::{
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
};

use config::Override;
use launcher::follow::prometheus::Prometheus;

use crate::security::hosts::host_name;

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
  minuet studio --run runs/chess --listen 0.0.0.0 --name studio.example.org
      serves https://studio.example.org:7070/ to holders of tokens; run.toml names certificate, key and tokens in [security]
  minuet studio --run runs/cluster --follow /etc/minuet/run.toml --prometheus http://prometheus:9090
      shows a run in containers, whose figures are kept in runs/cluster; the names of the roles must resolve to them

The first line of the output is the address. Without --listen only this machine can reach it; from elsewhere, forward the port:
  ssh -L 7070:127.0.0.1:7070 HOST")]
pub struct Arguments {
    /// Folder of the run. Without it, people play against the networks that come with Minuet.
    #[arg(long, value_name = "DIR")]
    pub run: Option<PathBuf>,
    /// Configuration of a run whose roles run elsewhere, in Compose or Kubernetes. Its figures are kept in the folder of --run.
    #[arg(long, value_name = "FILE", requires = "run", conflicts_with = "report")]
    pub follow: Option<PathBuf>,
    /// Setting in place of that of --follow; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "follow")]
    pub overrides: Vec<Override>,
    /// Prometheus that has the curves of the time before the studio was started, as http://host:port.
    #[arg(long, value_name = "URL", requires = "follow")]
    pub prometheus: Option<Prometheus>,
    /// Address to listen on. Beyond this machine, [security] of run.toml must name tokens, and a certificate or plaintext = "anywhere".
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub listen: IpAddr,
    /// Make a token at the first start, print it at each, and accept it alone, in place of security.tokens. It is kept in the folder
    /// of --run.
    #[arg(long, requires = "run")]
    pub make_token: bool,
    /// Name by which browsers reach the studio, in addition to localhost; may be repeated. Behind --listen an address in digits needs none.
    #[arg(long, value_name = "HOST", value_parser = host_name)]
    pub name: Vec<String>,
    /// Port. [default: 7070, or a free one if it is taken]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// Open the page in the browser.
    #[arg(long)]
    pub open: bool,
    /// Write the run as one HTML file, and exit.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["listen", "make_token", "name", "port", "open"])]
    pub report: Option<PathBuf>,
    /// Stop when standard input closes, that is, when the parent process ends.
    #[arg(long, hide = true)]
    pub supervised: bool,
    /// Lower the priority of the process: its nice value, 0 to 19.
    #[arg(long, hide = true, value_name = "N", value_parser = clap::value_parser!(i32).range(0..=19))]
    pub nice: Option<i32>,
}
