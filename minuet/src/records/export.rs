//! `minuet games export`: writes games to an archive file, to NumPy arrays, or to an SGF file.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

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
use crate::draft::Draft;

/// Arguments of `minuet games export`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  minuet games export games.minuet --run runs/paco-sako --since 24h
  minuet games export --numpy experience/ --run runs/paco-sako
  minuet games export --sgf games.sgf --run runs/go-9 --length 40..
`minuet games import` reads an archive into any store. games.json describes the folder of arrays.
Exits with 3 if acknowledged games of the store cannot be read; the others are exported.")]
pub struct Arguments {
    /// The archive to write.
    #[arg(value_name = "FILE", required_unless_present_any = ["numpy", "sgf"])]
    file: Option<PathBuf>,
    /// Write arrays for NumPy into this folder instead.
    #[arg(long, value_name = "DIR", conflicts_with = "file")]
    numpy: Option<PathBuf>,
    /// Write the games to this SGF file instead, one after the other; only for Go.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "numpy"])]
    sgf: Option<PathBuf>,
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
    let to = arguments
        .file
        .as_ref()
        .or(arguments.numpy.as_ref())
        .or(arguments.sgf.as_ref());
    let to = to.context("name a file, a folder with --numpy, or a file with --sgf")?;
    let to_text = to.display().to_string();
    let written = match first {
        None => None,
        Some(first) => {
            let written = if arguments.numpy.is_some() {
                arrays(to, first, &mut games).await
            } else if arguments.sgf.is_some() {
                sgf(to, first, &mut games).await
            } else {
                archive(to, first, &mut games).await
            };
            Some(written.with_context(|| format!("cannot write {to_text}"))?)
        }
    };
    source.add_unreadable(games.unreadable);
    drop(games);
    let closed = source.close().await;
    let Some((games, positions)) = written else {
        closed.context("no game was exported")?;
        anyhow::bail!("no stored game matches the options");
    };
    if arguments.json {
        println!(
            "{}",
            json!({ "games": games, "positions": positions, "to": to_text })
        );
    } else {
        println!(
            "{games} games, {positions} positions in {}",
            service::plain(&to_text)
        );
    }
    closed.context("the export is not complete")
}

/// Writes games as SGF. Returns the numbers of games and positions.
async fn sgf(file: &Path, first: (u64, v1::Game), games: &mut ExportedGames) -> anyhow::Result<(u64, u64)> {
    let mut out = Draft::of(file)?;
    let (mut count, mut positions) = (0, 0);
    let mut next = Some(first);
    while let Some((sequence, game)) = next {
        let rules = serde_json::from_str(&game.rules_json)?;
        let variant = registry::find(&game.game)?.variant(&rules, Some(game.options))?;
        let start = variant.start((!game.start.is_empty()).then_some(game.start.as_str()))?;
        let model = game.model_versions.last().map_or("", String::as_str);
        let text = start.write_sgf(&game.actions, [model; 2]);
        let text = text.with_context(|| format!("{} has no SGF files", game.game))?;
        out.write_all(text.with_context(|| format!("game {sequence}"))?.as_bytes())?;
        count += 1;
        positions += game.actions.len() as u64;
        next = games.next().await?;
    }
    out.complete()?;
    Ok((count, positions))
}

/// Writes an archive. Returns the numbers of games and positions. The archive is durable and complete when its name appears.
async fn archive(
    file: &Path,
    first: (u64, v1::Game),
    games: &mut ExportedGames,
) -> anyhow::Result<(u64, u64)> {
    let out = Draft::of(file)?;
    let header = Header {
        game: first.1.game.clone(),
        options: first.1.options,
        written_by: format!("minuet {}", env!("CARGO_PKG_VERSION")),
    };
    let mut writer = Writer::new(out, &header)?;
    let mut positions = 0;
    let mut next = Some(first);
    while let Some((_, game)) = next {
        positions += game.actions.len() as u64;
        writer.add(&game)?;
        next = games.next().await?;
    }
    let (out, games) = writer.finish()?;
    out.complete()?;
    Ok((games, positions))
}

/// Writes arrays for NumPy into a folder that is new or empty, and leaves it so if that fails. Returns the numbers of games and positions.
async fn arrays(
    folder: &Path,
    first: (u64, v1::Game),
    games: &mut ExportedGames,
) -> anyhow::Result<(u64, u64)> {
    let is_new = !folder.exists();
    let writer = numpy::Writer::create(folder)?;
    let written = fill(writer, first, games).await;
    if written.is_err() {
        // The error of the export is the one to tell.
        let _ = match is_new {
            true => fs::remove_dir_all(folder),
            false => fs::read_dir(folder)
                .and_then(|mut all| all.try_for_each(|file| fs::remove_file(file?.path()))),
        };
    }
    written
}

async fn fill(
    mut writer: numpy::Writer,
    first: (u64, v1::Game),
    games: &mut ExportedGames,
) -> anyhow::Result<(u64, u64)> {
    let (name, options) = (first.1.game.clone(), first.1.options);
    let rules = serde_json::from_str(&first.1.rules_json)?;
    let layout = registry::find(&name)?.variant(&rules, Some(options))?.layout();
    let layout = serde_json::to_value(layout)?;
    let mut next = Some(first);
    while let Some((sequence, game)) = next {
        writer.add(sequence, &game)?;
        next = games.next().await?;
    }
    let (games, positions) = writer.finish(&name, options, &layout)?;
    Ok((games as u64, positions))
}
