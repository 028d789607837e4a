//! `minuet games list`: lists stored games in a chosen order, page by page.

use anyhow::Context as _;
use launcher::moment::rfc3339;
use proto::{
    ids::{hex, parse_hex},
    v1::{GameFilter, GameResult, GameSort, GameSummary},
};
use replay_store::client::Order;
use serde_json::json;

use super::{
    selection::Selection,
    source::{Access, StoreLocation},
};

/// Arguments of `minuet games list`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  minuet games list --run runs/paco-sako --limit 5
  minuet games list --sort length --ending repetition --length 100..300
  minuet games list --sort surprise --limit 50 --json
If more games follow, the last line names the cursor of the next page (with --json: `next_cursor` of the last game).
Exits with 3 if acknowledged games of the store cannot be read.")]
pub struct Arguments {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    place: StoreLocation,
    /// Order: the newest, the longest, or the most surprising games first (mean policy surprise).
    #[arg(long, value_name = "ORDER", default_value = "time")]
    sort: Sort,
    /// Reverse the order.
    #[arg(long)]
    ascending: bool,
    /// Most games to list.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// Continue a list with the same options: the cursor that it ended with.
    #[arg(long, value_name = "CURSOR", value_parser = parse_cursor)]
    cursor: Option<Cursor>,
    /// Print one JSON object for each game.
    #[arg(long)]
    json: bool,
}

/// Orders of a list.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Sort {
    /// By the time at which the game ended.
    Time,
    /// By the number of positions.
    Length,
    /// By the mean policy surprise of the positions.
    Surprise,
}

/// Bytes of a cursor.
#[derive(Clone, Debug)]
struct Cursor(Vec<u8>);

/// Reads a cursor from hexadecimal digits.
fn parse_cursor(text: &str) -> Result<Cursor, String> {
    parse_hex(text)
        .filter(|bytes| !bytes.is_empty())
        .map(Cursor)
        .ok_or_else(|| format!("`{text}` is not a cursor; copy the cursor that `minuet games list` printed"))
}

/// Lists games.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let mut source = arguments.place.open(Access::Read).await?;
    let order = Order {
        sort: match arguments.sort {
            Sort::Time => GameSort::Time,
            Sort::Length => GameSort::Length,
            Sort::Surprise => GameSort::Surprise,
        },
        descending: !arguments.ascending,
    };
    let filter: GameFilter = arguments.selection.filter();
    let cursor = arguments.cursor.map(|Cursor(bytes)| bytes).unwrap_or_default();
    let listed = source.list(order, filter, arguments.limit, cursor).await?;
    let unreadable = source.unreadable_games().await?;
    source.add_unreadable(unreadable.max(listed.unreadable));
    let closed = source.close().await;
    let next = hex(&listed.next_cursor);
    for (number, game) in listed.games.iter().enumerate() {
        if arguments.json {
            let mut line = as_json(game);
            if number + 1 == listed.games.len() && !next.is_empty() {
                line["next_cursor"] = next.as_str().into();
            }
            println!("{}", service::plain_json(&line));
        } else {
            print(game);
        }
    }
    if !arguments.json && !next.is_empty() {
        println!("next page: --cursor {next}");
    }
    closed.context("the list is not complete")
}

fn print(game: &GameSummary) {
    let version = game.model_versions.last().map_or("-", String::as_str);
    // An archive of a stranger may hold any text as a name.
    let line = format!(
        "{:>9}  {}  {}  {:>4} positions  {:<6} {:<12} {version}  {}",
        game.sequence,
        hex(&game.id),
        rfc3339(game.finished_at_ms),
        game.positions,
        result(game.result),
        game.ending,
        game.actor,
    );
    println!("{}", service::plain(&line));
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
        "surprise": game.surprise,
    })
}

/// Returns a one-word name of a result.
pub fn result(result: i32) -> &'static str {
    match GameResult::try_from(result) {
        Ok(GameResult::FirstWon) => "first",
        Ok(GameResult::SecondWon) => "second",
        Ok(GameResult::Draw) => "draw",
        Ok(GameResult::Scored) => "scored",
        _ => "?",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_from_hexadecimal_digits() {
        assert_eq!(parse_cursor("01ff00").unwrap().0, [1, 255, 0]);
        for wrong in ["", "1", "0g", "é0", "012"] {
            assert!(parse_cursor(wrong).is_err(), "{wrong}");
        }
    }
}
