//! `minuet games import`: sends the games of archives to the store of a run.

use std::{
    fs::File,
    io::{Cursor, Read},
    path::PathBuf,
};

use anyhow::Context as _;
use replay_store::{
    exchange::archive::Reader,
    exchange::archive_store::{ArchiveStore, ObjectPath},
};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    send::{self, AppendCounts, WINDOW},
    source::{Access, Source, StoreLocation},
};

/// Arguments of `minuet games import`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  minuet games import games.minuet --run runs/paco-sako
  minuet games import s3://bucket/games --run runs/paco-sako
Games that the store already has, or had, are skipped. Games that the store refuses temporarily, for example because its disk is full,
are sent again until it takes them. Ctrl-C stops the import; running the same command again continues it.")]
pub struct Arguments {
    /// An archive written by `minuet games export`, or the folder or URL of a replay.archive, of which all archives are imported.
    #[arg(value_name = "FILE|FOLDER|URL")]
    from: String,
    #[command(flatten)]
    place: StoreLocation,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Imports games. Returns an error if any game was refused or the import was stopped.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let archives = archives(&arguments.from).await?;
    let mut source = arguments.place.open(Access::Add).await?;
    let append_counts = AppendCounts::default();
    let shutdown = CancellationToken::new();
    let importing = import_all(&mut source, archives, &append_counts, &shutdown);
    let ended = send::watched(importing, &append_counts, &shutdown).await;
    source.close().await?;
    let counts = append_counts.lock();
    if arguments.json {
        println!(
            "{}",
            json!({
                "stored": counts.stored,
                "duplicates": counts.duplicates,
                "refused": counts.refused,
                "stopped": shutdown.is_cancelled(),
            })
        );
    } else {
        println!("{}", counts.summary());
    }
    ended
}

/// Sends the games of all archives. Games before a damaged place are imported; archives after it are not read.
async fn import_all(
    source: &mut Source,
    archives: Vec<Archive>,
    append_counts: &AppendCounts,
    shutdown: &CancellationToken,
) -> anyhow::Result<()> {
    let _awaited = send::await_positions(&source.client).await;
    for archive in archives {
        if shutdown.is_cancelled() {
            break;
        }
        let name = archive.name();
        import_archive(source, archive, append_counts, shutdown)
            .await
            .with_context(|| name.clone())?;
    }
    Ok(())
}

/// Location of an archive.
enum Archive {
    File(PathBuf),
    Object(ArchiveStore, ObjectPath),
}

impl Archive {
    fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Object(archive_store, path) => format!("{path} in {}", archive_store.location()),
        }
    }

    async fn open(self) -> anyhow::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Self::File(path) => Box::new(File::open(path)?),
            Self::Object(archive_store, path) => Box::new(Cursor::new(archive_store.get(&path).await?)),
        })
    }
}

/// Returns the archives at `from`: one file, or all archives of a folder or URL.
async fn archives(from: &str) -> anyhow::Result<Vec<Archive>> {
    let path = PathBuf::from(from);
    if !from.contains("://") && !path.is_dir() {
        return Ok(vec![Archive::File(path)]);
    }
    let archive_store = ArchiveStore::open(from)?;
    let found = archive_store.list().await.with_context(|| from.to_owned())?;
    anyhow::ensure!(!found.is_empty(), "{from} contains no archives of games");
    let archives = found
        .into_iter()
        .map(|path| Archive::Object(archive_store.clone(), path));
    Ok(archives.collect())
}

/// Sends an archive's games to the store.
async fn import_archive(
    source: &mut Source,
    archive: Archive,
    append_counts: &AppendCounts,
    shutdown: &CancellationToken,
) -> anyhow::Result<()> {
    let reader = archive.open().await?;
    let (games, read_games) = mpsc::channel(WINDOW);
    let reading = tokio::task::spawn_blocking(move || {
        for game in Reader::new(reader)? {
            // Sending has ended. The caller reports the reason.
            if games.blocking_send(game?).is_err() {
                break;
            }
        }
        anyhow::Ok(())
    });
    send::put(source, read_games, append_counts, shutdown).await?;
    reading.await?
}
