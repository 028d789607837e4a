//! `minuet games list`.

use proto::v1::{GameResult, GameSummary};
use serde_json::json;

use super::{choice::Choice, hex, source::Where, time};

/// Arguments of `minuet games list`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  minuet games list --run runs/paco-sako --limit 5")]
pub struct Arguments {
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    place: Where,
    /// Games to list at most.
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: u64,
    /// Print one JSON object for each game.
    #[arg(long)]
    json: bool,
}

/// Lists the newest games.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let mut source = arguments.place.open().await?;
    let games = source
        .newest(arguments.limit, Some(arguments.choice.filter()))
        .await?;
    for game in &games {
        if arguments.json {
            println!("{}", as_json(game));
        } else {
            let result = result(game.result);
            let version = game.model_versions.last().map_or("-", String::as_str);
            println!(
                "{:>9}  {}  {}  {:>4} positions  {result:<6} {:<12} {version}  {}",
                game.sequence,
                hex(&game.id),
                time(game.finished_at_ms),
                game.positions,
                game.ending,
                game.actor,
            );
        }
    }
    source.close().await
}

fn as_json(game: &GameSummary) -> serde_json::Value {
    json!({
        "sequence": game.sequence,
        "id": hex(&game.id),
        "game": game.game,
        "positions": game.positions,
        "result": result(game.result),
        "ending": game.ending,
        "model_versions": game.model_versions,
        "finished_at_ms": game.finished_at_ms,
        "actor": game.actor,
        "build": game.build,
    })
}

/// A result in a word.
pub fn result(result: i32) -> &'static str {
    match GameResult::try_from(result) {
        Ok(GameResult::FirstWon) => "first",
        Ok(GameResult::SecondWon) => "second",
        Ok(GameResult::Draw) => "draw",
        Ok(GameResult::Scored) => "scored",
        _ => "?",
    }
}
