//! `minuet games export`: writes games to an archive file or to NumPy arrays.

use std::{fs::File, io::BufWriter, path::PathBuf};

use anyhow::Context as _;
use games::registry;
use proto::v1;
use replay_store::exchange::{
    archive::{Header, Writer},
    numpy,
};
use serde_json::json;

use super::{
    selection::Selection,
    source::{Access, ExportedGames, StoreLocation},
};

/// Arguments of `minuet games export`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  minuet games export games.minuet --run runs/paco-sako --since 24h
  minuet games export --numpy experience/ --run runs/paco-sako
`minuet games import` reads an archive into any store. games.json describes the folder of arrays.
Exits with 3 if acknowledged games of the store cannot be read; the others are exported.")]
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
    let mut source = arguments.place.open(Access::Read).await?;
    let mut games = source.export(arguments.selection.filter()).await?;
    let first = games.next().await?;
    let written = match (first, &arguments.file, &arguments.numpy) {
        (None, ..) => None,
        (Some(first), _, Some(folder)) => Some((arrays(folder.clone(), first, &mut games).await?, folder)),
        (Some(first), Some(file), None) => Some((archive(file.clone(), first, &mut games).await?, file)),
        (Some(_), None, None) => anyhow::bail!("name a file, or a folder with --numpy"),
    };
    source.add_unreadable(games.unreadable);
    drop(games);
    let closed = source.close().await;
    let Some(((games, positions), to)) = written else {
        closed.context("no game was exported")?;
        anyhow::bail!("no stored game matches the options");
    };
    if arguments.json {
        println!("{}", json!({ "games": games, "positions": positions, "to": to }));
    } else {
        let to = service::plain(&to.display().to_string());
        println!("{games} games, {positions} positions in {to}");
    }
    closed.context("the export is not complete")
}

/// Writes an archive. Returns the numbers of games and positions. The archive is durable and complete when its name appears.
async fn archive(
    file: PathBuf,
    first: (u64, v1::Game),
    games: &mut ExportedGames,
) -> anyhow::Result<(u64, u64)> {
    let partial = file.with_extension("partial");
    let out = File::create(&partial).with_context(|| partial.display().to_string())?;
    let header = Header {
        game: first.1.game.clone(),
        options: first.1.options,
        written_by: format!("minuet {}", env!("CARGO_PKG_VERSION")),
    };
    let mut writer = Writer::new(BufWriter::new(out), &header)?;
    let mut positions = 0;
    let mut next = Some(first);
    while let Some((_, game)) = next {
        positions += game.actions.len() as u64;
        writer.add(&game)?;
        next = games.next().await?;
    }
    let (out, games) = writer.finish()?;
    out.into_inner().map_err(|error| error.into_error())?.sync_all()?;
    durable::rename(&partial, &file).with_context(|| file.display().to_string())?;
    Ok((games, positions))
}

/// Writes arrays for NumPy. Returns the numbers of games and positions.
async fn arrays(
    folder: PathBuf,
    first: (u64, v1::Game),
    games: &mut ExportedGames,
) -> anyhow::Result<(u64, u64)> {
    let mut writer = numpy::Writer::create(&folder).with_context(|| folder.display().to_string())?;
    let (name, options) = (first.1.game.clone(), first.1.options);
    let layout = serde_json::to_value(registry::find(&name)?.layout(options)?)?;
    let mut next = Some(first);
    while let Some((sequence, game)) = next {
        writer.add(sequence, &game)?;
        next = games.next().await?;
    }
    let (games, positions) = writer.finish(&name, options, &layout)?;
    Ok((games as u64, positions))
}
