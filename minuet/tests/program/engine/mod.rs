//! `minuet uci` through a pipe and with python-chess, `minuet play` and `minuet query` through a pipe, and the Python client of the
//! guide.

mod bot;
mod commands;
mod guide;

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use games::{Game, chess::Chess, connect_four::ConnectFour};
use onnx::{Input, Metadata, TowerShape, TowerWeights};
use serde_json::{Value, json};

use crate::support::program::{answered, fails, minuet, printed, printed_json};

/// Writes a network of random weights; returns its path.
fn network<G: Game>(folder: &Path) -> PathBuf {
    let layout = G::layout(G::encoding(&Default::default(), 0).unwrap());
    let weights = TowerWeights::random(&TowerShape::new(&layout, 1, 8), 1);
    let file = onnx::build(&weights, &Metadata { layout, step: 7 }, Input::Rows).unwrap();
    let path = folder.join(format!("{}.onnx", G::NAME));
    std::fs::write(&path, file).unwrap();
    path
}

#[test]
fn python_chess_drives_the_engine() {
    let Some(python) = test_support::python("chess") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/engine/drive.py");
    let mut driving = Command::new(python);
    driving.arg(script).args(["check", env!("CARGO_BIN_EXE_minuet")]);
    printed(driving.arg(network::<Chess>(folder.path())));
}

#[test]
fn a_person_plays_a_network_through_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let model = network::<ConnectFour>(folder.path());
    let opponent = format!("{},visits=20", model.display());
    let saved = folder.path().join("game.json");
    let mut play = minuet("play --game connect-four --provider cpu --ascii --opponent");
    let typed = format!("4\nhint\nnonsense\nsave {}\nquit\n", saved.display());
    let first = answered(play.arg(&opponent), typed);
    assert_eq!(first.code, Some(0), "{first:?}");
    for part in ["plays ", "value ", "\"nonsense\" is not a column"] {
        assert!(first.out.contains(part), "{}", first.out);
    }
    // A saved game is a request that `minuet rules` answers, and can be continued.
    let answer = answered(&mut minuet("rules"), std::fs::read(&saved).unwrap()).out;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!((&answer["error"], &answer["to_move"]), (&Value::Null, &0.into()));
    let mut play = minuet("play --game connect-four --opponent random --ascii --load");
    let second = answered(play.arg(&saved), "position\nresign\n").out;
    assert!(second.contains(answer["fen"].as_str().unwrap()), "{second}");
    assert!(second.ends_with("X resigns. O has won.\n"), "{second}");
}

#[test]
fn invalid_games_sides_and_opponents_are_named() {
    for (code, words, says) in [
        (2, "--game ches", "did you mean chess?"),
        (2, "--game chess --side green", "write white, black, both or none"),
        (2, "--game chess --opponent uct,visit=3", "visit"),
        (2, "--game chess --start 8/8", "six fields"),
        (1, "--game chess --opponent no/such/run", "no/such/run"),
    ] {
        fails(minuet("play").args(words.split(' ')), code, says);
    }
}

#[test]
fn a_file_can_be_queried() {
    let folder = tempfile::tempdir().unwrap();
    let model = network::<Chess>(folder.path());
    let query = |words: &str| {
        let mut command = minuet("query --provider cpu --json");
        command.arg(&model).args(words.split(' '));
        command
    };
    let answer = printed_json(&mut query("e4 e7e5 --top 100"));
    assert_eq!(
        answer["position"],
        "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq e6 0 2"
    );
    let found = json!([answer["legal"], answer["step"], answer["server"]]);
    assert_eq!(found, json!([29, 7, null]));
    let moves = answer["moves"].as_array().unwrap();
    let priors: Vec<f64> = moves.iter().map(|one| one["prior"].as_f64().unwrap()).collect();
    assert!(priors.is_sorted_by(|left, right| left >= right));
    assert!((priors.iter().sum::<f64>() - 1.0).abs() < 1e-3);
    let is_knight = |one: &Value| one["text"] == "Nf3" && one["action"] == "g1f3";
    assert!(moves.iter().any(is_knight), "{answer}");
    let searched = printed_json(&mut query("--visits 50 --top 100"));
    let moves = searched["moves"].as_array().unwrap().iter();
    assert_eq!(moves.map(|one| one["visits"].as_u64().unwrap()).sum::<u64>(), 50);
    fails(&mut query("e5"), 2, "e5: e5 is not legal here");
}
