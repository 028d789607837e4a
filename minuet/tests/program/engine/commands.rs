//! `minuet uci` through a pipe, without a network: commands that come faster than answers, and texts of other programs.

use games::{
    Game as _,
    chess::{Chess, Rules},
};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::support::program::{answered, minuet, printed_json};

/// Returns the answers of the engine to lines that it reads at once: the moves, and all that it said.
fn talked(lines: &[String]) -> (Vec<String>, String) {
    let done = answered(&mut minuet("uci --model uniform"), lines.join("\n") + "\n");
    assert_eq!(done.code, Some(0), "{done:?}");
    let moves = done.out.lines().filter_map(|line| line.strip_prefix("bestmove "));
    let moves = moves.map(|best| best.split(' ').next().unwrap().to_owned());
    (moves.collect(), done.out)
}

/// Returns the legal moves after these moves from the start.
fn legal_after(moves: &[&str]) -> Vec<String> {
    let mut chess = Chess::start(&Rules::default(), None).unwrap();
    for uci in moves {
        chess.play(chess.action_of_uci(uci).unwrap()).unwrap();
    }
    let mut actions = Vec::new();
    chess.moves(&mut actions);
    actions.into_iter().map(|action| chess.uci(action)).collect()
}

#[test]
fn commands_that_come_at_once_are_all_answered_in_their_own_positions() {
    let game = ["e2e4", "e7e5", "g1f3", "b8c6", "f1b5", "a7a6", "b5a4", "g8f6"];
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let (mut lines, mut asked) = (Vec::new(), Vec::new());
    for _ in 0..2000 {
        let length = random.random_range(0..game.len());
        lines.push(format!("position startpos moves {}", game[..length].join(" ")));
        let go = ["nodes 20", "infinite", "ponder movetime 1", "movetime 1"][random.random_range(0..4)];
        lines.push(format!("go {go}"));
        asked.push(length);
        let more = ["stop", "ponderhit", "isready", "ucinewgame", ""][random.random_range(0..5)];
        lines.push(more.into());
    }
    lines.push("stop".into());
    let (moves, _) = talked(&lines);
    assert_eq!(moves.len(), asked.len());
    let legal: Vec<Vec<String>> = (0..game.len())
        .map(|length| legal_after(&game[..length]))
        .collect();
    for (uci, length) in moves.iter().zip(asked) {
        assert!(legal[length].contains(uci), "{uci} after {length} moves");
    }
}

#[test]
fn what_cannot_be_read_is_said_and_answered() {
    let number = |text: &str| vec!["position startpos".into(), format!("go {text}")];
    for text in [
        "movetime infinite",
        "wtime 60000.0 btime 60000.0 depth 1",
        "nodes 1e6",
        "depth 99999999999999999999",
    ] {
        let (moves, said) = talked(&number(text));
        assert!(moves.len() == 1 && legal_after(&[]).contains(&moves[0]), "{said}");
        assert!(said.contains("info string error: "), "{said}");
    }
    for position in [
        "position",
        "position fen 8/8",
        "position startpos moves e2e5",
        "position nowhere",
    ] {
        let (moves, said) =
            talked(&[position, "go nodes 9", "position startpos", "go nodes 9"].map(String::from));
        assert!(
            moves.len() == 2 && moves[0] == "(none)" && moves[1] != "(none)",
            "{said}"
        );
    }
}

#[test]
fn what_comes_before_quit_is_answered() {
    let lines = [
        "isready",
        "position startpos",
        "go nodes 9",
        "go infinite",
        "quit",
        "go nodes 9",
    ];
    let (moves, said) = talked(&lines.map(String::from));
    assert_eq!(moves.len(), 2, "{said}");
    assert!(said.contains("readyok"), "{said}");
}

/// FENs as programs write them, and the position that they mean.
#[test]
fn fens_of_other_programs_are_read_alike_everywhere() {
    let board = "8/P6k/8/8/8/8/8/K7 w";
    let position = format!("{board} - - 0 1");
    for rest in ["- -", "- - 0", "- - 0 0", "KQkq - 0 1"] {
        for mark in ["", "\u{feff}"] {
            let fen = format!("{mark}{board} {rest}");
            let request = json!({"game": "chess", "start": fen, "actions": ["a7a8Q"]});
            let answer = answered(&mut minuet("rules"), format!("{mark}{request}\n")).out;
            let answer: Value = serde_json::from_str(&answer).unwrap();
            assert_eq!(answer["fen"], "Q7/7k/8/8/8/8/8/K7 b - - 0 1", "{fen:?}: {answer}");

            let mut play = minuet("play --game chess --opponent random --ascii --start");
            let seen = answered(play.arg(&fen), format!("{mark}position\nquit\n"));
            assert!(seen.out.contains(&position), "{fen:?}: {seen:?}");

            let mut query = minuet("query chess --provider cpu --json --fen");
            assert_eq!(printed_json(query.arg(&fen))["position"], position, "{fen:?}");

            let lines = [
                format!("{mark}uci"),
                format!("position fen {fen} moves a7a8Q"),
                "go nodes 9".into(),
            ];
            let (moves, said) = talked(&lines);
            assert!(
                said.contains("uciok") && moves[0].starts_with('h'),
                "{fen:?}: {said}"
            );
        }
    }
}
