//! `minuet config`: writes a run's configuration, for roles started without `minuet up`, in containers or a cluster.

use std::{
    fs,
    io::{self, Write as _},
    path::PathBuf,
};

use anyhow::Context as _;
use clap::Args;
use config::{self, Override};

use launcher::{check_game, differences, new_run, template};

/// `minuet config`
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    minuet config --game connect-four --set search.visits=200 > run.toml\n  \
    minuet config --check run.toml\n\n\
    Every role takes the file with --config; `minuet up` writes one by itself.")]
pub struct Arguments {
    /// Game of the run. [default: paco-sako]
    #[arg(long, conflicts_with = "check")]
    game: Option<String>,
    /// Set a key in place of its default, e.g. --set search.visits=200. May be repeated; the last value of a key wins.
    #[arg(long = "set", value_name = "SECTION.KEY=VALUE")]
    overrides: Vec<Override>,
    /// Check this file instead of writing one: exit code 2, with the key's name, if it cannot be used.
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
    /// Write only the values of this file that differ from the defaults.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["game", "check"])]
    short: Option<PathBuf>,
}

/// Runs `minuet config`.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let text = match (arguments.check, arguments.short) {
        (Some(file), _) => {
            let config = config::load_with(Some(&file), &arguments.overrides)?;
            check_game(&config.game)?;
            format!("{} can be used: a run of {}\n", file.display(), config.game.name)
        }
        (None, Some(file)) => {
            let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            differences(&config::parse_with(&text, &arguments.overrides)?)?
        }
        (None, None) => {
            let config = new_run(arguments.game.as_deref(), &arguments.overrides)?;
            template(&config)
        }
    };
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}
