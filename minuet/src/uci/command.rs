//! Parser of a GUI's lines: one line becomes a [`Command`].
//!
//! As the protocol requires, unknown words before and inside a command are skipped. A malformed line is a [`CommandError`],
//! which the engine reports before it continues.

use std::time::Duration;

/// Words that begin a command.
const NAMES: [&str; 11] = [
    "uci",
    "debug",
    "isready",
    "setoption",
    "register",
    "ucinewgame",
    "position",
    "go",
    "stop",
    "ponderhit",
    "quit",
];

/// Keywords of `go`.
const GO_WORDS: [&str; 12] = [
    "searchmoves",
    "ponder",
    "wtime",
    "btime",
    "winc",
    "binc",
    "movestogo",
    "depth",
    "nodes",
    "mate",
    "movetime",
    "infinite",
];

/// A command of the GUI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// `uci`: request for the engine's name and options.
    Uci,
    /// `debug`: switch additional `info string` lines on or off.
    Debug(bool),
    /// `isready`: answer `readyok` when all earlier commands are done.
    IsReady,
    /// `setoption`: set an option.
    SetOption {
        /// Name of the option as given.
        name: String,
        /// Value; empty if none was given.
        value: String,
    },
    /// `ucinewgame`: the next position belongs to another game.
    NewGame,
    /// `position`: the position to search, and the moves that led to it.
    Position {
        /// FEN of the first position; `None` for the start position.
        fen: Option<String>,
        /// Moves in UCI notation.
        moves: Vec<String>,
    },
    /// `go`: start a search.
    Go(Limits),
    /// `stop`: end the search and report the best move.
    Stop,
    /// `ponderhit`: the opponent played the expected move.
    PonderHit,
    /// `quit`: end the program.
    Quit,
    /// A line that needs no answer (an empty line, `register`).
    Nothing,
}

/// Limits of a search, the parameters of `go`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Root moves to search; empty: all.
    pub search_moves: Vec<String>,
    /// Search during the opponent's turn, until `ponderhit` or `stop`.
    pub ponder: bool,
    /// Search until `stop`.
    pub infinite: bool,
    /// Time left, White's first.
    pub time: [Option<Duration>; 2],
    /// Increment for each move, White's first.
    pub increment: [Duration; 2],
    /// Moves until the next time control.
    pub moves_to_go: Option<u32>,
    /// Length of the best line in plies at which the search ends.
    pub depth: Option<u32>,
    /// Number of visits at which the search ends.
    pub nodes: Option<u64>,
    /// Search for a mate in at most this many moves.
    pub mate: Option<u32>,
    /// Exact time for the search.
    pub move_time: Option<Duration>,
}

/// Error: a line is malformed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// The line contains no command.
    #[error("no command in {0:?}")]
    Unknown(String),
    /// A part of a command is missing.
    #[error("{command} needs {what}")]
    Missing {
        /// The command.
        command: &'static str,
        /// The missing part.
        what: &'static str,
    },
    /// A parameter is not a whole number.
    #[error("{word} needs a whole number, not {found:?}")]
    Number {
        /// Name of the parameter.
        word: &'static str,
        /// The text in place of the number.
        found: String,
    },
}

/// Parses one line.
///
/// # Errors
/// [`CommandError`] if the line is malformed; the engine continues with the next line.
pub fn read(line: &str) -> Result<Command, CommandError> {
    let mut words = line.split_whitespace().skip_while(|word| !NAMES.contains(word));
    let Some(name) = words.next() else {
        return if line.trim().is_empty() {
            Ok(Command::Nothing)
        } else {
            Err(CommandError::Unknown(line.trim().chars().take(80).collect()))
        };
    };
    let rest: Vec<&str> = words.collect();
    Ok(match name {
        "uci" => Command::Uci,
        "debug" => Command::Debug(rest.first() != Some(&"off")),
        "isready" => Command::IsReady,
        "setoption" => set_option(&rest)?,
        "ucinewgame" => Command::NewGame,
        "position" => position(&rest)?,
        "go" => Command::Go(limits(&rest)?),
        "stop" => Command::Stop,
        "ponderhit" => Command::PonderHit,
        "quit" => Command::Quit,
        _ => Command::Nothing,
    })
}

/// Parses `name <words> [value <words>]`; name and value may contain spaces.
fn set_option(words: &[&str]) -> Result<Command, CommandError> {
    let missing = CommandError::Missing {
        command: "setoption",
        what: "a name: setoption name <name> [value <value>]",
    };
    let ["name", rest @ ..] = words else {
        return Err(missing);
    };
    let end = rest
        .iter()
        .position(|&word| word == "value")
        .unwrap_or(rest.len());
    let name = rest[..end].join(" ");
    if name.is_empty() {
        return Err(missing);
    }
    let value = rest.get(end + 1..).unwrap_or_default().join(" ");
    Ok(Command::SetOption { name, value })
}

fn position(words: &[&str]) -> Result<Command, CommandError> {
    let end = words
        .iter()
        .position(|&word| word == "moves")
        .unwrap_or(words.len());
    let moves = words.get(end + 1..).unwrap_or_default();
    let fen = match &words[..end] {
        ["startpos", ..] => None,
        ["fen", fen @ ..] if !fen.is_empty() => Some(fen.join(" ")),
        _ => {
            return Err(CommandError::Missing {
                command: "position",
                what: "startpos, or fen and a FEN",
            });
        }
    };
    Ok(Command::Position {
        fen,
        moves: moves.iter().map(|&text| text.to_owned()).collect(),
    })
}

fn limits(words: &[&str]) -> Result<Limits, CommandError> {
    let mut limits = Limits::default();
    let mut words = words.iter().copied().peekable();
    while let Some(word) = words.next() {
        let Some(&word) = GO_WORDS.iter().find(|&&known| known == word) else {
            continue;
        };
        match word {
            "ponder" => limits.ponder = true,
            "infinite" => limits.infinite = true,
            "searchmoves" => {
                while let Some(text) = words.next_if(|next| !GO_WORDS.contains(next)) {
                    limits.search_moves.push(text.to_owned());
                }
            }
            _ => {
                let found = words.next().unwrap_or_default();
                let number: i64 = found.parse().map_err(|_| CommandError::Number {
                    word,
                    found: found.into(),
                })?;
                // GUIs send negative times after a player's time has run out.
                set(&mut limits, word, number.max(0).unsigned_abs());
            }
        }
    }
    Ok(limits)
}

fn set(limits: &mut Limits, word: &str, number: u64) {
    let time = Duration::from_millis(number);
    let count = u32::try_from(number).unwrap_or(u32::MAX);
    match word {
        "wtime" => limits.time[0] = Some(time),
        "btime" => limits.time[1] = Some(time),
        "winc" => limits.increment[0] = time,
        "binc" => limits.increment[1] = time,
        "movestogo" => limits.moves_to_go = Some(count),
        "depth" => limits.depth = Some(count),
        "nodes" => limits.nodes = Some(number),
        "mate" => limits.mate = Some(count),
        "movetime" => limits.move_time = Some(time),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fuzz_lines() {
        let examples: [&[u8]; 4] = [
            b"position startpos moves e2e4 e7e5",
            b"position fen 4k3/8/8/8/8/8/8/4K3 w - - 0 1 moves e1e2",
            b"go wtime 1000 btime 1000 winc 10 binc 10 movestogo 5 depth 3 nodes 100 searchmoves e2e4",
            b"setoption name Hash value 64",
        ];
        test_support::fuzz("UCI line", &examples, |bytes| {
            read(&String::from_utf8_lossy(bytes)).is_ok()
        });
    }

    fn go(line: &str) -> Limits {
        match read(line) {
            Ok(Command::Go(limits)) => limits,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn examples_of_the_protocol_are_parsed() {
        assert_eq!(read("uci"), Ok(Command::Uci));
        assert_eq!(read("  debug   on "), Ok(Command::Debug(true)));
        assert_eq!(read("joho debug off"), Ok(Command::Debug(false)));
        assert_eq!(
            read("setoption name Style value Risky Play"),
            Ok(Command::SetOption {
                name: "Style".into(),
                value: "Risky Play".into()
            })
        );
        assert_eq!(
            read("setoption name Clear Hash"),
            Ok(Command::SetOption {
                name: "Clear Hash".into(),
                value: String::new()
            })
        );
        assert_eq!(
            read("position startpos moves e2e4 e7e5"),
            Ok(Command::Position {
                fen: None,
                moves: vec!["e2e4".into(), "e7e5".into()]
            })
        );
        assert_eq!(
            read("position fen 8/8/8/8/8/8/8/K1k5 w - - 0 1"),
            Ok(Command::Position {
                fen: Some("8/8/8/8/8/8/8/K1k5 w - - 0 1".into()),
                moves: vec![]
            })
        );
        assert_eq!(read("register later"), Ok(Command::Nothing));
        assert_eq!(read(""), Ok(Command::Nothing));
    }

    #[test]
    fn go_takes_its_parts_in_any_order() {
        let limits = go("go wtime 60000 btime -5 winc 100 searchmoves e2e4 d2d4 movestogo 12 ponder");
        assert_eq!(limits.time, [Some(Duration::from_secs(60)), Some(Duration::ZERO)]);
        assert_eq!(limits.increment, [Duration::from_millis(100), Duration::ZERO]);
        assert_eq!(limits.search_moves, ["e2e4", "d2d4"]);
        assert_eq!((limits.moves_to_go, limits.ponder), (Some(12), true));
        let limits = go("go nodes 5000000000 depth 3 mate 2 movetime 7 infinite");
        assert_eq!(limits.nodes, Some(5_000_000_000));
        assert_eq!((limits.depth, limits.mate), (Some(3), Some(2)));
        assert_eq!(limits.move_time, Some(Duration::from_millis(7)));
        assert!(limits.infinite);
        assert_eq!(go("go"), Limits::default());
    }

    #[test]
    fn errors_name_the_malformed_part() {
        for (line, says) in [
            ("hello", "no command in \"hello\""),
            ("setoption", "setoption needs a name"),
            ("setoption name", "setoption needs a name"),
            ("setoption name value 3", "setoption needs a name"),
            ("position", "position needs startpos"),
            ("position fen", "position needs startpos"),
            ("position fen moves e2e4", "position needs startpos"),
            ("go wtime", "wtime needs a whole number, not \"\""),
            ("go nodes many", "nodes needs a whole number, not \"many\""),
        ] {
            let said = read(line).unwrap_err().to_string();
            assert!(said.starts_with(says), "{line}: {said}");
        }
    }

    proptest! {
        #[test]
        fn no_line_causes_a_panic(line in "(\\PC|go |position |fen |moves |setoption name |value |nodes |-|[0-9]){0,40}") {
            let _ = read(&line);
        }
    }
}
