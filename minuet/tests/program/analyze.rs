//! `minuet analyze` through pipes: answers, errors, cancels, and a reader that stops.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    process::Stdio,
    sync::mpsc,
    thread,
};

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::support::program::{Killed, answered, fails, minuet, printed, printed_json, printed_lines};

/// Answers to lines, by id.
fn answers(words: &str, lines: &[String]) -> Vec<Value> {
    let done = answered(&mut minuet(words), lines.join("\n"));
    assert_eq!(done.code, Some(0), "{}", done.error);
    let lines = done.out.lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn by_id(answers: &[Value], id: impl Into<Value>) -> &Value {
    let id = id.into();
    let mut found = answers.iter().filter(|answer| answer["id"] == id);
    let first = found
        .next()
        .unwrap_or_else(|| panic!("no answer to {id}: {answers:?}"));
    assert!(found.next().is_none(), "{id} is answered twice: {answers:?}");
    first
}

#[test]
fn positions_are_answered_with_values_and_lines_and_proofs() {
    let lines = [
        json!({"id": "mate", "start": "6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1", "visits": 300, "lines": 2}),
        json!({"id": "all", "moves": ["e4", "e7e5"], "turns": [0, 1, 2], "visits": 40, "include": ["priors", "values", "tree"]}),
        json!({"id": "time", "time_ms": 50}),
        json!({"id": 4, "do": "version"}),
        json!({"id": 5, "do": "models"}),
        json!({"id": 6, "do": "clear-cache"}),
    ];
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let found = answers("analyze --game chess --provider cpu", &lines);
    let mate = by_id(&found, "mate");
    assert_eq!(
        (&mate["proven"], &mate["value"]),
        (&json!("win"), &json!(1.0)),
        "{mate}"
    );
    let best = &mate["moves"][0];
    assert_eq!(
        (&best["text"], &best["action"], &best["proven"]),
        (&json!("Ra8#"), &json!("a1a8"), &json!("win"))
    );
    assert!(mate["proofs"].as_f64().unwrap() > 0.0);
    let turns: Vec<&Value> = found.iter().filter(|answer| answer["id"] == "all").collect();
    assert_eq!(turns.len(), 3);
    for answer in turns {
        let sum = |name: &str, figure: &str| -> f64 {
            let all = answer[name].as_array().unwrap().iter();
            all.map(|one| one[figure].as_f64().unwrap()).sum()
        };
        assert!((sum("priors", "prior") - 1.0).abs() < 1e-3, "{answer}");
        assert_eq!(
            (answer["visits"].as_u64(), sum("values", "visits")),
            (Some(40), 40.0)
        );
        let tree = answer["tree"].as_array().unwrap();
        assert_eq!(
            (&tree[0]["parent"], &tree[0]["visits"]),
            (&json!(null), &json!(40))
        );
        let below_root = tree.iter().filter(|node| node["parent"] == 0);
        let visits: u64 = below_root.map(|node| node["visits"].as_u64().unwrap()).sum();
        assert_eq!(visits, 40);
        assert_eq!(answer["moves"].as_array().unwrap().len(), 5);
        let mover = if answer["turn"] == 1 { "second" } else { "first" };
        assert_eq!(answer["to_move"], mover);
    }
    assert!(by_id(&found, "time")["visits"].as_u64().unwrap() > 0);
    let models = by_id(&found, 5);
    assert_eq!(models["models"][0]["version"], mate["network"]);
    assert!(by_id(&found, 4)["version"].is_string());
    by_id(&found, 6);
}

#[test]
fn a_query_alone_gives_what_minuet_query_gives() {
    let query = json!({"id": 1, "moves": ["e2 e4"], "visits": 100});
    let found = answers("analyze --game paco-sako --provider cpu", &[query.to_string()]);
    let mut command = minuet("query paco-sako --provider cpu --json --visits 100");
    let asked = printed_json(command.arg("e2 e4"));
    let visits = |answer: &Value| -> Vec<(Value, Value)> {
        let moves = answer["moves"].as_array().unwrap().iter();
        moves
            .map(|one| (one["action"].clone(), one["visits"].clone()))
            .collect()
    };
    assert_eq!(visits(&found[0]), visits(&asked), "{} {asked}", found[0]);
    assert_eq!(found[0]["value"], asked["searched_value"]);
}

#[test]
fn errors_name_the_query_and_the_field_and_end_nothing_else() {
    let long = json!({"id": "x".repeat(300)}).to_string();
    let faults: [(&str, &str); 20] = [
        (r#"{"id":1,"visits":0}"#, "visits: must be from 1"),
        (r#"{"id":1,"visits":"many"}"#, "visits: invalid type"),
        (r#"{"id":1,"moves":["e4","e4"]}"#, "moves[1]: \"e4\":"),
        (r#"{"id":1,"moves":[7]}"#, "moves[0]: 7:"),
        (r#"{"id":1,"start":"8/8"}"#, "start:"),
        (r#"{"id":1,"turns":[3]}"#, "turns: 3 is more than"),
        (r#"{"id":1,"turns":[]}"#, "turns: 0 positions"),
        (
            r#"{"id":1,"start":"7k/5KQ1/8/8/8/8/8/8 b - - 0 1"}"#,
            "turns: the game is over",
        ),
        (
            r#"{"id":1,"include":["ownership"]}"#,
            "include: unknown variant `ownership`",
        ),
        (
            r#"{"id":1,"include":["tree"],"visits":30000}"#,
            "include: trees of at most",
        ),
        (r#"{"id":1,"rules":{"castling":false}}"#, "rules:"),
        (r#"{"id":1,"visit":10}"#, "visit: unknown field"),
        (r#"{"id":1,"do":"cancel"}"#, "of: the id of a query is missing"),
        (r#"{"id":1,"do":"cancel","of":9}"#, "of: no query 9"),
        (r#"{"id":1,"do":"stop"}"#, "do: unknown command `stop`"),
        (r#"{"id":[1]}"#, "id: must be a text or a number"),
        (&long, "id: 300 bytes"),
        (r#"{"visits":1}"#, "id: must be a text or a number"),
        (r#"{"id":1,"#, "not JSON"),
        ("[]", "no object"),
    ];
    let mut lines: Vec<String> = faults.iter().map(|(line, _)| (*line).to_owned()).collect();
    lines.push(r#"{"id":"last","visits":1}"#.into());
    let found = answers("analyze --game chess --model uct", &lines);
    for ((line, error), answer) in faults.iter().zip(&found) {
        let said = answer["error"]
            .as_str()
            .unwrap_or_else(|| panic!("{line}: {answer}"));
        assert!(said.starts_with(error) || said.contains(error), "{line}: {said}");
    }
    assert_eq!(found.len(), faults.len() + 1);
    assert_eq!(by_id(&found, "last")["visits"], 1);
    fails(
        &mut minuet("analyze --game chess --model random"),
        1,
        "random does not search",
    );
    fails(&mut minuet("analyze --game ches"), 2, "did you mean chess?");
}

/// Peak of a process' memory, in KiB; `None` once the process has ended.
fn peak(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[test]
fn every_one_of_many_queries_is_answered_once_with_cancels_broken_lines_and_a_reader_that_stops() {
    const QUERIES: u64 = 10_000;

    let mut command = minuet("analyze --game connect-four --model uct");
    let mut child = Killed(
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let mut stdin = child.0.stdin.take().unwrap();
    let (all_written, written) = mpsc::channel();
    let writer = thread::spawn(move || {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        let (mut broken, mut commands) = (0_u64, 0_u64);
        for id in 0..QUERIES {
            let moves: Vec<u32> = (0..random.random_range(0..6))
                .map(|_| random.random_range(0..7))
                .collect();
            let query = json!({
                "id": id, "moves": moves, "visits": random.random_range(1..120), "priority": random.random_range(-3..4),
                "report_ms": 1,
            });
            writeln!(stdin, "{query}").unwrap();
            let of = random.random_range(0..=id);
            let line = match random.random_range(0..10) {
                0 | 1 => json!({"id": format!("c{id}"), "do": "cancel", "of": of}),
                2 => json!({"id": format!("c{id}"), "do": "priority", "of": of, "priority": 9}),
                3 => {
                    broken += 1;
                    writeln!(stdin, "{{\"id\": {id}, \"visits\"").unwrap();
                    continue;
                }
                _ => continue,
            };
            commands += 1;
            writeln!(stdin, "{line}").unwrap();
        }
        all_written.send(()).unwrap();
        (broken, commands)
    });
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let mut answers: BTreeMap<String, u64> = BTreeMap::new();
    let (mut nulls, mut cancelled) = (0, 0);
    let mut take = |line: String| {
        let answer: Value = serde_json::from_str(&line).unwrap();
        if answer["partial"] == true {
            return;
        }
        cancelled += u64::from(answer["cancelled"] == true);
        match answer["id"].is_null() {
            true => nulls += 1,
            false => *answers.entry(answer["id"].to_string()).or_default() += 1,
        }
    };
    // The reader stops after some answers. The engine then stops to read, so that the writer is not done.
    lines.by_ref().take(500).for_each(|line| take(line.unwrap()));
    let is_done = written.recv_timeout(std::time::Duration::from_secs(2)).is_ok();
    assert!(
        !is_done,
        "the queries are held back while nobody reads the answers"
    );
    let mut most = 0;
    for line in lines {
        take(line.unwrap());
        most = peak(child.0.id()).unwrap_or_default().max(most);
    }
    let (broken, commands) = writer.join().unwrap();
    assert_eq!(child.0.wait().unwrap().code(), Some(0));
    assert!((1..700 << 10).contains(&most), "{most} KiB");
    assert_eq!(nulls, broken);
    assert!(cancelled > 0);
    let twice: Vec<_> = answers.iter().filter(|(_, count)| **count != 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    assert_eq!(answers.len() as u64, QUERIES + commands);
}

/// Two games of chess, one with the scholar's mate and one without moves that the rules allow.
const PGN: &str = r#"[White "Ann"]
[Black "Bob"]
[Result "1-0"]

1. e4 e5 2. Qh5 Nc6 3. Bc4 Nf6 4. Qxf7# 1-0

[White "Eve"]
[Black "Dan"]
[Result "*"]

1. e4 e4 *
"#;

#[test]
fn reviews_name_the_mistake_that_lost_and_are_written_as_one_file_that_requests_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (pgn, html) = (folder.path().join("games.pgn"), folder.path().join("review.html"));
    fs::write(&pgn, PGN).unwrap();
    let mut command = minuet("analyze --game chess --provider cpu --visits 100 --games");
    let lines = printed_lines(command.arg(&pgn).arg("--report").arg(&html));
    let [review, refused] = &lines[..] else {
        panic!("{lines:?}")
    };
    assert!(
        refused["error"].as_str().unwrap().contains("move 2 (e4)"),
        "{refused}"
    );
    assert_eq!(
        (&review["players"], &review["result"]),
        (&json!(["Ann", "Bob"]), &json!("first"))
    );
    assert_eq!(review["values"].as_array().unwrap().len(), 8);
    assert_eq!(review["values"][7], 1.0);
    let worst = &review["mistakes"][0];
    assert_eq!(
        (&worst["played"], &worst["turn"], &worst["player"]),
        (&json!("Nf6"), &json!(5), &json!("second"))
    );
    // The line that would have been better is legal, in the words of another program.
    if let Some(python) = test_support::python("chess") {
        let script = "import chess, sys\nboard = chess.Board(sys.argv[1])\nfor move in sys.argv[2:]: board.push_san(move)";
        let line = worst["line"]
            .as_array()
            .unwrap()
            .iter()
            .map(|turn| turn.as_str().unwrap());
        let mut replay = std::process::Command::new(python);
        replay
            .args(["-c", script, worst["position"].as_str().unwrap()])
            .args(line);
        printed(&mut replay);
    }
    let html = fs::read_to_string(html).unwrap();
    for part in ["Ann – Bob", "played Nf6", "White’s chances", "<svg"] {
        assert!(html.contains(part), "{part}");
    }
    for part in ["http://", "https://", "src=", "<script"] {
        let found = html.find(part).map(|at| &html[at.saturating_sub(80)..at + 40]);
        assert!(found.is_none_or(|found| found.contains("w3.org")), "{found:?}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_ends_the_searches_without_an_error() {
    let mut command = minuet("analyze --game connect-four --model uct");
    let mut child = Killed(
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let mut stdin = child.0.stdin.take().unwrap();
    for id in 0..50 {
        writeln!(
            stdin,
            "{}",
            json!({"id": id, "visits": 4_000_000, "seed": id, "report_ms": 1})
        )
        .unwrap();
    }
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("partial"));
    // The input stays open: the end of the output is enough.
    drop(lines);
    assert_eq!(child.0.wait().unwrap().code(), Some(0));
}
