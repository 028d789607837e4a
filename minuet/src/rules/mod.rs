//! `minuet rules`: answers requests about the rules of games. Requests are JSON lines on standard input; each gets one
//! line of JSON on standard output, in order.
//!
//! | module | content |
//! |---|---|
//! | [`answer`] | requests and their answers, for any game |
//! | [`lines`] | reads lines of bounded length |
//!
//! The JSON form of a game's actions is part of the game ([`games::Notation`]).

pub mod answer;
pub mod lines;

use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};

use self::{
    answer::Answer,
    lines::{Line, next_line},
};

/// Arguments of `minuet rules`.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Arguments {}

const HELP: &str = r#"Each line asks: {"id":…, "game":"paco-sako", "start":"<FEN>"|null, "actions":[…], "options":1, "trace":false}
and switches of the game's rules may be added, e.g. "draw_after_n_repetitions":3, "dead_end":"loss".
Each is answered by: {"id":…, "legal":[…], "to_move":0|1, "fen":"…", "outcome":null|"first"|"second"|"draw"|"loss-of-mover",
"row":[…], "error":null|"…", …}, for Paco Ŝako with "required_action", "no_progress" and "victory_state";
with "trace":true also "legal_before", the legal set before each action and after the last.

Paco Ŝako's actions are codes: 1 to 64 lift from a1 to h8, 65 to 128 place, 129 to 132 promote (rook, knight, bishop, queen).
By default dead ends are no result here and chains may run in circles, as in the original engine.
Chess takes and gives moves as UCI writes them ("e2e4", "e1g1", "e7e8q"), with every move's policy entry in "policy".
Othello's actions are 0 to 63 from a1 to h8, 64 passes; Connect Four's are the columns, 0 to 6.
The generator game's are [imp, move]; its "start" is a packed clan, a problem is posed by "target" (and "second_target") as rows
of colours, a task by "examples" of such a pair too: [{"input":…,"output":…}]. The answer holds "clan" and "render", null after an Oops. By default what may fail is an Oops and may be played
("illegal":"strict" offers only what succeeds), and cycles are allowed ("cycles":"forbid").

Example:
  echo '{"id":1,"game":"paco-sako","start":null,"actions":[13,93]}' | minuet rules"#;

/// Answers requests until the input ends.
pub fn run(_: Arguments) -> anyhow::Result<()> {
    match serve(io::stdin().lock(), io::stdout().lock()) {
        // The reader has closed the pipe and wants no more answers.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        served => Ok(served?),
    }
}

/// Answers every line of `input`. Answers are flushed as soon as no further line is buffered.
fn serve(input: impl Read, output: impl Write) -> io::Result<()> {
    let mut input = BufReader::new(input);
    let mut output = BufWriter::new(output);
    let mut buffer = Vec::new();
    while let Some(line) = next_line(&mut input, &mut buffer)? {
        let answer = match line {
            Line::Whole(text) => Answer::of_line(text),
            Line::TooLong => Answer::of_error(format!("a line of more than {} bytes", lines::MAX_LENGTH)),
        };
        serde_json::to_writer(&mut output, &answer)?;
        output.write_all(b"\n")?;
        if input.buffer().is_empty() {
            output.flush()?;
        }
    }
    output.flush()
}
