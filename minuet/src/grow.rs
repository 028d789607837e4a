//! `minuet grow`: begins a run with the games of another run and, if both networks have the same size, with its weights.
//!
//! Every step can be repeated: `run.toml` is written first and kept, and games that the store has are skipped. So the same
//! command continues after it was stopped at any moment, and the other run is only read.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use checkpoints::{LATEST, Repository};
use config::{Override, RunConfig};
use launcher::{
    BadUsage,
    run::folder::{CONFIG, RunFolder},
};
use network::{ModelFile, ModelName};
use proto::v1::GameFilter;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::records::{
    send::{self, AppendCounts, Counts, WINDOW},
    source::{Access, StoreLocation},
};

/// File of the weights that the new run begins with, in its folder.
const WEIGHTS: &str = "start.onnx";

/// Arguments of `minuet grow`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  minuet grow --from runs/chess --run runs/larger --set model.blocks=6 --set model.filters=96
      makes runs/larger with the settings and the games of runs/chess, which may be at work
  minuet up --run runs/larger
      trains it, on these games first
  minuet arena runs/larger runs/chess
      compares both

The same command continues after it was stopped. It changes nothing in the run that the games come from.")]
pub struct Arguments {
    /// Folder of the run from which settings, games and weights are taken.
    #[arg(long, value_name = "DIR")]
    from: PathBuf,
    /// Folder of the new run.
    #[arg(long, value_name = "DIR")]
    run: PathBuf,
    /// A setting in which the new run differs, e.g. --set model.blocks=6. May be given several times; the last one holds.
    #[arg(long = "set", value_name = "SECTION.KEY=VALUE")]
    overrides: Vec<Override>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Makes the new run.
///
/// # Errors
/// [`BadUsage`] or [`config::ConfigError`] for arguments that cannot be used; else what stopped the command.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let (run, overrides) = (&arguments.run, &arguments.overrides);
    let from = &(arguments.from.canonicalize())
        .map_err(|error| BadUsage(format!("--from {}: {error}", arguments.from.display())))?;
    let old = config::load(&from.join(CONFIG))?;
    let mut new = settings(&old, overrides)?;
    let other_game = "--set: the game and its rules are those of the other run";
    ensure!(new.game == old.game, BadUsage(other_game.into()));
    let runtime = tokio::runtime::Runtime::new()?;
    let label =
        |store: &str| runtime.block_on(async { anyhow::Ok(Repository::open(store)?.label(LATEST).await?) });
    let is_named = overrides
        .iter()
        .any(|single| single.key() == "learner.start_from");
    let has_size = new.model == old.model && !is_named;
    let weights = match has_size && label(&old.checkpoints.store)?.is_some() {
        true => weights(from)?,
        false => None,
    };
    if weights.is_some() {
        let file = std::path::absolute(run)?.join(WEIGHTS);
        new.learner.start_from = file.to_string_lossy().into_owned();
    }
    let folder = RunFolder::open_with(run, Some(&old.game.name), || Ok(new))?;
    let config = folder.load(&[])?;
    let name = run.display();
    let other = format!("{name} has other settings than --set gives; leave out --set");
    ensure!(folder.load(overrides)? == config, BadUsage(other));
    let begun = format!("the run in {name} has checkpoints; name a new folder with --run");
    ensure!(label(&config.checkpoints.store)?.is_none(), BadUsage(begun));
    if let Some(file) = &weights {
        durable::write(&folder.path().join(WEIGHTS), &file.bytes).context("cannot keep the weights")?;
    }
    let counts = runtime.block_on(copy_games(from, folder.path()))?;
    if arguments.json {
        let result = json!({
            "run": run.display().to_string(),
            "stored": counts.stored,
            "duplicates": counts.duplicates,
            "start_from": config.learner.start_from,
        });
        println!("{result}");
    } else {
        println!("{}; `minuet up --run {name}` trains", counts.summary());
    }
    Ok(())
}

/// Returns the settings of the new run: those of the other one with `overrides`, and folders of its own.
fn settings(old: &RunConfig, overrides: &[Override]) -> Result<RunConfig, config::ConfigError> {
    let mut base = old.clone();
    let usual = RunConfig::default();
    base.replay.folder = usual.replay.folder;
    base.actor.spool = usual.actor.spool;
    base.learner.folder = usual.learner.folder;
    base.learner.start_from = usual.learner.start_from;
    base.rating.folder = usual.rating.folder;
    base.checkpoints.store = usual.checkpoints.store;
    config::parse_with(&launcher::template(&base), overrides)
}

/// Reads the newest network of a run. `None`: training cannot begin with it, because it is a fish-eye network.
fn weights(from: &Path) -> anyhow::Result<Option<ModelFile>> {
    let file = ModelFile::find(&ModelName::Folder {
        path: from.into(),
        version: None,
    })?;
    Ok(onnx::tower_of(&file.bytes).is_ok().then_some(file))
}

/// Copies the games of the run in `from` to the run in `to`.
async fn copy_games(from: &Path, to: &Path) -> anyhow::Result<Counts> {
    let mut old = StoreLocation::of_run(from).open(Access::Read).await?;
    let mut new = StoreLocation::of_run(to).open(Access::Add).await?;
    let (counts, shutdown) = (AppendCounts::default(), CancellationToken::new());
    let mut stored = old.export(GameFilter::default()).await?;
    let (games, read) = mpsc::channel(WINDOW);
    let reading = async {
        let games = games;
        while let Some((_, game)) = stored.next().await? {
            if games.send(game).await.is_err() {
                // Sending has ended, and tells the reason.
                break;
            }
        }
        anyhow::Ok(())
    };
    let copying = async {
        let _awaited = send::await_positions(&new.client).await;
        let (read, sent) = tokio::join!(reading, send::put(&mut new, read, &counts, &shutdown));
        sent?;
        read
    };
    let ended = send::watched(copying, &counts, &shutdown).await;
    new.close().await?;
    old.add_unreadable(stored.unreadable);
    drop(stored);
    let closed = old.close().await;
    ended?;
    closed.context("the copy is not complete")?;
    Ok(counts.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grown_run_has_folders_of_its_own_and_the_given_settings() {
        let mut old = launcher::new_run(Some("chess"), &[]).unwrap();
        old.checkpoints.store = "s3://bucket/chess".into();
        old.learner.start_from = "chess".into();
        old.search.visits = 77;
        let larger = "model.blocks=9".parse().unwrap();
        let new = settings(&old, &[larger]).unwrap();
        assert_eq!((new.model.blocks, new.search.visits), (9, 77));
        assert_eq!(new.checkpoints.store, RunConfig::default().checkpoints.store);
        assert_eq!((new.learner.start_from.as_str(), &new.game), ("", &old.game));
        assert!(settings(&old, &["model.blocks=0".parse().unwrap()]).is_err());
    }
}
