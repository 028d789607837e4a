//! Random commands, and a search thread of any speed, against a small model of the protocol: as many `bestmove` as `go`, in the same
//! order, each legal in the position of its `go`, none before a search without limits was ended, and none
//! missing after the last `stop`.

use std::{
    collections::VecDeque,
    sync::mpsc::{self, Receiver},
    time::{Duration, Instant},
};

use games::chess::{Chess, Rules};
use proptest::prelude::*;

use super::{
    engine::Engine,
    options::Options,
    worker::{self, Event, Job},
};

/// Positions that have no legal move in common, and one that no engine can read.
const POSITIONS: [&str; 4] = [
    "position startpos",
    "position startpos moves e2e4",
    "position fen 7k/8/8/3K4/8/8/8/8 w - - 0 0",
    "position startpos moves e2e5",
];
/// `go` with and without an end of its own.
const GOES: [(&str, Held); 6] = [
    ("go nodes 50", Held::No),
    ("go wtime 1000 btime 1000", Held::No),
    ("go movetime infinite", Held::No),
    ("go infinite", Held::UntilStop),
    ("go ponder wtime 1000 btime 1000", Held::UntilHit),
    ("go ponder infinite", Held::UntilStop),
];

/// Command that a search must wait for before it is answered.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Held {
    No,
    UntilHit,
    UntilStop,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Position(usize),
    Go(usize),
    Stop,
    PonderHit,
    IsReady,
    /// Any other line.
    Line(&'static str),
    /// The search thread does its oldest job.
    Work(bool),
    /// Two seconds pass.
    Wait,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..POSITIONS.len()).prop_map(Step::Position),
        4 => (0..GOES.len()).prop_map(Step::Go),
        3 => Just(Step::Stop),
        1 => Just(Step::PonderHit),
        1 => Just(Step::IsReady),
        1 => Just(Step::Line("ucinewgame")),
        1 => Just(Step::Line("setoption name Threads value 2")),
        1 => Just(Step::Line("nonsense")),
        6 => any::<bool>().prop_map(Step::Work),
        1 => Just(Step::Wait),
    ]
}

/// Moves that are legal in each of the [`POSITIONS`]; none where the position cannot be read.
fn legal_moves() -> Vec<Vec<String>> {
    let after_e4 = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1";
    let fens = [None, Some(after_e4), Some("7k/8/8/3K4/8/8/8/8 w - - 0 1")];
    let known = fens.map(|fen| {
        let chess = <Chess as games::Game>::start(&Rules::default(), fen).unwrap();
        let mut actions = Vec::new();
        chess.moves(&mut actions);
        actions.into_iter().map(|action| chess.uci(action)).collect()
    });
    known.into_iter().chain([Vec::new()]).collect()
}

/// A `go` as the GUI remembers it.
struct Asked {
    position: usize,
    held: Held,
}

struct Talk {
    engine: Engine<Out>,
    said: Receiver<Vec<u8>>,
    jobs: Receiver<Job>,
    waiting: VecDeque<Job>,
    now: Instant,
    position: usize,
    asked: Vec<Asked>,
    answered: usize,
    ready: isize,
}

/// Writes into a channel.
struct Out(mpsc::Sender<Vec<u8>>);

impl std::io::Write for Out {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.send(bytes.to_vec()).unwrap();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Talk {
    fn new() -> Self {
        let (out, said) = mpsc::channel();
        let (orders, jobs) = mpsc::channel();
        let options = Options {
            model: "some".into(),
            ..Options::default()
        };
        Self {
            engine: Engine::new(options, orders, Out(out)),
            said,
            jobs,
            waiting: VecDeque::new(),
            now: Instant::now(),
            position: 0,
            asked: Vec::new(),
            answered: 0,
            ready: 0,
        }
    }

    fn take(&mut self, step: Step, legal: &[Vec<String>]) {
        let line = match step {
            Step::Position(position) => {
                self.position = position;
                POSITIONS[position]
            }
            Step::Go(kind) => {
                let (line, held) = GOES[kind];
                let position = self.position;
                self.asked.push(Asked { position, held });
                line
            }
            Step::Stop => {
                self.asked.iter_mut().for_each(|asked| asked.held = Held::No);
                "stop"
            }
            Step::PonderHit => {
                let hit = self.asked.iter_mut().filter(|asked| asked.held == Held::UntilHit);
                hit.for_each(|asked| asked.held = Held::No);
                "ponderhit"
            }
            Step::IsReady => {
                self.ready += 1;
                "isready"
            }
            Step::Line(line) => line,
            Step::Work(succeeds) => return self.work(succeeds, legal),
            Step::Wait => {
                self.now += Duration::from_secs(2);
                return self.handle(None, legal);
            }
        };
        self.handle(Some(Event::Line(line.into())), legal);
    }

    /// Lets the search thread do its oldest job.
    fn work(&mut self, succeeds: bool, legal: &[Vec<String>]) {
        self.waiting.extend(self.jobs.try_iter());
        let Some(job) = self.waiting.pop_front() else {
            return;
        };
        let failure = || "the network has failed".to_owned();
        let event = match job {
            Job::Load(..) if succeeds => Event::Loaded(Ok("some".into())),
            Job::Load(..) => Event::Loaded(Err(failure())),
            Job::Think(task) => {
                let action = task.setup.any_move().unwrap();
                let best = worker::best(&task.setup.chess, &[action]);
                *task.control.best.lock() = Some(best.clone());
                Event::Done(task.id, if succeeds { Ok(Some(best)) } else { Err(failure()) })
            }
        };
        self.handle(Some(event), legal);
    }

    fn handle(&mut self, event: Option<Event>, legal: &[Vec<String>]) {
        self.engine.handle(event, self.now).unwrap();
        for lines in self.said.try_iter() {
            for line in String::from_utf8(lines).unwrap().lines() {
                if line == "readyok" {
                    self.ready -= 1;
                }
                let Some(best) = line.strip_prefix("bestmove ") else {
                    continue;
                };
                let asked = &self.asked[self.answered];
                self.answered += 1;
                match &legal[asked.position][..] {
                    [] => assert_eq!(best, "(none)"),
                    legal => {
                        assert!(
                            legal.iter().any(|uci| uci == best),
                            "{best} in position {}",
                            asked.position
                        );
                        assert_eq!(asked.held, Held::No, "a search was ended by nobody");
                    }
                }
            }
        }
        assert!(self.ready >= 0);
    }

    /// Ends all searches as a GUI does. Everything must be answered then.
    fn end(mut self, legal: &[Vec<String>]) {
        self.take(Step::Stop, legal);
        loop {
            self.waiting.extend(self.jobs.try_iter());
            if self.waiting.is_empty() {
                break;
            }
            self.work(true, legal);
        }
        assert_eq!((self.answered, self.ready), (self.asked.len(), 0));
        assert_eq!(self.engine.deadline(), None);
        self.handle(Some(Event::Closed), legal);
        assert!(self.engine.is_over());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// A million steps.
    #[test]
    fn every_go_gets_one_bestmove_of_its_own_position_in_order(steps in prop::collection::vec(step(), 1000)) {
        let legal = legal_moves();
        let mut talk = Talk::new();
        for step in steps {
            talk.take(step, &legal);
        }
        talk.end(&legal);
    }
}

/// The moves that are answered to these lines if the search thread does nothing before it has seen all of them.
fn answers(lines: &[&str]) -> usize {
    let legal = legal_moves();
    let mut talk = Talk::new();
    for &line in lines {
        let position = POSITIONS
            .iter()
            .position(|&known| known == line)
            .map(Step::Position);
        let go = GOES.iter().position(|&(known, _)| known == line).map(Step::Go);
        let step = match line {
            "stop" => Step::Stop,
            "ponderhit" => Step::PonderHit,
            _ => position.or(go).unwrap(),
        };
        talk.take(step, &legal);
    }
    for _ in lines {
        talk.work(true, &legal);
    }
    let answered = talk.answered;
    talk.end(&legal);
    answered
}

#[test]
fn stop_and_ponderhit_reach_searches_that_have_not_begun() {
    let [start, after, ..] = POSITIONS;
    assert_eq!(
        answers(&[start, "go infinite", "stop", after, "go infinite", "stop"]),
        2
    );
    assert_eq!(
        answers(&[start, "go nodes 50", after, "go nodes 50", start, "go nodes 50"]),
        3
    );
    let pondering = "go ponder wtime 1000 btime 1000";
    assert_eq!(answers(&[start, "go nodes 50", after, pondering, "ponderhit"]), 2);
    assert_eq!(answers(&[start, "go nodes 50", after, pondering]), 1);
    assert_eq!(answers(&[start, "go infinite", after, "go nodes 50"]), 0);
}
