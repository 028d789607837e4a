//! `minuet up`: a whole run on this machine.
//!
//! | module | what it is for |
//! |---|---|
//! | [`folder`] | the run's folder: layout, `run.toml`, the lock |
//! | [`game`] | the game's own defaults, and a check of what `run.toml` says of it |
//! | [`plan`] | which processes there are, and what each is started with ([`ports`]) |
//! | [`supervise`] | one process kept running; [`team`]: all of them, and the order in which they stop |
//! | [`stores`] | how many replay stores there are, and where |
//! | [`addresses`] | where the roles are found, for other commands |
//! | [`census`] | processes that an earlier start left behind |
//! | [`logs`] | the processes' logs |
//! | [`watch`] | looking at the processes, and the figures that come of it |
//! | [`session`] | what is known of the run; [`event`]: what is told about it |
//! | [`screen`] | how it is shown |

pub mod addresses;
pub mod census;
pub mod conduct;
pub mod event;
pub mod folder;
mod game;
mod logs;
pub mod plan;
mod ports;
mod screen;
mod session;
pub mod stores;
pub mod supervise;
pub mod team;
mod watch;

pub use self::{folder::new_run, game::check as check_game};

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;
use config::{GameConfig, Override};

/// Arguments of `minuet up`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  minuet up
      trains Paco Ŝako in runs/paco-sako; the same again goes on where it left off
  minuet up --game connect-four --set search.visits=200
      a new run with a setting of its own, which is written into its run.toml
  minuet up --json --for 4m
      one JSON line for each event, ends by itself")]
pub struct Arguments {
    /// The run's folder. [default: runs/<game>]
    #[arg(long, value_name = "DIR")]
    run: Option<PathBuf>,
    /// What is played: a run's folder holds one game. [default: the folder's, or paco-sako]
    #[arg(long)]
    game: Option<String>,
    /// A setting in place of run.toml's, e.g. --set search.visits=200. A new run keeps it in its run.toml; one that is
    /// there already keeps its file, and the setting holds until this stops. May be given often; the last one counts.
    #[arg(long = "set", value_name = "SECTION.KEY=VALUE")]
    overrides: Vec<Override>,
    /// Actor processes. Together they use every core but one, unless actor.threads says otherwise.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    actors: u16,
    /// Replay stores, among which the games are divided; a run keeps the highest number it had. [default: what it has, or 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    replay_stores: Option<u16>,
    /// Rate checkpoints as they come: the label `best` follows, and so can actors (--set actor.model=best). The same as
    /// --set rating.enabled=true.
    #[arg(long)]
    rating: bool,
    /// Stop after this long, e.g. 90s, 4m, 1h30m.
    #[arg(long = "for", value_name = "DURATION", value_parser = humantime::parse_duration)]
    limit: Option<Duration>,
    /// Print one JSON line for each event instead of a table.
    #[arg(long)]
    json: bool,
    /// Folder of the roles' binaries. [default: this one's]
    #[arg(long, value_name = "DIR")]
    binaries: Option<PathBuf>,
}

impl Arguments {
    /// What was set, by whichever argument.
    fn overrides(&self) -> anyhow::Result<Vec<Override>> {
        let mut overrides = self.overrides.clone();
        if self.rating {
            overrides.push(Override::new("rating.enabled", true)?);
        }
        Ok(overrides)
    }

    fn folder(&self) -> PathBuf {
        let game = self.game.clone().unwrap_or_else(|| GameConfig::default().name);
        self.run
            .clone()
            .unwrap_or_else(|| PathBuf::from("runs").join(game))
    }

    fn binaries(&self) -> anyhow::Result<PathBuf> {
        binaries(self.binaries.as_deref())
    }
}

/// The folder of the roles' binaries: the one that was named, or this program's.
///
/// # Errors
/// Where nobody knows which that is.
pub fn binaries(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    match named {
        Some(folder) => Ok(folder.into()),
        None => {
            let own = std::env::current_exe().context("cannot find the folder of the roles' binaries")?;
            Ok(own.parent().map(PathBuf::from).unwrap_or_default())
        }
    }
}

/// Runs it.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    // Whatever is left when this returns is dropped with the runtime, and processes with it.
    runtime.block_on(conduct::conduct(arguments))
}
