//! `minuet games import`: an archive's games go into a store.

use std::{fs::File, path::PathBuf};

use anyhow::Context as _;
use proto::v1::AppendAck;
use replay_store::exchange::archive::Reader;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::{
    hex,
    source::{Where, said},
};

/// Games on their way.
const WINDOW: usize = 64;
/// Refusals that are told one by one.
const TOLD: usize = 10;

/// Arguments of `minuet games import`.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  minuet games import games.minuet --run runs/paco-sako
Games that the store has already, or had, are passed over.")]
pub struct Arguments {
    /// The archive, as `minuet games export` writes it.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    place: Where,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Imports games; an error where not all of them could be taken.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let file = File::open(&arguments.file).with_context(|| arguments.file.display().to_string())?;
    let reader = Reader::new(file).with_context(|| arguments.file.display().to_string())?;
    let mut source = arguments.place.open().await?;
    let (games, outbound) = mpsc::channel(WINDOW);
    let reading = tokio::task::spawn_blocking(move || {
        for game in reader {
            // The store has gone: that is told below.
            if games.blocking_send(game?).is_err() {
                break;
            }
        }
        anyhow::Ok(())
    });
    let outbound = ReceiverStream::new(outbound);
    let mut acks = source.client.append(outbound).await.map_err(said)?.into_inner();
    let (mut stored, mut duplicates) = (0u64, 0u64);
    let mut refused: Vec<AppendAck> = Vec::new();
    while let Some(ack) = acks.message().await.map_err(said)? {
        if !ack.refused.is_empty() {
            refused.push(ack);
        } else if ack.duplicate {
            duplicates += 1;
        } else {
            stored += 1;
        }
    }
    let read = reading.await?;
    source.close().await?;
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
    read.with_context(|| arguments.file.display().to_string())?;
    anyhow::ensure!(refused.is_empty(), "{} games were refused", refused.len());
    Ok(())
}
