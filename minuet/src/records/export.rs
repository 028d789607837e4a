//! `minuet games export`: writes games to an archive file or to NumPy arrays.

use std::{fs::File, io::BufWriter, path::PathBuf};

use anyhow::Context as _;
use games::{Game, registry};
use proto::v1::StoredGame;
use replay_store::exchange::{
    archive::{Header, Writer},
    numpy,
};
use serde_json::json;

use tonic::Streaming;

use super::{
    selection::Selection,
    source::{StoreLocation, status_error},
};

/// Arguments of `minuet games export`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  minuet games export games.minuet --run runs/paco-sako --since 24h
  minuet games export --numpy experience/ --run runs/paco-sako
`minuet games import` reads an archive into any store. games.json describes the folder of arrays.")]
pub struct Arguments {
    /// The archive to write.
    #[arg(value_name = "FILE", required_unless_present = "numpy")]
    file: Option<PathBuf>,
    /// Write arrays for NumPy into this folder instead.
    #[arg(long, value_name = "DIR", conflicts_with = "file")]
    numpy: Option<PathBuf>,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    place: StoreLocation,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Exports games.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let mut source = arguments.place.open().await?;
    let mut stream = source.export(arguments.selection.filter()).await?;
    let first = stream.message().await.map_err(status_error)?;
    let Some(first) = first else {
        source.close().await?;
        anyhow::bail!("no stored game matches the options");
    };
    let (games, positions, to) = match (&arguments.file, &arguments.numpy) {
        (_, Some(folder)) => {
            let (games, positions) = arrays(folder.clone(), first, stream).await?;
            (games, positions, folder)
        }
        (Some(file), None) => {
            let (games, positions) = archive(file.clone(), first, stream).await?;
            (games, positions, file)
        }
        (None, None) => anyhow::bail!("name a file, or a folder with --numpy"),
    };
    source.close().await?;
    if arguments.json {
        println!("{}", json!({ "games": games, "positions": positions, "to": to }));
    } else {
        println!("{games} games, {positions} positions in {}", to.display());
    }
    Ok(())
}

async fn archive(
    file: PathBuf,
    first: StoredGame,
    mut stream: Streaming<StoredGame>,
) -> anyhow::Result<(u64, u64)> {
    let partial = file.with_extension("partial");
    let out = File::create(&partial).with_context(|| partial.display().to_string())?;
    let game = first.game.clone().unwrap_or_default();
    let header = Header {
        game: game.game,
        options: game.options,
        written_by: format!("minuet {}", env!("CARGO_PKG_VERSION")),
    };
    let mut writer = Writer::new(BufWriter::new(out), &header)?;
    let mut positions = 0;
    let mut next = Some(first);
    while let Some(stored) = next {
        if let Some(game) = stored.game {
            positions += game.actions.len() as u64;
            writer.add(&game)?;
        }
        next = stream.message().await.map_err(status_error)?;
    }
    let (out, games) = writer.finish()?;
    out.into_inner().map_err(|error| error.into_error())?.sync_all()?;
    // The file appears under its name only when it is complete.
    durable::rename(&partial, &file).with_context(|| file.display().to_string())?;
    Ok((games, positions))
}

async fn arrays(
    folder: PathBuf,
    first: StoredGame,
    mut stream: Streaming<StoredGame>,
) -> anyhow::Result<(u64, u64)> {
    let mut writer = numpy::Writer::create(&folder).with_context(|| folder.display().to_string())?;
    let game = first.game.clone().unwrap_or_default();
    let layout = registry::visit(&game.game, Layout(game.options))??;
    let mut next = Some(first);
    while let Some(stored) = next {
        if let Some(game) = stored.game {
            writer.add(stored.sequence, &game)?;
        }
        next = stream.message().await.map_err(status_error)?;
    }
    let (games, positions) = writer.finish(&game.game, game.options, &layout)?;
    Ok((games as u64, positions))
}

/// Returns the row layout of a game as JSON, in the form of the model's metadata.
struct Layout(u32);

impl registry::Visitor for Layout {
    type Output = anyhow::Result<serde_json::Value>;

    fn visit<G: Game>(self) -> Self::Output {
        Ok(serde_json::to_value(G::layout(G::encoding(self.0)?))?)
    }
}
