//! `minuet games delete`: deletes games by id, model, build, actor or time.

use proto::v1::DeleteGamesRequest;
use serde_json::json;

use super::{
    selection::Selection,
    source::{Access, StoreLocation, status_error},
};

/// Arguments of `minuet games delete`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  minuet games delete --model 000000001200-3fa94c21 --dry-run --run runs/paco-sako
  minuet games delete --actor actor-7f00 --since 2h --run runs/paco-sako
Deleted games are never sampled again, and are not stored again if an actor sends them. Their disk space becomes free when the
volume that holds them is retired.")]
pub struct Arguments {
    #[command(flatten)]
    selection: Selection,
    /// Print the number of games without deleting them.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    place: StoreLocation,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Deletes games.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    anyhow::ensure!(
        !arguments.selection.is_empty(),
        "name the games to delete with --id, --model, --build, --actor, --since, --before, --ending or --length"
    );
    let access = if arguments.dry_run {
        Access::Read
    } else {
        Access::Change
    };
    let mut source = arguments.place.open(access).await?;
    let request = DeleteGamesRequest {
        filter: Some(arguments.selection.filter()),
        dry_run: arguments.dry_run,
    };
    let deleted = source
        .client
        .delete_games(request)
        .await
        .map_err(status_error)?
        .into_inner();
    let closed = source.close().await;
    if arguments.json {
        println!(
            "{}",
            json!({ "games": deleted.games, "positions": deleted.positions, "dry_run": arguments.dry_run })
        );
    } else {
        let would = if arguments.dry_run { "would be " } else { "" };
        println!(
            "{} games with {} trainable positions {would}deleted",
            deleted.games, deleted.positions
        );
    }
    closed
}
