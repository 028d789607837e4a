//! `minuet games`: the stored games of a run, to look at, to check, to carry elsewhere.
//!
//! | module | what it is for |
//! |---|---|
//! | [`source`] | reaching the store: one that runs, or the run's folder |
//! | [`list`], [`show`] | what there is; [`choice`]: which games are meant |
//! | [`export`], [`import`], [`delete`] | games out of a store, into one, and away; [`send`]: games on their way |
//! | [`check`] | games replayed from their records; [`network`]: their networks, asked again |

mod check;
mod choice;
pub mod damage;
mod delete;
mod export;
mod import;
mod list;
mod network;
mod send;
mod show;
mod source;

use clap::Subcommand;

/// Arguments of `minuet games`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  minuet games list --run runs/paco-sako
  minuet games show 00c1…  --run runs/paco-sako
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
    /// Put an archive's games into a store.
    Import(import::Arguments),
    /// Delete games by where they came from.
    Delete(delete::Arguments),
}

/// Does what was asked.
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

/// A game's id in hexadecimal, as it is shown and asked for.
fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An id as a person gives it.
fn parse_id(text: &str) -> Result<[u8; 16], String> {
    let digits = u128::from_str_radix(text, 16).ok().filter(|_| text.len() == 32);
    digits.map(u128::to_be_bytes).ok_or_else(|| {
        format!("`{text}` is no game id: 32 hexadecimal digits, as `minuet games list` shows them")
    })
}

/// Milliseconds since the epoch as people read them.
fn time(ms: u64) -> String {
    let at = std::time::UNIX_EPOCH + std::time::Duration::from_millis(ms);
    humantime::format_rfc3339_seconds(at).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_back() {
        let id = *b"0123456789abcdef";
        assert_eq!(parse_id(&hex(&id)), Ok(id));
        for wrong in [
            "",
            "12",
            "zz",
            &"f".repeat(33),
            "+0000000000000000000000000000001",
        ] {
            assert!(wrong.len() == 32 || parse_id(wrong).is_err(), "{wrong}");
        }
    }
}
