//! Random commands at any speed against a small model of the protocol: each command has exactly one answer, in order, with its number;
//! `play` is accepted where the rules allow the move, and each move of the engine is legal.

use std::sync::{
    Mutex,
    mpsc::{Receiver, sync_channel},
};

use games::{
    Action, Player,
    erased::{AnyGame, AnyState},
    registry,
};
use proptest::prelude::*;

use super::{board::Board, engine::Engine, thinking::Thinking};
use crate::network::UNIFORM;

/// Answer of the engine to one command: the mark, the number, and the text.
type Answer = (char, String, String);

fn engine<'a>(game: &str, heard: Receiver<String>, out: &'a mut Vec<u8>) -> Engine<&'a mut Vec<u8>> {
    let board = Board::new(registry::find(game).unwrap()).unwrap();
    let thinking = Thinking::new(UNIFORM.into(), None, Some(3), 0.0);
    Engine::new(board, thinking, heard, out)
}

/// Sends lines to an engine, at most `ahead` of them before it reads them, and returns its output.
fn said(game: &str, lines: &[String], ahead: usize) -> String {
    let (sender, heard) = sync_channel(ahead);
    let mut out = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(move || lines.iter().try_for_each(|line| sender.send(line.clone())));
        engine(game, heard, &mut out).run().unwrap();
    });
    String::from_utf8(out).unwrap()
}

fn answers(said: &str) -> Vec<Answer> {
    let answers = said.split_terminator("\n\n").map(|answer| {
        let (head, rest) = answer.split_once('\n').unwrap_or((answer, ""));
        let (word, text) = head.split_once(' ').unwrap_or((head, ""));
        let (mark, id) = word.split_at(1);
        (
            mark.chars().next().unwrap(),
            id.into(),
            format!("{text}\n{rest}").trim().into(),
        )
    });
    answers.collect()
}

/// The one answer to each line, the numbers left out.
fn talk(game: &str, lines: &[&str]) -> Vec<String> {
    let lines: Vec<String> = lines.iter().map(|&line| line.into()).collect();
    let answers = answers(&said(game, &lines, 100)).into_iter();
    answers
        .map(|(mark, id, text)| format!("{mark}{id} {text}").trim_end().to_owned())
        .collect()
}

/// Name of a square in the protocol, in small letters, independent of the engine's.
fn vertex(state: &dyn AnyState, size: u32, action: Action) -> String {
    let letters = match state.game().name {
        "hex" => b"abcdefghij",
        _ => b"abcdefghjk",
    };
    match (action < size * size, state.game().name) {
        (true, _) => format!(
            "{}{}",
            char::from(letters[(action % size) as usize]),
            action / size + 1
        ),
        (false, "hex") => "swap-pieces".into(),
        (false, _) => "pass".into(),
    }
}

/// The game as the GUI knows it.
struct Model {
    game: &'static AnyGame,
    /// State before the first move, and after each move.
    states: Vec<Box<dyn AnyState>>,
}

impl Model {
    fn new(game: &'static AnyGame) -> Self {
        let variant = game.variant(&game.people_rules(), None).unwrap();
        Self {
            game,
            states: vec![variant.start(None).unwrap()],
        }
    }

    fn size(&self) -> u32 {
        self.game.size().unwrap_or(8)
    }

    fn state(&self) -> &dyn AnyState {
        &**self.states.last().unwrap()
    }

    /// The legal moves of a player, with the states after them. The other player may pass first.
    fn moves(&self, player: Player) -> Vec<(String, Box<dyn AnyState>)> {
        let mut state = self.state().copy();
        let mut legal = Vec::new();
        if state.outcome().is_none() && state.to_move() != player {
            state.legal_actions(&mut legal);
            match legal.last() {
                Some(&pass) if vertex(&*state, self.size(), pass) == "pass" => state.play(pass).unwrap(),
                _ => return Vec::new(),
            }
        }
        state.legal_actions(&mut legal);
        let after = legal.iter().map(|&action| {
            let mut after = state.copy();
            after.play(action).unwrap();
            (vertex(&*state, self.size(), action), after)
        });
        after.collect()
    }

    /// Plays a move if it is legal.
    fn play(&mut self, player: Player, name: &str) -> bool {
        let mut moves = self.moves(player).into_iter();
        let found = moves.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.is_some_and(|(_, state)| {
            self.states.push(state);
            true
        })
    }
}

#[derive(Clone, Debug)]
enum Step {
    Play(bool, u16),
    Genmove(&'static str, bool),
    Look(&'static str, bool),
    Undo,
    Clear,
    Boardsize(u8),
    /// A command that succeeds and changes nothing that the model knows.
    Other(&'static str),
    /// A line that is refused.
    Wrong(&'static str),
    /// A line without a command.
    Silent(&'static str),
}

fn step() -> impl Strategy<Value = Step> {
    let others = [
        "name",
        "version",
        "protocol_version",
        "list_commands",
        "showboard",
    ];
    let times = [
        "time_settings 0 1 1",
        "time_settings 1 0 0",
        "time_left w 0 1",
        "known_command x",
    ];
    let wrong = [
        "nonsense",
        "play",
        "genmove x",
        "genmove",
        "boardsize 99",
        "time_left b x 0",
    ];
    let silent = ["", "# play b d4", "\r", " \t"];
    let others: Vec<&str> = others.into_iter().chain(times).collect();
    prop_oneof![
        20 => (any::<bool>(), any::<u16>()).prop_map(|(black, at)| Step::Play(black, at)),
        6 => (prop::sample::select(vec!["genmove", "lz-genmove_analyze"]), any::<bool>())
            .prop_map(|(name, black)| Step::Genmove(name, black)),
        3 => (prop::sample::select(vec!["reg_genmove", "lz-analyze"]), any::<bool>())
            .prop_map(|(name, black)| Step::Look(name, black)),
        4 => Just(Step::Undo),
        1 => Just(Step::Clear),
        1 => (5u8..10).prop_map(Step::Boardsize),
        2 => prop::sample::select(others).prop_map(Step::Other),
        2 => prop::sample::select(wrong.to_vec()).prop_map(Step::Wrong),
        1 => prop::sample::select(silent.to_vec()).prop_map(Step::Silent),
    ]
}

fn player(black: bool) -> (Player, &'static str) {
    match black {
        true => (Player::First, "B"),
        false => (Player::Second, "white"),
    }
}

/// The line of a step. A move is one of the player's, or a point of the board that may have a stone.
fn line(step: &Step, size: u32) -> String {
    match *step {
        Step::Play(black, at) => {
            let at = u32::from(at) % (size * size + 1);
            let letter = b"ABCDEFGHJ"[(at % size) as usize];
            let name = match at / size {
                rank if rank < size => format!("{}{}", char::from(letter), rank + 1),
                _ => "PASS".into(),
            };
            format!("play {} {name}", player(black).1)
        }
        Step::Genmove(name, black) | Step::Look(name, black) => format!("{name} {}", player(black).1),
        Step::Undo => "undo".into(),
        Step::Clear => "clear_board".into(),
        Step::Boardsize(size) => format!("boardsize {size}"),
        Step::Other(line) | Step::Wrong(line) | Step::Silent(line) => line.into(),
    }
}

/// Follows the talk with the model.
fn check(game: &str, steps: &[Step], ahead: usize) {
    let mut model = Model::new(registry::find(game).unwrap());
    // The sizes of the board do not depend on the answers.
    let mut size = model.size();
    let mut lines = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        if let Step::Boardsize(wanted) = *step
            && (model
                .game
                .sizes
                .is_some_and(|sizes| (sizes.least..=sizes.most).contains(&wanted.into())))
        {
            size = wanted.into();
        }
        lines.push(match step {
            Step::Silent(_) => line(step, size),
            _ => format!("{number} {}", line(step, size)),
        });
    }
    let said = said(game, &lines, ahead);
    let mut answers = answers(&said).into_iter();
    for (number, step) in steps.iter().enumerate() {
        if let Step::Silent(_) = step {
            continue;
        }
        let (mark, id, text) = answers.next().unwrap();
        assert_eq!(id, number.to_string(), "{step:?}: {text}");
        let line = line(step, model.size());
        let expected = match *step {
            Step::Play(black, _) => model.play(player(black).0, line.split(' ').nth(2).unwrap()),
            Step::Genmove(_, black) => {
                let after_end =
                    model.state().outcome().is_some() && ["go", "othello"].contains(&model.game.name);
                let can = !model.moves(player(black).0).is_empty();
                let chosen = text.lines().last().unwrap_or_default();
                let chosen = chosen.strip_prefix("play ").unwrap_or(chosen);
                if after_end {
                    assert_eq!(chosen, "pass");
                } else if can {
                    assert!(model.play(player(black).0, chosen), "{line}: {text}");
                }
                after_end || can
            }
            Step::Look(name, black) => {
                let moves = model.moves(player(black).0);
                let chosen = match name {
                    "lz-analyze" => text.split(' ').nth(2),
                    _ => Some(text.as_str()),
                };
                let is_legal = |chosen: &str| moves.iter().any(|(name, _)| name.eq_ignore_ascii_case(chosen));
                assert!(moves.is_empty() || chosen.is_some_and(is_legal), "{line}: {text}");
                !moves.is_empty()
            }
            Step::Undo => {
                let has_move = model.states.len() > 1;
                model.states.truncate((model.states.len() - 1).max(1));
                has_move
            }
            Step::Clear => {
                model.states.truncate(1);
                true
            }
            Step::Boardsize(size) => {
                let name = match model.game.sizes {
                    Some(_) => format!("{}:{size}", model.game.name),
                    None => model.game.name.into(),
                };
                let found = registry::find(&name).ok();
                let found = found.filter(|game| game.sizes.is_some() || size == 8);
                if let Some(game) = found {
                    model = Model::new(game);
                }
                found.is_some()
            }
            Step::Other(_) => true,
            Step::Wrong(_) => false,
            Step::Silent(_) => unreachable!(),
        };
        assert_eq!(mark == '=', expected, "{line}: {mark}{text}");
    }
    assert_eq!(answers.next(), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn each_command_gets_one_answer_in_order_and_each_move_is_legal(
        game in prop::sample::select(vec!["go:5", "gomoku:8", "hex:6", "othello"]),
        steps in prop::collection::vec(step(), 100),
        ahead in prop::sample::select(vec![0usize, 1, 1000]),
    ) {
        check(game, &steps, ahead);
    }

    #[test]
    fn no_text_stops_the_engine(lines in prop::collection::vec("[ -~\\t\\r]{0,30}", 0..20)) {
        let commands = lines.iter().filter_map(|line| super::command::Command::read(line));
        let mut commands: Vec<String> = commands.map(|command| command.name).collect();
        if let Some(quit) = commands.iter().position(|name| name == "quit") {
            commands.truncate(quit + 1);
        }
        prop_assert_eq!(answers(&said("go:5", &lines, 1000)).len(), commands.len());
    }
}

#[test]
fn a_game_of_go_is_played_taken_back_and_scored() {
    let talked = talk(
        "go:9",
        &[
            "boardsize 5",
            "komi 0.5",
            "1 play b c3",
            "play w c3",
            "play w i1",
            "play black D4",
            "play w pass",
            "final_score",
            "undo",
            "undo",
            "play b c4",
            "play w c4",
            "komi 0.3",
            "known_command komi",
            "clear_board",
            "final_score",
            "komi nan",
            "quit",
            "name",
        ],
    );
    assert_eq!(
        talked,
        [
            "=",
            "=",
            "=1",
            "? illegal move: c3: the point has a stone",
            "? illegal move: \"i1\" is not a point of the board, a1 to e5",
            "=",
            "=",
            "= B+24.5",
            "=",
            "=",
            "=",
            "? illegal move: c4: the point has a stone",
            "? cannot start a game of go: `komi` is 0.3; multiples of 0.5 from -361 to 361 are possible",
            "= true",
            "=",
            "= W+0.5",
            "? syntax error: \"nan\" is not a number",
            "=",
        ]
    );
}

#[test]
fn two_passes_end_a_game_of_go_and_then_the_engine_passes() {
    let talked = talk(
        "go:9",
        &[
            "play b pass",
            "play w pass",
            "genmove b",
            "play b c3",
            "final_score",
        ],
    );
    let over = "? illegal move: the game is over. White has won by 7.5 points (two passes).";
    assert_eq!(talked, ["=", "=", "= pass", over, "= W+7.5"]);
}

#[test]
fn a_game_is_taken_over_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let game = path("game.sgf", "(;GM[1]SZ[13]KM[6.5];B[dd];W[jj];B[])");
    let illegal = path("illegal.sgf", "(;GM[1]SZ[13];B[dd];W[dd])");
    let talked = talk(
        "go:9",
        &[
            &format!("loadsgf {game}"),
            "play w pass",
            "final_score",
            &format!("loadsgf {game} 3"),
            "undo",
            "play w d10",
            &format!("loadsgf {illegal}"),
            "loadsgf no-such-file",
            &format!("loadsgf {game} 0"),
            "undo",
            "play w k4",
        ],
    );
    assert_eq!(talked[..4], ["= white", "=", "= W+6.5", "= black"]);
    assert_eq!(talked[4], "=");
    assert!(talked[5].starts_with("? illegal move: "), "{}", talked[5]);
    assert!(
        talked[6].starts_with("? cannot load file: move 2 (W[dd]) is not legal"),
        "{}",
        talked[6]
    );
    assert!(
        talked[7].starts_with("? cannot load file: No such file"),
        "{}",
        talked[7]
    );
    assert_eq!(talked[8], "? syntax error: the number of a move is at least 1");
    // The refused commands have changed nothing.
    assert_eq!(talked[9..], ["=", "="]);
}

#[test]
fn games_with_one_stone_a_turn_keep_their_turns() {
    let talked = talk(
        "gomoku:15",
        &[
            "play b j10",
            "play b k10",
            "boardsize 4",
            "komi 1",
            "final_score",
            "boardsize 19",
            "play w a1",
        ],
    );
    assert_eq!(talked[1], "? illegal move: it is white's turn");
    assert!(talked[2].starts_with("? unacceptable size: "), "{}", talked[2]);
    assert_eq!(talked[3], "? unknown command");
    assert_eq!(talked[4], "? cannot score: the game is not over");
    assert_eq!(talked[5..], ["=", "? illegal move: it is black's turn"]);
}

/// A player who has no move in Othello passes without a command.
#[test]
fn a_pass_of_othello_need_not_be_told() {
    let talked = talk(
        "othello",
        &[
            "play b d3",
            "play b c3",
            "genmove w",
            "boardsize 8",
            "boardsize 10",
        ],
    );
    assert_eq!(talked[0], "=");
    assert_eq!(talked[1], "? illegal move: it is white's turn");
    assert_eq!(talked[2].len(), "= C3".len());
    assert_eq!(talked[3], "=");
    assert!(talked[4].starts_with("? unacceptable size"), "{}", talked[4]);
}

/// Reports come until the next line, which is answered afterwards.
#[test]
fn an_analysis_ends_with_the_next_line() {
    struct Notify<'a>(&'a Mutex<Vec<u8>>, std::sync::mpsc::Sender<()>);

    impl std::io::Write for Notify<'_> {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            if bytes.ends_with(b"\n") {
                let _ = self.1.send(());
            }
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    let (sender, heard) = sync_channel(8);
    let (told, written) = std::sync::mpsc::channel();
    let out = Mutex::new(Vec::new());
    let board = Board::new(registry::find("go:9").unwrap()).unwrap();
    let thinking = Thinking::new(UNIFORM.into(), None, None, 0.0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            Engine::new(board, thinking, heard, Notify(&out, told))
                .run()
                .unwrap()
        });
        sender.send("7 lz-analyze b 1".into()).unwrap();
        // The head of the answer, and three reports.
        while out.lock().unwrap().iter().filter(|&&byte| byte == b'\n').count() < 4 {
            written.recv().unwrap();
        }
        sender.send("8 name".into()).unwrap();
        drop(sender);
    });
    let said = String::from_utf8(out.into_inner().unwrap()).unwrap();
    let (analysis, rest) = said.split_once("\n\n").unwrap();
    assert_eq!(rest, "=8 Minuet\n\n");
    let mut lines = analysis.lines();
    assert_eq!(lines.next(), Some("=7"));
    let line = lines.last().unwrap();
    let words: Vec<&str> = line.split(" info ").next().unwrap().split(' ').collect();
    assert_eq!(
        [words[0], words[1], words[3], words[5], words[7]],
        ["info", "move", "visits", "winrate", "prior"]
    );
    assert_eq!([words[9], words[10], words[11]], ["order", "0", "pv"]);
    assert_eq!(words[2], words[12]);
    assert!(words[6].parse::<u32>().unwrap() <= 10_000);
}
