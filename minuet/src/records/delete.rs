//! `minuet games delete`: games that are not wanted any more, by where they came from.

use proto::v1::DeleteGamesRequest;
use serde_json::json;

use super::{
    choice::Choice,
    source::{Where, said},
};

/// Arguments of `minuet games delete`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  minuet games delete --model 000000001200-3fa94c21 --dry-run --run runs/paco-sako
  minuet games delete --actor actor-7f00 --since 2h --run runs/paco-sako
Deleted games are never sampled again, and not taken again when they are sent once more. Their disk space is free when the
games around them are retired.")]
pub struct Arguments {
    #[command(flatten)]
    choice: Choice,
    /// Only say how many games it would be.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    place: Where,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Deletes games.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    anyhow::ensure!(
        !arguments.choice.is_empty(),
        "say which games are to go: --id, --model, --build, --actor, --since or --before"
    );
    let mut source = arguments.place.open().await?;
    let request = DeleteGamesRequest {
        filter: Some(arguments.choice.filter()),
        dry_run: arguments.dry_run,
    };
    let deleted = source
        .client
        .delete_games(request)
        .await
        .map_err(said)?
        .into_inner();
    source.close().await?;
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
    Ok(())
}
