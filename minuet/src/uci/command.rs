//! Parser of a GUI's lines: one line becomes a [`Command`].
//!
//! As the protocol requires, unknown words before and inside a command are skipped. What cannot be read inside `go` or `position`
//! does not make the command disappear, because the GUI waits for its answer.

use std::time::Duration;

/// Keywords of `go`. A number follows those from `wtime` on.
const GO_WORDS: [&str; 12] = [
    "searchmoves",
    "ponder",
    "infinite",
    "wtime",
    "btime",
    "winc",
    "binc",
    "movestogo",
    "depth",
    "nodes",
    "mate",
    "movetime",
];

/// A command of the GUI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// `uci`: request for the engine's name and options.
    Uci,
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
        /// FEN of the first position; `None` for the start position. It may be invalid or empty.
        fen: Option<String>,
        /// Moves in UCI notation.
        moves: Vec<String>,
    },
    /// `go`: start a search.
    Go {
        /// Limits of the search.
        limits: Limits,
        /// Sentences about the numbers that were changed or left out.
        remarks: Vec<String>,
    },
    /// `stop`: end the search and report the best move.
    Stop,
    /// `ponderhit`: the opponent played the expected move.
    PonderHit,
    /// `quit`: end the program.
    Quit,
    /// A line that needs no answer (an empty line, `debug`, `register`).
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
    /// True if a limit was given whose number cannot be read.
    pub has_unread: bool,
}

/// Error: a line is malformed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// The line contains no command.
    #[error("no command in {0:?}")]
    Unknown(String),
    /// `setoption` has no name.
    #[error("setoption needs a name: setoption name <name> [value <value>]")]
    NoName,
}

/// Parses one line.
///
/// # Errors
/// [`CommandError`] if the line is malformed; the engine continues with the next line.
pub fn read(line: &str) -> Result<Command, CommandError> {
    let all: Vec<&str> = line.split_whitespace().collect();
    let mut words = &all[..];
    while let [name, rest @ ..] = words {
        return Ok(match *name {
            "uci" => Command::Uci,
            "isready" => Command::IsReady,
            "setoption" => set_option(rest)?,
            "ucinewgame" => Command::NewGame,
            "position" => position(rest),
            "go" => go(rest),
            "stop" => Command::Stop,
            "ponderhit" => Command::PonderHit,
            "quit" => Command::Quit,
            "debug" | "register" => Command::Nothing,
            _ => {
                words = rest;
                continue;
            }
        });
    }
    if all.is_empty() {
        return Ok(Command::Nothing);
    }
    Err(CommandError::Unknown(line.trim().chars().take(80).collect()))
}

/// Splits words at the first `at`, which belongs to neither part.
fn split<'a>(words: &'a [&'a str], at: &str) -> (&'a [&'a str], &'a [&'a str]) {
    let end = words.iter().position(|&word| word == at);
    let end = end.unwrap_or(words.len());
    (&words[..end], words.get(end + 1..).unwrap_or_default())
}

/// Parses `name <words> [value <words>]`; name and value may contain spaces.
fn set_option(words: &[&str]) -> Result<Command, CommandError> {
    let ["name", rest @ ..] = words else {
        return Err(CommandError::NoName);
    };
    let (name, value) = split(rest, "value");
    if name.is_empty() {
        return Err(CommandError::NoName);
    }
    Ok(Command::SetOption {
        name: name.join(" "),
        value: value.join(" "),
    })
}

fn position(words: &[&str]) -> Command {
    let (start, moves) = split(words, "moves");
    Command::Position {
        fen: match start {
            ["startpos", ..] => None,
            _ => Some(start.strip_prefix(&["fen"]).unwrap_or(start).join(" ")),
        },
        moves: moves.iter().map(|&text| text.to_owned()).collect(),
    }
}

fn go(words: &[&str]) -> Command {
    let (mut limits, mut remarks) = (Limits::default(), Vec::new());
    let mut words = words.iter().copied().peekable();
    while let Some(word) = words.next() {
        match word {
            "ponder" => limits.ponder = true,
            "infinite" => limits.infinite = true,
            "searchmoves" => {
                while let Some(text) = words.next_if(|next| !GO_WORDS.contains(next)) {
                    limits.search_moves.push(text.to_owned());
                }
            }
            _ if GO_WORDS.contains(&word) => {
                let found = words.next().unwrap_or_default();
                let taken = match number(found) {
                    Some(number) => {
                        limits.set(word, number);
                        number.to_string()
                    }
                    None => {
                        limits.has_unread = true;
                        "nothing".into()
                    }
                };
                if taken != found {
                    remarks.push(format!(
                        "error: {word} needs a whole number, not {found:?}; {taken} is taken"
                    ));
                }
            }
            _ => {}
        }
    }
    Command::Go { limits, remarks }
}

/// Returns the whole number that a text holds, without a fraction. GUIs send negative times after a player's time has run out; they
/// count as 0.
fn number(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole: i64 = whole.parse().ok()?;
    let is_decimal = fraction.bytes().all(|byte| byte.is_ascii_digit());
    is_decimal.then(|| whole.max(0).unsigned_abs())
}

impl Limits {
    fn set(&mut self, word: &str, number: u64) {
        let time = Duration::from_millis(number);
        let count = u32::try_from(number).unwrap_or(u32::MAX);
        match word {
            "wtime" => self.time[0] = Some(time),
            "btime" => self.time[1] = Some(time),
            "winc" => self.increment[0] = time,
            "binc" => self.increment[1] = time,
            "movestogo" => self.moves_to_go = Some(count),
            "depth" => self.depth = Some(count),
            "nodes" => self.nodes = Some(number),
            "mate" => self.mate = Some(count),
            "movetime" => self.move_time = Some(time),
            _ => {}
        }
    }

    /// True if the search ends by itself.
    pub fn ends(&self) -> bool {
        let has_limit = self.depth.is_some() || self.nodes.is_some() || self.move_time.is_some();
        !self.infinite && !self.ponder && (has_limit || self.time.iter().any(Option::is_some))
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
            Ok(Command::Go { limits, remarks }) if remarks.is_empty() => limits,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn examples_of_the_protocol_are_parsed() {
        let text = |text: &str| text.to_owned();
        let set = |name: &str, value: &str| Command::SetOption {
            name: name.into(),
            value: value.into(),
        };
        let position = |fen: Option<&str>, moves: &[&str]| Command::Position {
            fen: fen.map(text),
            moves: moves.iter().copied().map(text).collect(),
        };
        let bare = "8/8/8/8/8/8/8/K1k5 w - - 0 1";
        for (line, command) in [
            ("uci", Command::Uci),
            ("  debug   on ", Command::Nothing),
            ("joho isready", Command::IsReady),
            (
                "setoption name Style value Risky Play",
                set("Style", "Risky Play"),
            ),
            ("setoption name Clear Hash", set("Clear Hash", "")),
            (
                "position startpos moves e2e4 e7e5",
                position(None, &["e2e4", "e7e5"]),
            ),
            (&format!("position fen {bare}"), position(Some(bare), &[])),
            // A position that cannot be read is still a position, which replaces the last one.
            ("position", position(Some(""), &[])),
            ("position fen moves e2e4", position(Some(""), &["e2e4"])),
            (&format!("position {bare}"), position(Some(bare), &[])),
            ("register later", Command::Nothing),
            ("", Command::Nothing),
        ] {
            assert_eq!(read(line), Ok(command), "{line}");
        }
    }

    #[test]
    fn go_takes_its_parts_in_any_order() {
        let limits = go("go wtime 60000 btime 5 winc 100 searchmoves e2e4 d2d4 movestogo 12 ponder");
        let [minute, moment] = [60_000, 5].map(Duration::from_millis);
        assert_eq!(limits.time, [Some(minute), Some(moment)]);
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
    fn a_number_that_cannot_be_read_leaves_the_rest_of_go() {
        let time = |millis| [Some(Duration::from_millis(millis)), None];
        let unread = || Limits {
            has_unread: true,
            ..Limits::default()
        };
        let with_time = |millis| Limits {
            time: time(millis),
            ..Limits::default()
        };
        for (line, expected, remark) in [
            (
                "go movetime infinite",
                unread(),
                "not \"infinite\"; nothing is taken",
            ),
            (
                "go nodes 1e6",
                unread(),
                "nodes needs a whole number, not \"1e6\"",
            ),
            ("go depth 99999999999999999999", unread(), "depth needs"),
            ("go depth", unread(), "not \"\""),
            ("go wtime 60000.0", with_time(60_000), "60000 is taken"),
            ("go wtime -5", with_time(0), "; 0 is taken"),
            ("go wtime 1.5e3", unread(), "nothing is taken"),
        ] {
            match read(line) {
                Ok(Command::Go { limits, remarks }) => {
                    assert_eq!(limits, expected, "{line}");
                    assert!(remarks.len() == 1 && remarks[0].contains(remark), "{remarks:?}");
                }
                other => panic!("{line}: {other:?}"),
            }
        }
    }

    #[test]
    fn errors_name_the_malformed_part() {
        for (line, says) in [
            ("hello", "no command in \"hello\""),
            ("setoption", "setoption needs a name"),
            ("setoption name", "setoption needs a name"),
            ("setoption name value 3", "setoption needs a name"),
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
