//! Lines as commands, and answers as lines.

use std::sync::mpsc::{Receiver, TryRecvError};

/// A command with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Number that the answer repeats, as it was written; empty if there is none.
    pub id: String,
    /// Name of the command.
    pub name: String,
    /// Words behind the name.
    pub arguments: Vec<String>,
}

impl Command {
    /// Reads a line. `None` if it has no command: it is empty or a comment.
    ///
    /// As the protocol says, control characters are dropped, tabs are spaces, and `#` begins a comment.
    pub fn read(line: &str) -> Option<Self> {
        let text = line.split('#').next().unwrap_or_default().replace('\t', " ");
        let text: String = text.chars().filter(|letter| !letter.is_control()).collect();
        let mut words = text.split_whitespace().map(str::to_owned).peekable();
        words.peek()?;
        let id = words.next_if(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
        Some(Self {
            id: id.unwrap_or_default(),
            name: words.next().unwrap_or_default(),
            arguments: words.collect(),
        })
    }

    /// Returns the words behind the name, if there are `N`.
    ///
    /// # Errors
    /// Sentence with the form of the command, whose arguments are called `names`.
    pub fn words<const N: usize>(&self, names: &str) -> Result<[&str; N], String> {
        let words: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        words.try_into().map_err(|_| {
            format!("syntax error: write {} {names}", self.name)
                .trim_end()
                .into()
        })
    }

    /// Returns the lines of an answer. The protocol ends it with an empty line, so that it can hold none itself.
    pub fn answer(&self, done: &Result<String, String>) -> String {
        let (mark, text) = match done {
            Ok(text) => ('=', text.as_str()),
            Err(text) => ('?', text.as_str()),
        };
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        let lines: Vec<&str> = lines.into_iter().filter(|line| !line.is_empty()).collect();
        let text = service::plain_lines(&lines.join("\n")).to_string();
        format!("{mark}{} {text}", self.id).trim_end().to_owned() + "\n\n"
    }
}

/// Lines that were read and wait for an answer.
pub struct Input {
    lines: Receiver<String>,
    next: Option<String>,
}

impl Input {
    /// Makes the input from the channel of a reader.
    pub const fn new(lines: Receiver<String>) -> Self {
        Self { lines, next: None }
    }

    /// Returns the next line. `None` at the end of the input.
    pub fn next(&mut self) -> Option<String> {
        self.next.take().or_else(|| self.lines.recv().ok())
    }

    /// Waits for the next line, which stays.
    pub fn wait(&mut self) {
        self.next = self.next();
    }

    /// True if a line waits, or the input has ended.
    pub fn has_next(&mut self) -> bool {
        if self.next.is_some() {
            return true;
        }
        match self.lines.try_recv() {
            Ok(line) => {
                self.next = Some(line);
                true
            }
            Err(error) => error == TryRecvError::Disconnected,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_the_protocol_says() {
        for (line, id, name, arguments) in [
            ("play b d4", "", "play", "b d4"),
            ("12 play\tb  d4 # a comment", "12", "play", "b d4"),
            ("007 quit\r", "007", "quit", ""),
            (" \u{7}name\u{7f}", "", "name", ""),
            ("99999999999999999999 name", "99999999999999999999", "name", ""),
            ("12", "12", "", ""),
        ] {
            let command = Command::read(line).unwrap();
            let found = (command.id, command.name, command.arguments.join(" "));
            assert_eq!(found, (id.into(), name.into(), arguments.into()), "{line}");
        }
        for line in ["", " \t ", "# 12 name", "\r", "\u{7}"] {
            assert_eq!(Command::read(line), None, "{line:?}");
        }
    }

    #[test]
    fn answers_hold_no_empty_line_and_end_with_one() {
        let command = Command::read("3 showboard").unwrap();
        assert_eq!(command.answer(&Ok("\n a\n\nb \n".into())), "=3  a\nb\n\n");
        assert_eq!(command.answer(&Ok(String::new())), "=3\n\n");
        let plain = Command::read("play").unwrap();
        assert_eq!(plain.answer(&Err("illegal move".into())), "? illegal move\n\n");
        assert_eq!(
            plain.words::<2>("COLOUR VERTEX"),
            Err("syntax error: write play COLOUR VERTEX".into())
        );
    }

    #[test]
    fn fuzz_lines() {
        let examples: [&[u8]; 3] = [b"1 play black d4", b"time_left b 10 0", b"lz-analyze 50 # now"];
        test_support::fuzz("GTP line", &examples, |bytes| {
            Command::read(&String::from_utf8_lossy(bytes)).is_some()
        });
    }
}
