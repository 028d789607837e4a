//! Tests of the command line: its parser reads what the program and the book print.

use clap::error::ErrorKind;
use games::registry::{self, NAMES};

use super::*;

/// Returns the error of a command that cannot be read. Missing arguments are no error: a sentence may name a command without them.
fn fault(words: &[String]) -> Option<String> {
    let error = CommandLine::try_parse_from(words).err()?;
    let is_incomplete = matches!(
        error.kind(),
        ErrorKind::MissingRequiredArgument
            | ErrorKind::MissingSubcommand
            | ErrorKind::DisplayHelp
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    let text = error.to_string();
    (!is_incomplete && !text.contains("but none was supplied")).then_some(text)
}

#[test]
fn the_commands_in_help_texts_and_in_the_book_are_read() {
    let mut faults = Vec::new();
    for example in test_support::examples() {
        // Places that the reader fills in: ids and numbers.
        let fill = |word: &String| match word.strip_suffix('…') {
            Some(_) => "0".repeat(32),
            None => word.replace("=V", "=1"),
        };
        let words: Vec<String> = example
            .words
            .iter()
            .filter(|word| *word != "…")
            .map(fill)
            .collect();
        faults.extend(fault(&words).map(|fault| format!("{}: {}: {fault}", example.page, words.join(" "))));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn positions_that_are_printed_are_read_as_arguments() {
    let words = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<String>>()
    };
    for name in NAMES {
        let game = registry::find(name).unwrap();
        let state = game
            .variant(&game.people_rules(), None)
            .unwrap()
            .start(None)
            .unwrap();
        let position = state.position();
        for command in [
            words(&[
                "minuet", "perft", "--depth", "1", "--game", name, "--fen", &position,
            ]),
            words(&["minuet", "play", "--game", name, "--start", &position]),
            words(&["minuet", "query", name, "--position", &position]),
        ] {
            assert_eq!(
                CommandLine::try_parse_from(&command)
                    .err()
                    .map(|error| error.to_string()),
                None,
                "{command:?}"
            );
        }
    }
}
