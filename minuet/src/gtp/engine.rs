//! [`Engine`]: reads one command after the other, and answers each of them exactly once, in order.

use std::{
    io::{self, Write},
    sync::mpsc::Receiver,
    time::{Duration, Instant},
};

use arena::{Thinker, players::vertex};
use games::{Action, Player};
use search::Settings;

use super::{
    board::Board,
    command::{Command, Input},
    thinking::{self, Thinking},
    time::Clocks,
};
use crate::uci::clock::Budget;

/// Commands of every game.
const COMMANDS: [&str; 18] = [
    "boardsize",
    "clear_board",
    "final_score",
    "genmove",
    "known_command",
    "list_commands",
    ANALYZE,
    GENMOVE_ANALYZE,
    "name",
    "play",
    "protocol_version",
    "quit",
    "reg_genmove",
    "showboard",
    "time_left",
    "time_settings",
    "undo",
    "version",
];
/// Command of games with a compensation for the first move.
const KOMI: &str = "komi";
/// Command of games that have SGF files.
const LOAD: &str = "loadsgf";
/// Reports results until the next command, as Leela Zero does.
const ANALYZE: &str = "lz-analyze";
/// Reports results, then plays.
const GENMOVE_ANALYZE: &str = "lz-genmove_analyze";
/// Time between two reports if the command names none.
const INTERVAL: Duration = Duration::from_millis(500);

/// An engine that answers the commands of a GUI.
pub struct Engine<W> {
    board: Board,
    thinking: Thinking,
    clocks: Option<Clocks>,
    input: Input,
    out: W,
}

impl<W: Write> Engine<W> {
    /// Makes an engine that takes lines from `lines` and writes answers to `out`.
    pub const fn new(board: Board, thinking: Thinking, lines: Receiver<String>, out: W) -> Self {
        Self {
            board,
            thinking,
            clocks: None,
            input: Input::new(lines),
            out,
        }
    }

    /// Answers commands until `quit` or the end of the input.
    ///
    /// # Errors
    /// Error of writing the output; the GUI has closed it.
    pub fn run(mut self) -> io::Result<()> {
        while let Some(line) = self.input.next() {
            let Some(command) = Command::read(&line) else {
                continue;
            };
            let done = match command.name.as_str() {
                ANALYZE | GENMOVE_ANALYZE => self.analyze(&command)?,
                _ => Some(self.answer(&command)),
            };
            // Takes back the moves that a refused command, or a command that only reads the board, has played.
            self.board.settle();
            match done {
                Some(done) => self.say(&command.answer(&done))?,
                // The answer began before the analysis.
                None => self.say("\n")?,
            }
            if command.name == "quit" {
                break;
            }
        }
        Ok(())
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    fn commands(&self) -> impl Iterator<Item = &'static str> {
        let komi = self.board.has_komi().then_some(KOMI);
        let load = self.board.game().has_sgf.then_some(LOAD);
        COMMANDS.into_iter().chain(komi).chain(load)
    }

    /// Does a command and returns its answer; an error begins with the words that the protocol has for it.
    fn answer(&mut self, command: &Command) -> Result<String, String> {
        let name = command.name.as_str();
        if !self.commands().any(|known| known == name) {
            return Err("unknown command".into());
        }
        match name {
            "protocol_version" => return Ok("2".into()),
            "name" => return Ok("Minuet".into()),
            "version" => return Ok(env!("CARGO_PKG_VERSION").into()),
            "known_command" => {
                let [asked] = command.words("COMMAND")?;
                return Ok(self.commands().any(|known| known == asked).to_string());
            }
            "list_commands" => return Ok(self.commands().collect::<Vec<_>>().join("\n")),
            "showboard" => return Ok(self.board.drawn()),
            "final_score" => return self.board.score(),
            "genmove" => return self.genmove(Board::player(command.words::<1>("COLOUR")?[0])?),
            "reg_genmove" => {
                self.board
                    .turn_to(Board::player(command.words::<1>("COLOUR")?[0])?)?;
                let action = self.think()?;
                return Ok(self.board.name(self.board.state(), action));
            }
            "boardsize" => {
                let [size] = command.words("SIZE")?;
                let game = self.board.of_size(size)?;
                let fits = self.thinking.check(game);
                fits.map_err(|reason| format!("unacceptable size: {reason}"))?;
                self.board.clear(game)?;
                self.begin();
            }
            "clear_board" => {
                self.board.clear(self.board.game())?;
                self.begin();
            }
            KOMI => {
                let [komi] = command.words("POINTS")?;
                self.board.set_komi(komi)?;
                self.thinking.forget();
            }
            LOAD => {
                self.load(command)?;
                // As GNU Go does.
                return Ok(vertex::colour(self.board.state().to_move()).into());
            }
            "play" => {
                let [player, vertex] = command.words("COLOUR VERTEX")?;
                self.board.play(Board::player(player)?, vertex)?;
            }
            "undo" => {
                let done = self.board.undo();
                done.then_some(()).ok_or("cannot undo: no move was played")?;
            }
            "time_settings" => {
                let [main, period, stones] =
                    command.words("MAIN_TIME BYO_YOMI_TIME BYO_YOMI_STONES (times in seconds)")?;
                self.clocks = Clocks::new(main, period, stones)?;
            }
            "time_left" => {
                let [player, left, stones] = command.words("COLOUR TIME STONES (time in seconds)")?;
                let player = Board::player(player)?;
                self.clocks.get_or_insert_default().set(player, left, stones)?;
            }
            // `quit` has no answer but an empty one.
            _ => {}
        }
        Ok(String::new())
    }

    /// Takes over a game from a file. The game stays as it was if its board has a size that the network does not know.
    fn load(&mut self, command: &Command) -> Result<(), String> {
        let (file, until) = match &*command.arguments {
            [file] => (file, None),
            [file, number] => {
                let number = number.parse::<usize>().ok().filter(|&number| number > 0);
                (
                    file,
                    Some(number.ok_or("syntax error: the number of a move is at least 1")?),
                )
            }
            _ => return Err("syntax error: write loadsgf FILE [MOVE]".into()),
        };
        let mut board = Board::new(self.board.game()).map_err(|error| format!("{error:#}"))?;
        board.load(file, until)?;
        let fits = self.thinking.check(board.game());
        fits.map_err(|reason| format!("cannot load file: {reason}"))?;
        self.board = board;
        self.begin();
        Ok(())
    }

    /// Prepares for the first move of a game.
    fn begin(&mut self) {
        self.thinking.forget();
        if let Some(clocks) = &mut self.clocks {
            clocks.restart();
        }
    }

    /// Chooses a move of the player to act.
    fn think(&mut self) -> Result<Action, String> {
        let chosen = self.thinking.choose(self.board.course(), self.budget(), |_| {});
        chosen.map_err(|error| format!("the search failed: {error:#}"))
    }

    /// Returns the time for the move of the player to act.
    fn budget(&self) -> Option<Budget> {
        let mover = self.board.state().to_move();
        self.clocks.and_then(|clocks| clocks.budget(mover))
    }

    /// Chooses a move and plays it.
    fn genmove(&mut self, player: Player) -> Result<String, String> {
        let began = Instant::now();
        if let Some(after) = self.board.move_after_end() {
            return Ok(after.into());
        }
        self.board.turn_to(player)?;
        let action = self.think()?;
        self.play(action, began.elapsed())
    }

    /// Plays the engine's move, which took the time `used`, and returns its name.
    fn play(&mut self, action: Action, used: Duration) -> Result<String, String> {
        let state = self.board.state();
        let (player, name) = (state.to_move(), self.board.name(state, action));
        self.board.play_action(action)?;
        if let Some(clocks) = &mut self.clocks {
            clocks.used(player, used);
        }
        Ok(name)
    }

    /// Reads the arguments of an analysis: a colour, and the time between two reports in hundredths of a second. Both may be missing.
    fn read_analysis(&mut self, command: &Command) -> Result<Duration, String> {
        let (mut player, mut interval) = (self.board.state().to_move(), INTERVAL);
        for (place, word) in command.arguments.iter().enumerate() {
            match (place, word.parse::<u16>()) {
                (0 | 1, Ok(hundredths)) => {
                    interval = Duration::from_millis(10 * u64::from(hundredths.max(1)))
                }
                (0, Err(_)) => player = Board::player(word)?,
                _ => return Err(format!("syntax error: write {} COLOUR INTERVAL", command.name)),
            }
        }
        self.board.turn_to(player)?;
        Ok(interval)
    }

    /// Reports results until the next line, or until a move is chosen and played. `None` if the answer has begun.
    fn analyze(&mut self, command: &Command) -> io::Result<Option<Result<String, String>>> {
        let (plays, began) = (command.name == GENMOVE_ANALYZE, Instant::now());
        if let Some(after) = self.board.move_after_end()
            && plays
        {
            return Ok(Some(Ok(format!("\nplay {after}"))));
        }
        let interval = match self.read_analysis(command) {
            Ok(interval) => interval,
            Err(error) => return Ok(Some(Err(error))),
        };
        self.say(&format!("={}\n", command.id))?;
        let budget = self.budget();
        let mut report = Report {
            board: &self.board,
            out: &mut self.out,
            interval,
            shown: began,
            written: Ok(()),
        };
        let course = self.board.course();
        let thought = match plays {
            true => {
                let look = |thinker: &Thinker| report.look(thinker);
                self.thinking.choose(course, budget, look).map(Some)
            }
            false => {
                let is_enough = |thinker: &Thinker| {
                    report.look(thinker);
                    report.written.is_err() || self.input.has_next()
                };
                let thinker = self.thinking.think(course, Settings::MAX_VISITS, is_enough);
                thinker.map(|thinker| {
                    report.show(thinker);
                    None
                })
            }
        };
        report.written?;
        match thought.map_err(|error| format!("{error:#}")) {
            Ok(Some(action)) => {
                let played = self.play(action, began.elapsed());
                self.say(&played.map_or_else(|_| String::new(), |name| format!("play {name}\n")))?;
            }
            // The search may have ended before the GUI has seen enough.
            Ok(None) => self.input.wait(),
            Err(error) => eprintln!("minuet: {}", service::plain_lines(&error)),
        }
        Ok(None)
    }
}

/// Reports of a running analysis.
struct Report<'a, W> {
    board: &'a Board,
    out: &'a mut W,
    interval: Duration,
    shown: Instant,
    written: io::Result<()>,
}

impl<W: Write> Report<'_, W> {
    /// Reports the results so far if the last report is old enough.
    fn look(&mut self, thinker: &Thinker) {
        if self.shown.elapsed() >= self.interval && thinker.search().visits_done() > 0 {
            self.show(thinker);
        }
    }

    /// Reports the results so far.
    fn show(&mut self, thinker: &Thinker) {
        self.shown = Instant::now();
        let line = thinking::info(self.board, thinker);
        // An empty line would end the answer.
        if self.written.is_ok() && !line.is_empty() {
            self.written = writeln!(self.out, "{line}").and_then(|()| self.out.flush());
        }
    }
}
