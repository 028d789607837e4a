//! Commands of `minuet`, run to their end.

use std::{
    io::Write as _,
    process::{Child, Command, Stdio},
};

use serde_json::Value;

/// Returns a command of `minuet`. `words` are its arguments, separated by spaces. Choices that it keeps for later starts stay among
/// the tests.
pub fn minuet(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_minuet"));
    command.args(words.split_whitespace()).env_remove("MINUET_CONFIG");
    command.env("MINUET_CACHE", concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"));
    command
}

/// Output and exit code of a program.
#[derive(Debug)]
pub struct Done {
    pub code: Option<i32>,
    pub out: String,
    pub error: String,
}

/// Runs a program.
pub fn done(command: &mut Command) -> Done {
    answered(command, "")
}

/// Runs a program that reads `input`.
pub fn answered(command: &mut Command, input: impl AsRef<[u8]> + Send) -> Done {
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = pipes.stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            // A program that does not read its input may have ended.
            let _ = stdin.write_all(input.as_ref());
        });
        child.wait_with_output().unwrap()
    });
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Done {
        code: output.status.code(),
        out: text(output.stdout),
        error: text(output.stderr),
    }
}

/// Runs a program that must succeed, and returns what it printed.
#[track_caller]
pub fn printed(command: &mut Command) -> String {
    let done = done(command);
    assert_eq!(done.code, Some(0), "{command:?}: {}{}", done.out, done.error);
    done.out
}

/// Runs a program that must succeed, and returns the JSON that it printed.
#[track_caller]
pub fn printed_json(command: &mut Command) -> Value {
    serde_json::from_str(&printed(command)).unwrap()
}

/// Runs a program that must succeed, and returns the JSON of each line that it printed.
#[track_caller]
pub fn printed_lines(command: &mut Command) -> Vec<Value> {
    let text = printed(command);
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Runs a program that must end with this code, and with these words on standard error.
#[track_caller]
pub fn fails(command: &mut Command, code: i32, words: &str) {
    let done = done(command);
    assert_eq!(done.code, Some(code), "{command:?}: {}", done.error);
    assert!(done.error.contains(words), "{command:?}: {}", done.error);
}

/// A process that is killed when this is dropped.
pub struct Killed(pub Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
