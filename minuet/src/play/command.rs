//! Lines that a person may type: moves and commands.

use std::path::PathBuf;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A move, or any line that is not a command.
    Turn(String),
    /// Shows the help.
    Help,
    /// Draws the board again.
    Board,
    /// Lists the legal actions.
    Moves,
    /// Shows the position as text.
    Position,
    /// Shows what the computer would play.
    Hint,
    /// Takes back the last turn.
    Undo,
    /// Resigns.
    Resign,
    /// Saves the game in a file.
    Save(Option<PathBuf>),
    /// Ends without a result.
    Quit,
    /// An empty line.
    Nothing,
}

/// Help for the commands, shown after the game's own help.
pub const HELP: &str = "\
undo       take back your last move, or what was entered of this turn
hint       what the computer would play
moves      what may be played now
board      draw the board again
position   the position as text
save FILE  keep the game in a file (minuet play --load FILE continues it); FILE.sgf: as SGF (Go)
resign     give up
quit       end without a result";

/// Reads a line.
pub fn read(line: &str) -> Command {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    match (word.to_lowercase().as_str(), rest) {
        ("", _) => Command::Nothing,
        ("save", "") => Command::Save(None),
        ("save", file) => Command::Save(Some(file.into())),
        ("help" | "?", "") => Command::Help,
        ("board", "") => Command::Board,
        ("moves", "") => Command::Moves,
        ("position" | "fen", "") => Command::Position,
        ("hint", "") => Command::Hint,
        ("undo" | "back", "") => Command::Undo,
        ("resign", "") => Command::Resign,
        ("quit" | "exit", "") => Command::Quit,
        _ => Command::Turn(line.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_moves_are_told_apart() {
        for (line, command) in [
            ("", Command::Nothing),
            ("  Undo ", Command::Undo),
            ("?", Command::Help),
            ("save my game.json", Command::Save(Some("my game.json".into()))),
            ("save", Command::Save(None)),
            ("e2 e4", Command::Turn("e2 e4".into())),
            ("undo e4", Command::Turn("undo e4".into())),
            ("pass", Command::Turn("pass".into())),
        ] {
            assert_eq!(read(line), command, "{line:?}");
        }
    }
}
