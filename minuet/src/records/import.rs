//! `minuet games import`: the games of archives go into the stores of a run.

use std::{
    fs::File,
    io::{Cursor, Read},
    path::PathBuf,
    pin::pin,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, bail};
use replay_store::{
    exchange::archive::Reader,
    exchange::vault::{ObjectPath, Vault},
};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    hex,
    send::{self, Tally, WINDOW},
    source::{Source, Where},
};
use launcher::signals::Signals;

/// How often it is said how far the import is.
const SAY: Duration = Duration::from_secs(5);

/// Arguments of `minuet games import`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  minuet games import games.minuet --run runs/paco-sako
  minuet games import s3://bucket/games --run runs/paco-sako
Games that the stores have already, or had, are passed over. What a store cannot take for now (its disk is full, say) is sent again
until it can; Ctrl-C stops, and the same command goes on with what is missing.")]
pub struct Arguments {
    /// The archive, as `minuet games export` writes it; or the folder or URL of a replay.archive, of which all are taken.
    #[arg(value_name = "FILE|FOLDER|URL")]
    from: String,
    #[command(flatten)]
    place: Where,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Imports games; an error where not all of them could be taken.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let mut signals = Signals::new()?;
    let archives = archives(&arguments.from).await?;
    let mut source = arguments.place.open().await?;
    let tally = Arc::new(Tally::default());
    let stop = CancellationToken::new();
    let mut stopped_by = None;
    let ended = {
        let mut taking = pin!(take_all(&mut source, archives, &tally, &stop));
        let mut says = tokio::time::interval_at(tokio::time::Instant::now() + SAY, SAY);
        loop {
            tokio::select! {
                ended = &mut taking => break ended,
                _ = says.tick() => eprintln!("{}", tally.told()),
                name = signals.next() => {
                    if stopped_by.replace(name).is_some() {
                        bail!("{name} again: stopped at once");
                    }
                    eprintln!("{name}: stopping when the games that are on their way are stored (once more stops at once)");
                    stop.cancel();
                }
            }
        }
    };
    source.close().await?;
    let counts = tally.counts();
    if arguments.json {
        println!(
            "{}",
            json!({
                "stored": counts.stored,
                "duplicates": counts.duplicates,
                "refused": counts.refused,
                "stopped": stopped_by.is_some(),
            })
        );
    } else {
        println!(
            "{} games stored, {} were there already, {} refused",
            counts.stored, counts.duplicates, counts.refused
        );
    }
    for ack in &counts.refusals {
        eprintln!("game {} is refused: {}", hex(&ack.id), ack.refused);
    }
    ended?;
    if let Some(name) = stopped_by {
        bail!("stopped by {name}: the same command goes on with the games that are missing");
    }
    anyhow::ensure!(counts.refused == 0, "{} games were refused", counts.refused);
    Ok(())
}

/// Sends the games of all archives. What comes before a damage is taken; archives after it are not looked at.
async fn take_all(
    source: &mut Source,
    archives: Vec<Archive>,
    tally: &Arc<Tally>,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let _awaited = send::await_positions(&source.client).await;
    for archive in archives {
        if stop.is_cancelled() {
            break;
        }
        let name = archive.name();
        take(source, archive, tally, stop)
            .await
            .with_context(|| name.clone())?;
    }
    Ok(())
}

/// Where the games of one archive lie.
enum Archive {
    File(PathBuf),
    Object(Vault, ObjectPath),
}

impl Archive {
    fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Object(vault, path) => format!("{path} of {}", vault.location()),
        }
    }

    async fn open(self) -> anyhow::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Self::File(path) => Box::new(File::open(path)?),
            Self::Object(vault, path) => Box::new(Cursor::new(vault.get(&path).await?)),
        })
    }
}

/// The archives that are meant: a file, or all of a folder or URL.
async fn archives(from: &str) -> anyhow::Result<Vec<Archive>> {
    let path = PathBuf::from(from);
    if !from.contains("://") && !path.is_dir() {
        return Ok(vec![Archive::File(path)]);
    }
    let vault = Vault::open(from)?;
    let found = vault.list().await.with_context(|| from.to_owned())?;
    anyhow::ensure!(!found.is_empty(), "{from} holds no archives of games");
    let archives = found.into_iter().map(|path| Archive::Object(vault.clone(), path));
    Ok(archives.collect())
}

/// Sends an archive's games to the store.
async fn take(
    source: &mut Source,
    archive: Archive,
    tally: &Arc<Tally>,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let reader = archive.open().await?;
    let (games, read_games) = mpsc::channel(WINDOW);
    let reading = tokio::task::spawn_blocking(move || {
        for game in Reader::new(reader)? {
            // The store is gone, or the import was stopped. The caller reports either.
            if games.blocking_send(game?).is_err() {
                break;
            }
        }
        anyhow::Ok(())
    });
    send::put(source, read_games, tally, stop).await?;
    reading.await?
}
