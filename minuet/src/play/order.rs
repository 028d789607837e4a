//! What a person may type besides moves.

use std::path::PathBuf;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// A move, or what was meant as one.
    Turn(String),
    /// What can be typed?
    Help,
    /// Draw the board again.
    Board,
    /// What may be played?
    Moves,
    /// The position as text.
    Position,
    /// What would the computer play?
    Hint,
    /// Take back.
    Undo,
    /// Give up.
    Resign,
    /// Keep the game in a file.
    Save(Option<PathBuf>),
    /// End without a result.
    Quit,
    /// An empty line.
    Nothing,
}

/// What [`Order::Help`] is answered with, after the game's own help.
pub const HELP: &str = "\
undo       take back your last move, or what was entered of this turn
hint       what the computer would play
moves      what may be played now
board      draw the board again
position   the position as text
save FILE  keep the game in a file (minuet play --load FILE goes on with it)
resign     give up
quit       end without a result";

/// Reads a line.
pub fn read(line: &str) -> Order {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    match (word.to_lowercase().as_str(), rest) {
        ("", _) => Order::Nothing,
        ("save", "") => Order::Save(None),
        ("save", file) => Order::Save(Some(file.into())),
        ("help" | "?", "") => Order::Help,
        ("board", "") => Order::Board,
        ("moves", "") => Order::Moves,
        ("position" | "fen", "") => Order::Position,
        ("hint", "") => Order::Hint,
        ("undo" | "back", "") => Order::Undo,
        ("resign", "") => Order::Resign,
        ("quit" | "exit", "") => Order::Quit,
        _ => Order::Turn(line.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_moves_are_told_apart() {
        for (line, order) in [
            ("", Order::Nothing),
            ("  Undo ", Order::Undo),
            ("?", Order::Help),
            ("save my game.json", Order::Save(Some("my game.json".into()))),
            ("save", Order::Save(None)),
            ("e2 e4", Order::Turn("e2 e4".into())),
            ("undo e4", Order::Turn("undo e4".into())),
            ("pass", Order::Turn("pass".into())),
        ] {
            assert_eq!(read(line), order, "{line:?}");
        }
    }
}
