//! `minuet gtp` as a process, alone and in matches, and GNU Go in matches.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::program::{answered, fails, minuet, printed_json};

/// Plays a match of these players; returns the report.
fn report<S: AsRef<std::ffi::OsStr>>(folder: &Path, words: &str, players: &[S]) -> Value {
    let mut arena = minuet(&format!("arena {words} --json --folder"));
    printed_json(arena.arg(folder).args(players))
}

/// Our own engine as a player of others' matches.
fn own(words: &str) -> String {
    format!("gtp:{} gtp --model uniform {words}", env!("CARGO_BIN_EXE_minuet"))
}

#[test]
fn the_engine_plays_matches_of_every_game_of_the_protocol() {
    let home = tempfile::tempdir().unwrap();
    for game in ["go:5", "gomoku:9", "hex:5", "othello"] {
        let players = [
            format!("{},name=own", own(&format!("--game {game} --visits 200"))),
            "random".into(),
        ];
        let report = report(
            &home.path().join(game),
            &format!("--game {game} --games 40"),
            &players,
        );
        assert_eq!(report["games"], json!([40, 40]), "{game}");
        let endings = report["endings"].as_object().unwrap();
        assert!(!endings.contains_key("illegal-move"), "{report}");
        let score = report["pairings"][0]["estimate"]["score"].as_f64().unwrap();
        // A search without a network wins four of five games, so that 40 games decide, and 4 do not.
        assert!(score >= 0.5, "{game}: 200 visits against random moves: {score}");
    }
}

#[test]
fn matches_begin_from_stones_on_the_board() {
    let home = tempfile::tempdir().unwrap();
    let openings = home.path().join("openings.txt");
    let board = format!("{}XO{} X 0 -", "-".repeat(11), "-".repeat(12));
    std::fs::write(&openings, board).unwrap();
    let words = format!("--game go:5 --games 2 --openings {}", openings.display());
    let players = [own("--visits 10"), "random".into()];
    let report = report(&home.path().join("match"), &words, &players);
    assert_eq!(report["games"], json!([2, 2]));
}

#[test]
fn gnu_go_accepts_every_move_and_plays_legal_ones() {
    let Some(gnugo) = test_support::debian("gnugo") else {
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let players = [
        format!(
            "gtp:{} --mode gtp --chinese-rules --capture-all-dead --level 1 --seed 1,name=gnugo",
            gnugo.display()
        ),
        "uct,visits=20".into(),
        own("--visits 20"),
    ];
    let report = report(&home.path().join("match"), "--game go:7 --games 4", &players);
    assert_eq!(report["games"], json!([12, 12]));
    assert_eq!(report["endings"].get("illegal-move"), None, "{report}");
    let mut found = report["players"].as_array().unwrap().iter();
    let gnugo = found.find(|player| player["name"] == "gnugo").unwrap();
    assert!(gnugo["points"].as_f64() >= Some(6.0), "{report}");
}

#[test]
fn the_engine_answers_a_pipe_and_ends_with_it() {
    let lines =
        "1 boardsize 9\r\n\r\n2 genmove b\r\n# nothing\nlz-analyze w 10\n3 nonsense\n\n4 quit\nname\n";
    let mut engine = minuet("gtp --game go:9 --model uniform --visits 20");
    let done = answered(&mut engine, lines);
    assert_eq!(done.code, Some(0), "{done:?}");
    let answers: Vec<&str> = done.out.split_terminator("\n\n").collect();
    assert_eq!(answers.len(), 5, "{}", done.out);
    assert_eq!(
        (answers[0], answers[3], answers[4]),
        ("=1", "?3 unknown command", "=4")
    );
    assert!(
        answers[1].starts_with("=2 ") && answers[2].starts_with("=\ninfo move "),
        "{}",
        done.out
    );
    // The end of the input ends an analysis too.
    let done = answered(&mut minuet("gtp --model uniform"), "lz-analyze");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(
        done.out.ends_with("\n\n") && done.out.starts_with("=\ninfo move "),
        "{}",
        done.out
    );
}

#[test]
fn a_network_of_another_board_is_refused_by_name() {
    fails(
        &mut minuet("gtp --game go:9 --model othello --provider cpu"),
        1,
        "othello plays othello, not go:9",
    );
    fails(
        &mut minuet("gtp --game chess --model uniform"),
        1,
        "GTP has no moves for chess",
    );
    let mut engine = minuet("gtp --model gomoku --provider cpu");
    let done = answered(&mut engine, "boardsize 15\ngenmove b\n");
    let refused = "? unacceptable size: gomoku plays gomoku:8, not gomoku:15\n\n= ";
    assert!(done.out.starts_with(refused), "{done:?}");
}
