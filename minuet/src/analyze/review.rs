//! `minuet analyze --games`: reviews of whole games, as lines of JSON and as one HTML file.

use std::{fs, path::Path, sync::Arc};

use anyhow::{Context as _, ensure};
use arena::{
    Player,
    analysis::{
        Engine, Job,
        review::{Mistake, Review},
    },
};
use games::Outcome;
use serde::Serialize;
use serde_json::json;
use studio::review::{Reviewed, document};

use super::Arguments;
use crate::records::import::{PlayedGame, read_games};

/// A reviewed game as a line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    /// File of the game, and its number in the file from 1.
    file: String,
    number: u64,
    players: &'a [String; 2],
    /// `first`, `second` or `draw`; null if neither the rules nor the file give a result.
    result: Option<&'static str>,
    network: Option<&'a str>,
    visits: u32,
    /// Turns as people write them.
    turns: &'a [String],
    /// Value before each turn and at the end, for the first player, in [-1, 1].
    values: Vec<f32>,
    mistakes: Vec<MistakeLine>,
}

/// A turn that gave something away.
#[derive(Serialize)]
struct MistakeLine {
    /// Number of the turn, from 0.
    turn: usize,
    player: &'static str,
    position: String,
    played: String,
    /// Loss by the turn: value before it less value after it, for the player who acted.
    loss: f32,
    before: f32,
    after: f32,
    /// Best line by the search, by turns.
    line: Vec<String>,
}

/// Reviews all games of the files, prints a line of JSON for each, and writes the report.
///
/// # Errors
/// A file cannot be read or written, or a search fails.
pub fn run(arguments: &Arguments, player: &Arc<Player>, engine: &Engine) -> anyhow::Result<()> {
    let mut reviewed = Vec::new();
    for path in &arguments.games {
        let mut number = 0;
        let games = read_games(path, player.game(), |game| {
            number += 1;
            match game {
                Ok(game) => reviewed.push(review(path, number, &game, player, engine, arguments.visits)?),
                Err(error) => println!(
                    "{}",
                    json!({"file": name(path), "number": number, "error": error})
                ),
            }
            Ok(())
        });
        games.with_context(|| path.display().to_string())?;
        ensure!(number > 0, "{} contains no game", path.display());
    }
    if let Some(report) = &arguments.report {
        let title = match reviewed.as_slice() {
            [one] => one.title.clone(),
            many => format!("{} games", many.len()),
        };
        let text = document(player.game(), &title, &reviewed).into_string();
        fs::write(report, text).with_context(|| report.display().to_string())?;
    }
    Ok(())
}

fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn review(
    path: &Path,
    number: u64,
    game: &PlayedGame,
    player: &Arc<Player>,
    engine: &Engine,
    visits: u32,
) -> anyhow::Result<Reviewed> {
    let course = &game.course;
    let rules = course.begin().position();
    let job = |at| {
        let place = format!("{rules}|{:?}", &course.actions()[..at]);
        Job::new(Arc::clone(player), course.state_after(at), place, visits)
    };
    let review = Review::of(engine, course, job, || ())?;
    let outcome = course.state().outcome().or(game.result);
    let network = player
        .network()
        .map(|network| network.description().version.as_str());
    let line = Line {
        file: name(path),
        number,
        players: &game.players,
        result: outcome.map(word),
        network,
        visits,
        turns: &review.turns,
        values: review.values.iter().map(|value| value.get()).collect(),
        mistakes: review.mistakes.iter().map(mistake).collect(),
    };
    println!("{}", serde_json::to_string(&line)?);
    let names = game.players.join(" – ");
    Ok(Reviewed {
        title: match names.trim_matches(|letter: char| !letter.is_alphanumeric()) {
            "" => format!("{}, game {number}", line.file),
            _ => names,
        },
        remark: format!(
            "Result: {}. {} turns, {visits} visits each by {}.",
            line.result.unwrap_or("none"),
            review.turns.len(),
            network.unwrap_or("a search without a network")
        ),
        review,
    })
}

fn mistake(mistake: &Mistake) -> MistakeLine {
    MistakeLine {
        turn: mistake.turn,
        player: ["first", "second"][mistake.player.index()],
        position: mistake.state.position(),
        played: mistake.state.write_turn(&mistake.played),
        loss: mistake.loss(),
        before: mistake.values[0],
        after: mistake.values[1],
        line: mistake.texts(),
    }
}

/// Names an outcome of a game.
fn word(outcome: Outcome) -> &'static str {
    match outcome.value().get() {
        value if value > 0.0 => "first",
        value if value < 0.0 => "second",
        _ => "draw",
    }
}
