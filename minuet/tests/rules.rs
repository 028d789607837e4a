//! `minuet rules` and `minuet perft` as processes: what a script on the other side of a pipe sees.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};

const START_ROW: [u32; 38] = [
    64, 129, 194, 259, 324, 197, 134, 71, 8, 9, 10, 11, 12, 13, 14, 15, 432, 433, 434, 435, 436, 437, 438,
    439, 504, 569, 634, 699, 764, 637, 574, 511, 64, 1, 1, 1, 1, 0,
];

fn minuet(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_minuet"));
    command.args(arguments);
    command
}

/// Writes lines to `minuet rules`, and gives its output.
fn answers(input: &[u8]) -> Vec<Value> {
    let mut child = minuet(&["rules"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input).unwrap());
    let Output { status, stdout, .. } = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(status.success());
    stdout
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

fn ask(request: &Value) -> Value {
    let answers = answers(format!("{request}\n").as_bytes());
    assert_eq!(answers.len(), 1);
    answers[0].clone()
}

#[test]
fn the_start_position_as_described() {
    let answer = ask(&json!({"id": 7, "game": "paco-sako", "start": null, "actions": []}));
    assert_eq!(
        answer,
        json!({
            "id": 7,
            "legal": [2, 7, 9, 10, 11, 12, 13, 14, 15, 16],
            "to_move": 0,
            "fen": "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w 0 AHah - -",
            "outcome": null,
            "row": START_ROW.to_vec(),
            "error": null,
            "required_action": "Lift",
            "no_progress": 0,
            "victory_state": "Running",
        })
    );
}

#[test]
fn fields_come_in_the_documented_order() {
    let line = format!("{}\n", json!({"id": 1, "game": "paco-sako", "trace": true}));
    let mut child = minuet(&["rules"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(line.as_bytes()).unwrap();
    let text = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let names = [
        "id",
        "legal",
        "to_move",
        "fen",
        "outcome",
        "row",
        "error",
        "required_action",
        "no_progress",
        "victory_state",
        "legal_before",
    ];
    let places: Vec<usize> = names
        .iter()
        .map(|name| text.find(&format!("\"{name}\":")).unwrap())
        .collect();
    assert!(places.is_sorted(), "{text}");
}

#[test]
fn a_trace_holds_every_legal_set() {
    let answer = ask(&json!({"game": "paco-sako", "actions": [13, 93, 53], "trace": true, "options": 7}));
    assert_eq!(
        answer["legal_before"][0],
        json!([2, 7, 9, 10, 11, 12, 13, 14, 15, 16])
    );
    assert_eq!(answer["legal_before"][1], json!([85, 93]));
    assert_eq!(answer["legal_before"].as_array().unwrap().len(), 4);
    assert_eq!(answer["legal_before"][3], answer["legal"]);
    assert_eq!(answer["legal"], json!([101, 109]));
    assert_eq!(answer["to_move"], 1);
    assert_eq!(answer["required_action"], "Place");
    assert_eq!(answer["row"].as_array().unwrap().len(), 40);
    assert_eq!(answer["id"], Value::Null);
}

/// Every kind of bad line is answered, and the lines after it still are.
#[test]
fn it_never_dies_on_a_bad_line() {
    let bad: [&[u8]; 15] = [
        b"",
        b"not json",
        b"[1,2]",
        b"{\"id\":1",
        b"\xff\xfe{}",
        br#"{"id":"a"}"#,
        br#"{"id":"a","game":"paco-saco"}"#,
        br#"{"id":"a","game":"paco-sako","start":"nonsense"}"#,
        br#"{"id":"a","game":"paco-sako","start":7}"#,
        br#"{"id":"a","game":"paco-sako","actions":[13,13]}"#,
        br#"{"id":"a","game":"paco-sako","actions":[0]}"#,
        br#"{"id":"a","game":"paco-sako","actions":["e2"]}"#,
        br#"{"id":"a","game":"paco-sako","actions":[99999999999999999999]}"#,
        br#"{"id":"a","game":"paco-sako","options":8}"#,
        br#"{"id":"a","game":"paco-sako","draw_after":3}"#,
    ];
    let mut input = bad.join(&b'\n');
    input.push(b'\n');
    input.extend(vec![b'['; 10 << 20]);
    input.extend(b"\n{\"id\":\"last\",\"game\":\"paco-sako\"}");
    let answers = answers(&input);
    assert_eq!(answers.len(), bad.len() + 2);
    let (last, errors) = answers.split_last().unwrap();
    for (answer, line) in errors
        .iter()
        .zip(bad.iter().map(|line| String::from_utf8_lossy(line)))
    {
        assert!(answer["error"].is_string(), "{line}: {answer}");
        assert_eq!(
            answer["id"],
            if line.contains(r#""id":"a""#) {
                json!("a")
            } else {
                Value::Null
            },
            "{line}"
        );
        assert_eq!(answer["legal"], Value::Null);
    }
    let text = |number: usize| errors[number]["error"].as_str().unwrap();
    assert!(text(6).contains("did you mean paco-sako?"), "{}", text(6));
    assert!(text(9).starts_with("action 1:"), "{}", text(9));
    assert!(text(14).contains("draw_after_n_repetitions"), "{}", text(14));
    assert_eq!((&last["id"], &last["error"]), (&json!("last"), &Value::Null));
}

#[test]
fn rules_can_be_switched() {
    let stalemate = "7k/8/8/8/8/8/pp6/Kp6 w 0 - - -";
    let outcome = |request: Value| ask(&request)["outcome"].clone();
    assert_eq!(
        outcome(json!({"game": "paco-sako", "start": stalemate})),
        Value::Null
    );
    assert_eq!(
        outcome(json!({"game": "paco-sako", "start": stalemate, "dead_end": "loss"})),
        "loss-of-mover"
    );

    // Knights out and back: recorded for the third time after the ninth half move, unless it is switched off.
    let round = [7, 65 + 21, 63, 65 + 45, 22, 65 + 6, 46, 65 + 62];
    let knights: Vec<u32> = round.iter().copied().cycle().take(18).collect();
    assert_eq!(outcome(json!({"game": "paco-sako", "actions": knights})), "draw");
    let unlimited = json!({"game": "paco-sako", "actions": knights, "draw_after_n_repetitions": 0});
    assert_eq!(outcome(unlimited), Value::Null);
}

#[test]
fn a_united_king_is_a_victory() {
    let fen = "7k/8/8/8/8/8/8/K6R w 0 - - -";
    let answer = ask(&json!({"game": "paco-sako", "start": fen, "actions": [8, 65 + 63]}));
    assert_eq!(answer["outcome"], "first");
    assert_eq!(answer["victory_state"], "PacoVictoryWhite");
    assert_eq!(answer["legal"], json!([]));
}

/// A client that waits for each answer before it asks again.
#[test]
fn answers_come_line_by_line() {
    let mut child = minuet(&["rules"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for id in 0..50 {
        writeln!(stdin, "{}", json!({"id": id, "game": "paco-sako"})).unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["id"], id);
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn perft_prints_counts() {
    let output = minuet(&["perft", "--game", "paco-sako", "--depth", "6", "--json"])
        .output()
        .unwrap();
    assert!(output.status.success());
    assert_eq!(
        serde_json::from_slice::<Value>(&output.stdout).unwrap(),
        json!({"counts": [10, 20, 200, 400, 4472, 8902]})
    );
    let fen = "4N3/3N3k/3sw1Ta/3p1o1e/hW1J1by1/8/2L4d/h4K2 b 29 - - -";
    let output = minuet(&["perft", "--fen", fen, "--depth", "4"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().nth(3).unwrap().ends_with(" 8078"), "{text}");
}

#[test]
fn exit_codes_tell_bad_usage_from_failure() {
    let code = |arguments: &[&str]| minuet(arguments).output().unwrap().status.code();
    assert_eq!(code(&["perft"]), Some(2));
    assert_eq!(code(&["perft", "--game", "tic-tac-toe", "--depth", "1"]), Some(2));
    assert_eq!(code(&["perft", "--depth", "0"]), Some(2));
    assert_eq!(code(&["perft", "--depth", "1", "--fen", "nonsense"]), Some(1));
    for command in ["rules", "perft"] {
        let output = minuet(&[command, "--help"]).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert!(String::from_utf8(output.stdout).unwrap().contains("Example:"));
    }
}

#[test]
fn the_games_benchmark_checks_its_counts() {
    let output = minuet(&["bench", "games", "--game", "paco-sako", "--rounds", "1", "--json"])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["games"][0]["nodes"], 1_417_416);
    assert!(report["games"][0]["nodes_per_second"].as_f64().unwrap() > 0.0);
}
