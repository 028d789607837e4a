//! `minuet uci` with python-chess, `minuet play` and `minuet query` through a pipe, and the Python client of the guide.

mod guide;

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use games::{Game, chess::Chess, connect_four::ConnectFour};
use onnx::{Input, Metadata, TowerShape, TowerWeights};

/// Writes a network of random weights; returns its path.
fn network<G: Game>(folder: &Path) -> PathBuf {
    let layout = G::layout(G::encoding(0).unwrap());
    let weights = TowerWeights::random(&TowerShape::new(&layout, 1, 8), 1);
    let file = onnx::build(&weights, &Metadata { layout, step: 7 }, Input::Rows).unwrap();
    let path = folder.join(format!("{}.onnx", G::NAME));
    std::fs::write(&path, file).unwrap();
    path
}

fn minuet(arguments: &[&str], input: &str) -> (Option<i32>, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_minuet"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (done.status.code(), text(done.stdout), text(done.stderr))
}

#[test]
fn python_chess_drives_the_engine() {
    let Some(python) = test_support::python("chess") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let done = Command::new(python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/engine/drive.py"))
        .arg("check")
        .arg(env!("CARGO_BIN_EXE_minuet"))
        .arg(network::<Chess>(folder.path()))
        .status()
        .unwrap();
    assert!(done.success(), "the script failed; its output is above");
}

#[test]
fn a_person_plays_a_network_through_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let model = network::<ConnectFour>(folder.path());
    let opponent = format!("{},visits=20", model.display());
    let saved = folder.path().join("game.json");
    let first = minuet(
        &[
            "play",
            "--game",
            "connect-four",
            "--opponent",
            &opponent,
            "--provider",
            "cpu",
            "--ascii",
        ],
        &format!("4\nhint\nnonsense\nsave {}\nquit\n", saved.display()),
    );
    assert_eq!(first.0, Some(0), "{first:?}");
    assert!(
        first.1.contains("plays ") && first.1.contains("value "),
        "{}",
        first.1
    );
    assert!(first.1.contains("\"nonsense\" is not a column"), "{}", first.1);
    // A saved game is a request that `minuet rules` answers, and can be continued.
    let (_, answer, _) = minuet(&["rules"], &std::fs::read_to_string(&saved).unwrap());
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(
        (&answer["error"], &answer["to_move"]),
        (&serde_json::Value::Null, &0.into())
    );
    let loaded = saved.display().to_string();
    let second = minuet(
        &[
            "play",
            "--game",
            "connect-four",
            "--opponent",
            "random",
            "--load",
            &loaded,
            "--ascii",
        ],
        "position\nresign\n",
    );
    assert!(second.1.contains(answer["fen"].as_str().unwrap()), "{}", second.1);
    assert!(second.1.ends_with("X resigns. O has won.\n"), "{}", second.1);
}

#[test]
fn invalid_games_sides_and_opponents_are_bad_usage() {
    let cases: [(&[&str], &str); 4] = [
        (&["play", "--game", "ches"], "did you mean chess?"),
        (
            &["play", "--game", "chess", "--side", "green"],
            "write white, black, both or none",
        ),
        (&["play", "--game", "chess", "--opponent", "uct,visit=3"], "visit"),
        (&["play", "--game", "chess", "--start", "8/8"], "six fields"),
    ];
    for (arguments, says) in cases {
        let (code, out, error) = minuet(arguments, "");
        assert_eq!(code, Some(2), "{arguments:?}: {out}{error}");
        assert!(error.contains(says), "{arguments:?}: {error}");
    }
    let (code, _, error) = minuet(&["play", "--game", "chess", "--opponent", "no/such/run"], "");
    assert_eq!(code, Some(1), "{error}");
    assert!(error.contains("no/such/run"), "{error}");
}

#[test]
fn a_file_can_be_queried() {
    let folder = tempfile::tempdir().unwrap();
    let model = network::<Chess>(folder.path()).display().to_string();
    let ask = |more: &[&str]| {
        let arguments = [&["query", &model, "--provider", "cpu", "--json"][..], more].concat();
        let (code, out, error) = minuet(&arguments, "");
        assert_eq!(code, Some(0), "{error}");
        serde_json::from_str::<serde_json::Value>(&out).unwrap()
    };
    let answer = ask(&["e4", "e7e5", "--top", "100"]);
    assert_eq!(
        answer["position"],
        "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq e6 0 2"
    );
    assert_eq!(
        (&answer["legal"], &answer["step"], &answer["server"]),
        (&29.into(), &7.into(), &serde_json::Value::Null)
    );
    let moves = answer["moves"].as_array().unwrap();
    let priors: Vec<f64> = moves.iter().map(|one| one["prior"].as_f64().unwrap()).collect();
    assert!(priors.is_sorted_by(|left, right| left >= right));
    assert!((priors.iter().sum::<f64>() - 1.0).abs() < 1e-3);
    assert!(
        moves
            .iter()
            .any(|one| one["text"] == "Nf3" && one["action"] == "g1f3")
    );
    let searched = ask(&["--visits", "50", "--top", "100"]);
    let visits: u64 = searched["moves"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["visits"].as_u64().unwrap())
        .sum();
    assert_eq!(visits, 50);
    let (code, _, error) = minuet(&["query", &model, "--provider", "cpu", "e5"], "");
    assert_eq!(code, Some(2));
    assert!(error.contains("e5: e5 is not legal here"), "{error}");
}
