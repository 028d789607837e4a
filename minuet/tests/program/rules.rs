//! `minuet rules` and `minuet perft` as processes, through pipes.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Output, Stdio},
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

/// Starts `minuet rules` with pipes.
fn rules() -> Child {
    minuet(&["rules"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Writes lines to `minuet rules`, and returns its output.
fn answers(input: &[u8]) -> Vec<Value> {
    let mut child = rules();
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
fn a_bad_line_never_ends_the_process() {
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

    // Knights out and back: the position occurs for the third time after the ninth half move, a draw unless switched off.
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

/// A client that waits for each answer before it sends the next request.
#[test]
fn answers_come_line_by_line() {
    let mut child = rules();
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
    assert_eq!(code(&["perft", "--depth", "1", "--fen", "nonsense"]), Some(2));
    assert_eq!(code(&["query", "no/such/model.onnx"]), Some(1));
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

#[test]
fn chess_speaks_uci_and_names_policy_entries() {
    let answer = ask(&json!({"id": 1, "game": "chess", "actions": ["e2e4", "e7e5", "g1f3"], "trace": true}));
    assert_eq!(answer["to_move"], 1);
    assert_eq!(
        answer["fen"],
        "rnbqkbnr/pppp1ppp/8/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R b KQkq - 1 2"
    );
    assert_eq!(answer["row"].as_array().unwrap().len(), 32 + 1 + 8);
    assert_eq!(answer["legal_before"].as_array().unwrap().len(), 4);
    let legal = answer["legal"].as_array().unwrap();
    let policy = answer["policy"].as_object().unwrap();
    assert_eq!((legal.len(), policy.len()), (29, 29));
    assert!(legal.iter().all(|uci| policy.contains_key(uci.as_str().unwrap())));
    // The board is rotated by 180°: a knight from b8 to c6 moves from rank 0, file 6 by two ranks and one file to the left.
    assert_eq!(policy["b8c6"], 63 * 64 + 6);

    let answer =
        ask(&json!({"game": "chess", "start": "8/P6k/8/8/8/8/8/K7 w - - 0 1", "underpromotions": false}));
    assert_eq!(answer["legal"].as_array().unwrap().len(), 4);
    let answer =
        ask(&json!({"game": "chess", "start": "8/P6k/8/8/8/8/8/K7 w - - 0 1", "actions": ["a7a8n"]}));
    assert_eq!(
        (answer["outcome"].as_str(), &answer["legal"]),
        (Some("draw"), &json!([]))
    );
}

#[test]
fn othello_and_connect_four_count_their_actions() {
    let answer = ask(&json!({"game": "othello", "actions": [19]}));
    assert_eq!(answer["legal"], json!([18, 20, 34]));
    assert_eq!(
        answer["fen"],
        format!("{}X-------XX------XO{} O", "-".repeat(19), "-".repeat(27))
    );
    let answer = ask(&json!({"game": "connect-four", "actions": [3, 0, 3, 0, 3, 0, 3]}));
    assert_eq!(
        (
            answer["outcome"].as_str(),
            &answer["legal"],
            answer["fen"].as_str()
        ),
        (Some("first"), &json!([]), Some("7/7/3x3/o2x3/o2x3/o2x3 o"))
    );
}

#[test]
fn board_games_refuse_invalid_requests_with_a_reason() {
    for (request, error) in [
        (
            json!({"game": "chess", "actions": ["e2e4", "e2e4"]}),
            "action 1: e2e4 is not legal here",
        ),
        (
            json!({"game": "chess", "actions": [5]}),
            "action 0: 5 is not a move in UCI notation",
        ),
        (
            json!({"game": "othello", "actions": [19, 64]}),
            "action 1: 64 is not legal",
        ),
        (
            json!({"game": "othello", "actions": [65]}),
            "action 0: 65 is not an action number (0 to 64)",
        ),
        (
            json!({"game": "connect-four", "actions": [0, 0, 0, 0, 0, 0, 0]}),
            "action 6: 0 is not legal: the column is full",
        ),
        (
            json!({"game": "connect-four", "start": "nonsense"}),
            "cannot start a game of connect-four",
        ),
        (json!({"game": "othello", "pie": 1}), "unknown field `pie`"),
    ] {
        let answer = ask(&request);
        let found = answer["error"].as_str().unwrap();
        assert!(found.starts_with(error), "{request}: {found}");
        assert_eq!(answer["legal"], Value::Null);
    }
}

#[test]
fn perft_of_the_board_games() {
    for (game, counts) in [
        ("chess", [20, 400, 8902, 197_281]),
        ("othello", [4, 12, 56, 244]),
        ("connect-four", [7, 49, 343, 2401]),
    ] {
        let output = minuet(&["perft", "--game", game, "--depth", "4", "--json"])
            .output()
            .unwrap();
        let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(printed, json!({ "counts": counts }), "{game}");
    }
}

/// The examples of `minuet solve --help` run as written, and print the program as a tree and in words.
#[test]
fn the_examples_of_solve_help_run() {
    let minuet = env!("CARGO_BIN_EXE_minuet");
    let help = Command::new(minuet).args(["solve", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let lines = help.lines().map(str::trim);
    let examples: Vec<&str> = lines
        .filter_map(|line| line.strip_prefix("minuet solve "))
        .collect();
    assert_eq!(examples.len(), 2, "{help}");
    let place = tempfile::tempdir().unwrap();
    let written = Command::new(minuet)
        .args(["bench", "tasks", "--write", "runs/tasks"])
        .current_dir(place.path())
        .output()
        .unwrap();
    assert!(written.status.success(), "{written:?}");
    for example in examples {
        let done = Command::new("bash")
            .args(["-c", &format!("{minuet} solve {example}")])
            .current_dir(place.path())
            .output()
            .unwrap();
        assert!(done.status.success(), "{example}: {done:?}");
        let text = String::from_utf8(done.stdout).unwrap();
        for part in [
            "solved in",
            "0 Generator 1:width=",
            "The program in words:\nA ",
            "MARK_COMPLETE of imp 0",
        ] {
            assert!(text.contains(part), "{example}: no {part:?} in\n{text}");
        }
        assert!(
            !text.contains('\u{1b}'),
            "no terminal, no picture of the search: {text}"
        );
    }
}

/// `minuet solve --task` solves a pair of grids of one colour each, and a single grid. The printed moves are played by the rules.
#[test]
fn a_task_is_solved_and_its_moves_lead_to_the_grids() {
    let grid = |colour: u8| vec![vec![colour; 8]; 8];
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("task.json");
    let task = json!({
        "train": [{"input": grid(0), "output": grid(5)}],
        "test": [{"input": grid(2)}],
    });
    std::fs::write(&file, task.to_string()).unwrap();
    let done = minuet(&[
        "solve", "--model", "uniform", "--visits", "2000", "--json", "--task",
    ])
    .arg(&file)
    .output()
    .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let solved: Vec<Value> = String::from_utf8(done.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let names: Vec<&Value> = solved.iter().map(|line| &line["problem"]).collect();
    assert_eq!(names, ["train:0", "test:0"]);
    for (line, grids) in solved.iter().zip([&[0, 5][..], &[2]]) {
        assert_eq!(
            (&line["solved"], &line["ending"]),
            (&json!(true), &json!("solved")),
            "{line}"
        );
        let moves: Vec<Value> = line["moves"]
            .as_array()
            .unwrap()
            .iter()
            .map(|step| json!([step[0], step[1]]))
            .collect();
        let mut request =
            json!({"id": 1, "game": "generator", "start": null, "actions": moves, "target": grid(grids[0])});
        if let Some(&second) = grids.get(1) {
            request["second_target"] = json!(grid(second));
        }
        let answer = ask(&request);
        assert_eq!(
            (&answer["error"], &answer["outcome"]),
            (&Value::Null, &json!("first")),
            "{answer}"
        );
        assert_eq!(answer["render"], json!(grid(*grids.last().unwrap())));
        assert_eq!(answer["clan"], line["clan"]);
        // One move less does not reach the last grid.
        request["actions"].as_array_mut().unwrap().pop();
        assert_eq!(ask(&request)["outcome"], Value::Null);
    }
}

/// As in `minuet perft | head`: the reader has left before anything is written.
#[test]
fn a_reader_that_leaves_early_causes_no_error() {
    let mut child = minuet(&["perft", "--game", "chess", "--depth", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let said = child.wait_with_output().unwrap().stderr;
    assert_eq!(String::from_utf8_lossy(&said), "");
}
