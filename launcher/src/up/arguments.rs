//! Arguments of the command.

use std::{path::PathBuf, time::Duration};

use config::{GameConfig, Override};

/// Arguments of `minuet up`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  minuet up
      trains Paco Ŝako in runs/paco-sako; the same command continues the run
  minuet up --game connect-four --set search.visits=200
      starts a run with a setting of its own, which is written into its run.toml
  minuet up --run runs/chess --game chess --actors 0
      trains on the games that `minuet games import` stores, without self-play
  minuet up --json --for 4m
      prints one JSON line for each event and stops after four minutes")]
pub struct Arguments {
    /// The run's folder. [default: runs/<game>]
    #[arg(long, value_name = "DIR")]
    pub(super) run: Option<PathBuf>,
    /// Game, with the size of its board if there are several (gomoku:15); a run's folder holds one. [default: the folder's, or
    /// paco-sako]
    #[arg(long)]
    pub(super) game: Option<String>,
    /// A setting that replaces run.toml's, e.g. --set search.visits=200. A new run writes it into its run.toml; for an existing run
    /// it holds until this command ends. May be given several times; the last one holds.
    #[arg(long = "set", value_name = "SECTION.KEY=VALUE")]
    pub(super) overrides: Vec<Override>,
    /// Number of actor processes. Together they use every core but one, unless actor.threads is set. 0: no self-play, so that the stored
    /// games alone are trained on, e.g. imported ones. [default: 1; for a game in Python one for every core but one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=256))]
    pub(super) actors: Option<u16>,
    /// Cores that no process of the run uses, so that other work continues undisturbed.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) leave_cores: usize,
    /// Rate new checkpoints by matches with all the processor time that these take, not only 3 %, so that the label `best` soon names the
    /// strongest; actors can follow it (--set actor.model=best). Short for --set rating.enabled=true --set rating.share=1.
    #[arg(long)]
    pub(super) rating: bool,
    /// Do not start the studio, the pages about the run in the browser.
    #[arg(long)]
    pub(super) no_studio: bool,
    /// Stop after this time, e.g. 90s, 4m, 1h30m.
    #[arg(long = "for", value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(super) limit: Option<Duration>,
    /// Print one JSON line for each event instead of a table.
    #[arg(long)]
    pub(super) json: bool,
    /// Folder of the roles' binaries. [default: that of this program]
    #[arg(long, value_name = "DIR")]
    pub(super) binaries: Option<PathBuf>,
}

impl Arguments {
    /// All settings of the command line.
    pub(super) fn overrides(&self) -> anyhow::Result<Vec<Override>> {
        let mut overrides = self.overrides.clone();
        if self.rating {
            overrides.push(Override::new("rating.enabled", true)?);
            overrides.push(Override::new("rating.share", 1.0)?);
        }
        Ok(overrides)
    }

    /// Folder of the run.
    pub(super) fn folder(&self) -> PathBuf {
        let game = self.game.clone().unwrap_or_else(|| GameConfig::default().name);
        self.run
            .clone()
            .unwrap_or_else(|| PathBuf::from("runs").join(game.replace(':', "-")))
    }

    /// Folder of the roles' binaries.
    pub(super) fn binaries(&self) -> anyhow::Result<PathBuf> {
        crate::processes::binaries(self.binaries.as_deref())
    }
}
