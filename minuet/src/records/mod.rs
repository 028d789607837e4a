//! `minuet games`: lists, shows, checks, exports, imports and deletes the stored games of a run.
//!
//! | module | contents |
//! |---|---|
//! | [`source`] | connecting to the store: a running one, or the folder of the run |
//! | [`list`], [`show`] | lists of games, and single games; [`selection`]: options that select games |
//! | [`export`], [`import`], [`delete`] | the commands of these names; [`send`]: sending games to a store |
//! | [`check`] | replaying games from their records and repeating their searches |

pub mod check;
mod delete;
mod export;
pub mod import;
mod list;
mod selection;
pub mod send;
mod show;
pub mod source;

use clap::Subcommand;

/// Arguments of `minuet games`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  minuet games list --run runs/paco-sako
  minuet games show 4be1f0a2… --run runs/paco-sako
  minuet games check --newest 20 --run runs/paco-sako --json")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List stored games, newest first or in another order.
    List(list::Arguments),
    /// Show a game move by move.
    Show(show::Arguments),
    /// Replay games from their records: every move, visit count and row, and the searches themselves.
    Check(check::Arguments),
    /// Write games to an archive, or to arrays for NumPy.
    Export(export::Arguments),
    /// Import games into a store: archives, or games of people as PGN, SGF or lines of JSON.
    Import(import::Arguments),
    /// Delete games by id, model, build, actor or time.
    Delete(delete::Arguments),
}

impl Arguments {
    /// True if the command changes no store, so that it may end at any line of its output.
    pub fn only_prints(&self) -> bool {
        !matches!(self.command, Command::Import(_) | Command::Delete(_))
    }
}

/// Runs the command.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match arguments.command {
            Command::List(arguments) => list::run(arguments).await,
            Command::Show(arguments) => show::run(arguments).await,
            Command::Check(arguments) => check::run(arguments).await,
            Command::Export(arguments) => export::run(arguments).await,
            Command::Import(arguments) => import::run(arguments).await,
            Command::Delete(arguments) => delete::run(arguments).await,
        }
    })
}
