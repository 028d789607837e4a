//! `minuet rules` and `minuet perft` as processes, through pipes.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::support::program::{answered, fails, minuet, printed, printed_json, printed_lines};

const START_ROW: [u32; 38] = [
    64, 129, 194, 259, 324, 197, 134, 71, 8, 9, 10, 11, 12, 13, 14, 15, 432, 433, 434, 435, 436, 437, 438,
    439, 504, 569, 634, 699, 764, 637, 574, 511, 64, 1, 1, 1, 1, 0,
];

/// Writes lines to `minuet rules`, and returns its output.
fn answers(input: &[u8]) -> Vec<Value> {
    let done = answered(&mut minuet("rules"), input);
    assert_eq!(done.code, Some(0), "{}", done.error);
    let lines = done.out.lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Checks that the answer to a request has these fields. Returns the answer.
#[track_caller]
fn expect(request: Value, fields: Value) -> Value {
    let answer = ask(&request);
    for (name, value) in fields.as_object().unwrap() {
        assert_eq!(answer[name], *value, "{request}: {answer}");
    }
    answer
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
    let line = "{\"id\":1,\"game\":\"paco-sako\",\"trace\":true}\n";
    let text = answered(&mut minuet("rules"), line).out;
    let names =
        "id legal to_move fen outcome row error required_action no_progress victory_state legal_before";
    let place = |name| text.find(&format!("\"{name}\":")).unwrap();
    let places: Vec<usize> = names.split(' ').map(place).collect();
    assert!(places.is_sorted(), "{text}");
}

#[test]
fn a_trace_holds_every_legal_set() {
    let answer = expect(
        json!({"game": "paco-sako", "actions": [13, 93, 53], "trace": true, "options": 7}),
        json!({"id": null, "to_move": 1, "required_action": "Place", "legal": [101, 109]}),
    );
    let start = json!([2, 7, 9, 10, 11, 12, 13, 14, 15, 16]);
    let sets = answer["legal_before"].as_array().unwrap();
    assert_eq!((&sets[0], &sets[1]), (&start, &json!([85, 93])));
    assert_eq!((sets.len(), &sets[3]), (4, &answer["legal"]));
    assert_eq!(answer["row"].as_array().unwrap().len(), 40);
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
    for (answer, line) in errors.iter().zip(bad) {
        let line = String::from_utf8_lossy(line);
        assert!(answer["error"].is_string(), "{line}: {answer}");
        let has_id = line.contains(r#""id":"a""#);
        assert_eq!(
            answer["id"],
            if has_id { json!("a") } else { Value::Null },
            "{line}"
        );
        assert_eq!(answer["legal"], Value::Null);
    }
    // The last line is too long, and nothing of it is read.
    assert_eq!(errors[bad.len()]["id"], Value::Null);
    let text = |number: usize| errors[number]["error"].as_str().unwrap();
    assert!(text(6).contains("did you mean paco-sako?"), "{}", text(6));
    assert!(text(9).starts_with("action 1:"), "{}", text(9));
    assert!(text(14).contains("draw_after_n_repetitions"), "{}", text(14));
    assert_eq!((&last["id"], &last["error"]), (&json!("last"), &Value::Null));
}

#[test]
fn rules_can_be_switched() {
    let stalemate = "7k/8/8/8/8/8/pp6/Kp6 w 0 - - -";
    // Knights out and back: the position occurs for the third time after the ninth half move, a draw unless switched off.
    let round = [7, 65 + 21, 63, 65 + 45, 22, 65 + 6, 46, 65 + 62];
    let knights: Vec<u32> = round.iter().copied().cycle().take(18).collect();
    for (mut request, outcome) in [
        (json!({"start": stalemate}), json!(null)),
        (
            json!({"start": stalemate, "dead_end": "loss"}),
            json!("loss-of-mover"),
        ),
        (json!({"actions": knights}), json!("draw")),
        (
            json!({"actions": knights, "draw_after_n_repetitions": 0}),
            json!(null),
        ),
    ] {
        request["game"] = "paco-sako".into();
        expect(request, json!({"error": null, "outcome": outcome}));
    }
}

#[test]
fn a_united_king_is_a_victory() {
    expect(
        json!({"game": "paco-sako", "start": "7k/8/8/8/8/8/8/K6R w 0 - - -", "actions": [8, 65 + 63]}),
        json!({"outcome": "first", "victory_state": "PacoVictoryWhite", "legal": []}),
    );
}

/// A client that waits for each answer before it sends the next request.
#[test]
fn answers_come_line_by_line() {
    let pipes = &mut minuet("rules");
    let child = pipes.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.unwrap();
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
    for (words, counts) in [
        ("paco-sako --depth 6", &[10, 20, 200, 400, 4472, 8902][..]),
        ("chess --depth 4", &[20, 400, 8902, 197_281]),
        ("othello --depth 4", &[4, 12, 56, 244]),
        ("connect-four --depth 4", &[7, 49, 343, 2401]),
    ] {
        let found = printed_json(&mut minuet(&format!("perft --json --game {words}")));
        assert_eq!(found, json!({ "counts": counts }), "{words}");
    }
    let fen = "4N3/3N3k/3sw1Ta/3p1o1e/hW1J1by1/8/2L4d/h4K2 b 29 - - -";
    let text = printed(minuet("perft --depth 4 --fen").arg(fen));
    assert!(text.lines().nth(3).unwrap().ends_with(" 8078"), "{text}");
}

#[test]
fn exit_codes_tell_bad_usage_from_failure() {
    for (code, words) in [
        (2, "perft"),
        (2, "perft --game tic-tac-toe --depth 1"),
        (2, "perft --depth 0"),
        (2, "perft --depth 1 --fen nonsense"),
        (1, "query no/such/model.onnx"),
    ] {
        fails(&mut minuet(words), code, "");
    }
}

#[test]
fn the_games_benchmark_checks_its_counts() {
    let words = "bench games --game paco-sako --rounds 1 --json";
    let games = &printed_json(&mut minuet(words))["games"];
    assert_eq!(games[0]["nodes"], 1_417_416);
    assert!(games[0]["nodes_per_second"].as_f64() > Some(0.0));
}

#[test]
fn chess_speaks_uci_and_names_policy_entries() {
    let fen = "rnbqkbnr/pppp1ppp/8/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R b KQkq - 1 2";
    let answer = expect(
        json!({"id": 1, "game": "chess", "actions": ["e2e4", "e7e5", "g1f3"], "trace": true}),
        json!({"to_move": 1, "fen": fen}),
    );
    assert_eq!(answer["row"].as_array().unwrap().len(), 32 + 1 + 8);
    assert_eq!(answer["legal_before"].as_array().unwrap().len(), 4);
    let legal = answer["legal"].as_array().unwrap();
    let policy = answer["policy"].as_object().unwrap();
    assert_eq!((legal.len(), policy.len()), (29, 29));
    assert!(legal.iter().all(|uci| policy.contains_key(uci.as_str().unwrap())));
    // The board is rotated by 180°: a knight from b8 to c6 moves from rank 0, file 6 by two ranks and one file to the left.
    assert_eq!(policy["b8c6"], 63 * 64 + 6);

    let start = "8/P6k/8/8/8/8/8/K7 w - - 0 1";
    let answer = ask(&json!({"game": "chess", "start": start, "underpromotions": false}));
    assert_eq!(answer["legal"].as_array().unwrap().len(), 4);
    expect(
        json!({"game": "chess", "start": start, "actions": ["a7a8n"]}),
        json!({"outcome": "draw", "legal": []}),
    );
}

#[test]
fn othello_and_connect_four_count_their_actions() {
    let fen = format!("{}X-------XX------XO{} O", "-".repeat(19), "-".repeat(27));
    expect(
        json!({"game": "othello", "actions": [19]}),
        json!({"legal": [18, 20, 34], "fen": fen}),
    );
    expect(
        json!({"game": "connect-four", "actions": [3, 0, 3, 0, 3, 0, 3]}),
        json!({"outcome": "first", "legal": [], "fen": "7/7/3x3/o2x3/o2x3/o2x3 o"}),
    );
}

#[test]
fn board_games_refuse_invalid_requests_with_a_reason() {
    for (request, error) in [
        (
            json!(["chess", ["e2e4", "e2e4"]]),
            "action 1: e2e4 is not legal here",
        ),
        (json!(["chess", [5]]), "action 0: 5 is not a move in UCI notation"),
        (json!(["othello", [19, 64]]), "action 1: 64 is not legal"),
        (
            json!(["othello", [65]]),
            "action 0: 65 is not an action number (0 to 64)",
        ),
        (
            json!(["connect-four", [0, 0, 0, 0, 0, 0, 0]]),
            "action 6: 0 is not legal: the column is full",
        ),
        (
            json!(["connect-four", [], "nonsense"]),
            "cannot start a game of connect-four",
        ),
        (json!(["othello", [], null, 1]), "unknown field `pie`"),
    ] {
        let mut asked = json!({"game": request[0], "actions": request[1], "start": request[2]});
        if let Some(pie) = request.get(3) {
            asked["pie"] = pie.clone();
        }
        let answer = ask(&asked);
        let found = answer["error"].as_str().unwrap();
        assert!(found.starts_with(error), "{request}: {found}");
    }
}

/// The examples of `minuet solve --help` run as written, and print the program as a tree and in words.
#[test]
fn the_examples_of_solve_help_run() {
    let help = printed(&mut minuet("solve --help"));
    let lines = help.lines().map(str::trim);
    let examples: Vec<&str> = lines
        .filter_map(|line| line.strip_prefix("minuet solve "))
        .collect();
    assert_eq!(examples.len(), 2, "{help}");
    let place = tempfile::tempdir().unwrap();
    printed(minuet("bench tasks --write runs/tasks").current_dir(&place));
    for example in examples {
        let line = format!("{} solve {example}", env!("CARGO_BIN_EXE_minuet"));
        let text = printed(Command::new("bash").args(["-c", &line]).current_dir(&place));
        for part in [
            "solved in",
            "0 Generator 1:width=",
            "The program in words:\nA ",
            "MARK_COMPLETE of imp 0",
        ] {
            assert!(text.contains(part), "{example}: no {part:?} in\n{text}");
        }
        let has_picture = text.contains('\u{1b}');
        assert!(!has_picture, "standard output is not a terminal: {text}");
    }
}

/// `minuet solve --task` solves pairs of grids of one colour each, and says why it leaves out one without an output. The printed moves
/// are played by the rules.
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
    let mut solve = minuet("solve --model uniform --visits 2000 --json --task");
    let output = solve.arg(&file).args(["--pair", "test:0"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("left out, test[0].output: the file does not have it"),
        "{said}"
    );
    assert!(said.contains("--pair test:0: the task has train:0"), "{said}");
    let mut solve = minuet("solve --model uniform --visits 2000 --json --task");
    let solved = printed_lines(solve.arg(&file));
    let names: Vec<&Value> = solved.iter().map(|line| &line["problem"]).collect();
    assert_eq!(names, ["train:0"]);
    for (line, grids) in solved.iter().zip([[0, 5]]) {
        assert_eq!(json!([line["solved"], line["ending"]]), json!([true, "solved"]));
        let moves = line["moves"].as_array().unwrap().iter();
        let moves: Vec<Value> = moves.map(|step| json!([step[0], step[1]])).collect();
        let mut request = json!({"game": "generator", "actions": moves, "target": grid(grids[0])});
        request["second_target"] = json!(grid(grids[1]));
        let answer = ask(&request);
        assert_eq!(
            json!([answer["error"], answer["outcome"]]),
            json!([null, "first"])
        );
        assert_eq!(answer["render"], json!(grid(grids[1])));
        assert_eq!(answer["clan"], line["clan"]);
        // One move less does not reach the last grid.
        request["actions"].as_array_mut().unwrap().pop();
        assert_eq!(ask(&request)["outcome"], Value::Null);
    }
}

/// As in `minuet perft | head`: the reader has left before anything is written.
#[test]
fn a_reader_that_leaves_early_causes_no_error() {
    let mut child = minuet("perft --game chess --depth 1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let said = child.wait_with_output().unwrap().stderr;
    assert_eq!(String::from_utf8_lossy(&said), "");
}

#[test]
fn the_generator_answers_with_clan_and_render_until_an_oops() {
    let asked = |actions: Value| ask(&json!({"game": "generator", "actions": actions}));
    let drawn = asked(json!([[0, 2], [4, 22]]));
    assert_eq!(drawn["clan"].as_array().unwrap().len(), 9);
    assert_eq!(drawn["render"][0], json!([0, 1, 0, 0, 0, 0, 0, 0]));
    assert_eq!(drawn["outcome"], Value::Null);
    assert!(drawn["legal"].as_array().unwrap().contains(&json!([4, 8])));
    // To the left it would leave the grid of coordinates.
    let oops = asked(json!([[0, 2], [4, 21]]));
    let found = json!([oops["outcome"], oops["clan"], oops["legal"]]);
    assert_eq!(found, json!(["second", null, []]));
}

#[test]
fn targets_and_examples_with_a_packed_clan_pose_a_problem() {
    let asked = |actions: Value, more: Value| {
        let mut request = json!({"game": "generator", "start": [1, 265, 521, 785], "target": [[0]]});
        request["actions"] = actions;
        for (name, value) in more.as_object().unwrap() {
            request[name] = value.clone();
        }
        ask(&request)
    };
    let length = |answer: &Value, name: &str| answer[name].as_array().unwrap().len();
    assert_eq!(asked(json!([[0, 1]]), json!({}))["outcome"], "first");
    assert_eq!(asked(json!([[0, 0]]), json!({}))["outcome"], "second");
    let pair = json!({"second_target": [[0, 0]]});
    let step = asked(json!([[0, 0], [1, 19]]), pair.clone());
    assert_eq!(json!([step["outcome"], step["step_marked"]]), json!([null, true]));
    let solution = json!([[0, 0], [1, 19], [0, 1]]);
    let bare = asked(solution.clone(), pair.clone());
    // Examples judge nothing; the row holds them in one order.
    let one = json!({"input": [[3]], "output": [[4]]});
    let other = json!({"input": [[5]], "output": [[6]]});
    let [first, second] = [json!([one, other]), json!([other, one])].map(|examples| {
        let mut more = pair.clone();
        more["examples"] = examples;
        asked(solution.clone(), more)
    });
    assert_eq!(
        (&bare["outcome"], &first["outcome"]),
        (&json!("first"), &json!("first"))
    );
    assert_eq!(first["row"], second["row"]);
    assert_eq!(length(&first, "row"), length(&bare, "row") + 64);
    let [strict, all] = [json!({"illegal": "strict"}), json!({})].map(|more| asked(json!([]), more));
    assert!(length(&strict, "legal") < length(&all, "legal"));
    for (action, words) in [
        (json!([9, 2]), "no such imp"),
        (json!([0, 19]), "cannot make this move"),
        (json!(7), "is not an [imp, move]"),
        (json!([0, 38]), "is not an [imp, move]"),
    ] {
        let answer = asked(json!([action]), json!({}));
        let error = answer["error"].as_str().unwrap();
        assert!(error.starts_with("action 0") && error.contains(words), "{error}");
    }
}

#[test]
fn a_command_whose_output_is_full_ends_with_one_line() {
    for words in [
        "perft --depth 1",
        "plan --game chess --positions-per-day 1000",
        "config",
        "doctor",
        "rules",
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = minuet(words);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(full)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let _ = child.stdin.take().unwrap().write_all(b"{\"game\": \"chess\"}\n");
        let done = child.wait_with_output().unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(1), "{words}: {said}");
        assert!(said.contains("No space left on device"), "{words}: {said}");
        assert_eq!(said.lines().count(), 1, "{words}: {said}");
    }
}
