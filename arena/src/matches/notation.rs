//! Games as text: PGN or SGF where the game has it (chess, Go), else a record of numbers that a person can read and a program can replay.
//!
//! ```text
//! [Game "connect-four"]
//! [Number "12"]
//! [First "runs/a,visits=100"]
//! [Second "uct,visits=100"]
//! [Result "first"]
//! [Ending "first-won"]
//! [Opening "4"]
//!
//! 3 2 3 3 | 4 4 2 …
//! ```
//! The numbers are absolute action ids, as `minuet rules` takes them; a bar follows the opening's.

use std::{fmt::Write as _, path::PathBuf};

use anyhow::Context as _;
use games::erased::{AnyState, Variant};

use super::{
    folder::MatchFolder,
    plan::Plan,
    record::{GameRecord, Result as GameResult},
};

/// Columns of a line of moves, at most (PGN's export format requires fewer than 80).
const WIDTH: usize = 79;

/// Writes the planned games that are over into the match's folder: `games.pgn` for chess, `games.sgf` for Go, else `games.txt`.
/// Gives the file.
///
/// # Errors
/// The folder cannot be written, or a game contradicts the rules.
pub fn write(folder: &MatchFolder, plan: &Plan) -> anyhow::Result<PathBuf> {
    let variant = plan.variant()?;
    let records = || folder.records().range(..plan.games()).map(|(_, record)| record);
    match variant.game() {
        game if game.has_pgn => {
            let push = |text: &mut String, record: &_, start: &_| push_pgn(text, plan, record, start);
            folder.write("games.pgn", &all(&*variant, records(), push)?)
        }
        game if game.has_sgf => {
            let push = |text: &mut String, record: &_, start: &_| push_sgf(text, plan, record, start);
            folder.write("games.sgf", &all(&*variant, records(), push)?)
        }
        _ => folder.write("games.txt", &text(plan, records())),
    }
}

/// Returns all games as text, which `push` adds one after the other with the state that each begins in.
fn all<'a>(
    variant: &dyn Variant,
    records: impl Iterator<Item = &'a GameRecord>,
    push: impl Fn(&mut String, &GameRecord, &dyn AnyState) -> anyhow::Result<()>,
) -> anyhow::Result<String> {
    let mut text = String::new();
    for record in records {
        push(&mut text, record, &*variant.start(record.start.as_deref())?)?;
    }
    Ok(text)
}

fn push_sgf(text: &mut String, plan: &Plan, record: &GameRecord, start: &dyn AnyState) -> anyhow::Result<()> {
    let names = record.players.map(|player| &*plan.players[player].name);
    let game = start.write_sgf(&record.actions, names);
    *text += &game
        .context("the game has no SGF files")?
        .with_context(|| format!("game {}", record.game))?;
    Ok(())
}

fn push_pgn(text: &mut String, plan: &Plan, record: &GameRecord, start: &dyn AnyState) -> anyhow::Result<()> {
    let result = match record.result {
        GameResult::First => "1-0",
        GameResult::Second => "0-1",
        GameResult::Draw => "1/2-1/2",
        GameResult::Uncounted => "*",
    };
    let slot = plan.slot(record.game);
    let [white, black] = record.players.map(|player| plan.players[player].name.clone());
    let round = format!("{}.{}", slot.pair + 1, record.game % 2 + 1);
    let tags = [
        ("Event", "Minuet arena".to_owned()),
        ("Site", "?".to_owned()),
        ("Date", "????.??.??".to_owned()),
        ("Round", round),
        ("White", white),
        ("Black", black),
        ("Result", result.to_owned()),
    ];
    for (tag, value) in tags {
        push_tag(text, tag, &value);
    }
    if record.start.is_some() {
        push_tag(text, "SetUp", "1");
        push_tag(text, "FEN", &start.position());
    }
    push_tag(text, "PlyCount", &record.actions.len().to_string());
    push_tag(text, "Termination", &record.ending);
    text.push('\n');
    let mut line = Wrapped::new(text);
    let mut state = start.copy();
    let first_ply = if state.to_move() == games::Player::First {
        0
    } else {
        1
    };
    let first_move = state
        .position()
        .rsplit(' ')
        .next()
        .and_then(|number| number.parse::<usize>().ok())
        .unwrap_or(1);
    for (number, &action) in record.actions.iter().enumerate() {
        let ply = first_ply + number;
        let full_move = first_move + ply / 2;
        if ply % 2 == 0 {
            line.push(&format!("{full_move}."));
        } else if number == 0 {
            line.push(&format!("{full_move}..."));
        }
        line.push(&state.write_turn(&[action]));
        state
            .play(action)
            .with_context(|| format!("game {}", record.game))?;
    }
    line.push(result);
    text.push_str("\n\n");
    Ok(())
}

/// All games as text.
pub fn text<'a>(plan: &Plan, records: impl Iterator<Item = &'a GameRecord>) -> String {
    let mut text = String::new();
    for record in records {
        let [first, second] = record.players.map(|player| plan.players[player].name.clone());
        let result = match record.result {
            GameResult::First => "first",
            GameResult::Second => "second",
            GameResult::Draw => "draw",
            GameResult::Uncounted => "uncounted",
        };
        let tags = [
            ("Game", plan.game.clone()),
            ("Number", record.game.to_string()),
            ("First", first),
            ("Second", second),
            ("Result", result.to_owned()),
            ("Ending", record.ending.clone()),
            ("Opening", record.opening.to_string()),
        ];
        for (tag, value) in tags {
            push_tag(&mut text, tag, &value);
        }
        if let Some(start) = &record.start {
            push_tag(&mut text, "Start", start);
        }
        text.push('\n');
        let mut line = Wrapped::new(&mut text);
        for (number, action) in record.actions.iter().enumerate() {
            if number == record.opening && number > 0 {
                line.push("|");
            }
            line.push(&action.to_string());
        }
        text.push_str("\n\n");
    }
    text
}

fn push_tag(text: &mut String, tag: &str, value: &str) {
    let value = service::plain(value).replace('\\', "\\\\").replace('"', "\\\"");
    // Writing to a string does not fail.
    let _ = writeln!(text, "[{tag} \"{value}\"]");
}

/// Words in lines that are not too long.
struct Wrapped<'a> {
    text: &'a mut String,
    column: usize,
}

impl<'a> Wrapped<'a> {
    fn new(text: &'a mut String) -> Self {
        Self { text, column: 0 }
    }

    fn push(&mut self, word: &str) {
        if self.column > 0 {
            let fits = self.column + 1 + word.len() <= WIDTH;
            self.text.push(if fits { ' ' } else { '\n' });
            self.column = if fits { self.column + 1 } else { 0 };
        }
        self.text.push_str(word);
        self.column += word.len();
    }
}
