//! `minuet games import`: the games of archives go into the stores of a run.

use std::{
    collections::HashSet,
    fs::File,
    io::{Cursor, Read},
    path::PathBuf,
};

use anyhow::Context as _;
use bytes::Bytes;
use futures::future::try_join_all;
use proto::v1::{AppendAck, Game, KnownGamesRequest};
use replay_store::{
    exchange::archive::Reader,
    vault::{ObjectPath, Vault},
};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::{
    hex,
    source::{Source, Where, said},
};

/// Games on their way.
const WINDOW: usize = 64;
/// Refusals that are told one by one.
const TOLD: usize = 10;

/// Arguments of `minuet games import`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  minuet games import games.minuet --run runs/paco-sako
  minuet games import s3://bucket/games --run runs/paco-sako
Games that the stores have already, or had, are passed over.")]
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
    let archives = archives(&arguments.from).await?;
    let mut source = arguments.place.open().await?;
    let mut all = Told::default();
    let mut damaged = None;
    for archive in archives {
        let name = archive.name();
        let Outcome { told, read } = take(&mut source, archive).await?;
        all.add(told);
        // What came before the damage is taken; the archives after it are not looked at.
        if let Err(error) = read {
            damaged = Some(error.context(name));
            break;
        }
    }
    source.close().await?;
    let Told {
        stored,
        duplicates,
        refused,
    } = all;
    if arguments.json {
        println!(
            "{}",
            json!({ "stored": stored, "duplicates": duplicates, "refused": refused.len() })
        );
    } else {
        println!(
            "{stored} games stored, {duplicates} were there already, {} refused",
            refused.len()
        );
    }
    for ack in refused.iter().take(TOLD) {
        eprintln!("game {} is refused: {}", hex(&ack.id), ack.refused);
    }
    if let Some(error) = damaged {
        return Err(error);
    }
    anyhow::ensure!(refused.is_empty(), "{} games were refused", refused.len());
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

/// What became of an archive.
struct Outcome {
    told: Told,
    /// Whether all of it could be read.
    read: anyhow::Result<()>,
}

/// Sends an archive's games to the stores.
async fn take(source: &mut Source, archive: Archive) -> anyhow::Result<Outcome> {
    let name = archive.name();
    let reader = archive
        .open()
        .await
        .map_err(|error| error.context(name.clone()))?;
    let (games, read_games) = mpsc::channel(WINDOW);
    let reading = tokio::task::spawn_blocking(move || {
        for game in Reader::new(reader)? {
            // The stores have gone: that is told below.
            if games.blocking_send(game?).is_err() {
                break;
            }
        }
        anyhow::Ok(())
    });
    let told = put(source, read_games).await?;
    Ok(Outcome {
        told,
        read: reading.await?,
    })
}

/// What the stores said to games.
#[derive(Default)]
struct Told {
    stored: u64,
    duplicates: u64,
    refused: Vec<AppendAck>,
}

impl Told {
    fn add(&mut self, more: Self) {
        self.stored += more.stored;
        self.duplicates += more.duplicates;
        self.refused.extend(more.refused);
    }
}

/// Sends games to the stores that they belong to; what any store has already is a duplicate.
async fn put(source: &mut Source, games: mpsc::Receiver<Game>) -> anyhow::Result<Told> {
    let (mut lanes, mut streams) = (Vec::new(), Vec::new());
    for client in &source.clients {
        let (lane, outbound) = mpsc::channel(WINDOW);
        lanes.push(lane);
        let mut client = client.clone();
        streams.push(async move {
            let mut acks = client
                .append(ReceiverStream::new(outbound))
                .await
                .map_err(said)?
                .into_inner();
            let mut told = Told::default();
            while let Some(ack) = acks.message().await.map_err(said)? {
                if !ack.refused.is_empty() {
                    told.refused.push(ack);
                } else if ack.duplicate {
                    told.duplicates += 1;
                } else {
                    told.stored += 1;
                }
            }
            anyhow::Ok(told)
        });
    }
    let dividing = divide(source, games, lanes);
    let (told, duplicates) = tokio::try_join!(try_join_all(streams), dividing)?;
    let mut all = Told {
        duplicates,
        ..Told::default()
    };
    told.into_iter().for_each(|told| all.add(told));
    Ok(all)
}

/// Gives each game to its lane, but for those that some store has: their number is the answer.
async fn divide(
    source: &mut Source,
    mut games: mpsc::Receiver<Game>,
    lanes: Vec<mpsc::Sender<Game>>,
) -> anyhow::Result<u64> {
    let mut duplicates = 0;
    let mut group = Vec::new();
    while games.recv_many(&mut group, WINDOW).await > 0 {
        let mut known: HashSet<Bytes> = HashSet::new();
        // One store knows by itself.
        if source.clients.len() > 1 {
            let ids: Vec<Bytes> = group.iter().map(|game| game.id.clone()).collect();
            for client in &mut source.clients {
                let request = KnownGamesRequest { ids: ids.clone() };
                known.extend(client.known_games(request).await.map_err(said)?.into_inner().ids);
            }
        }
        for game in group.drain(..) {
            if known.contains(&game.id) {
                duplicates += 1;
            } else if lanes[source.shards.of(&game.id)].send(game).await.is_err() {
                // Its store has gone, and says so itself.
                return Ok(duplicates);
            }
        }
    }
    Ok(duplicates)
}
