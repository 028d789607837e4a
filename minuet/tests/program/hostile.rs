//! Files of strangers: archives whose names steer terminals, games that break the rules, networks that take all memory.

use std::{fs, path::Path};

use games::{Game as _, othello::Othello};
use onnx::{
    Input, Metadata, TowerShape, TowerWeights,
    proto::{
        ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, tensor_proto::DataType, type_proto,
    },
};
use prost::Message as _;
use proto::{ids::hex, v1::Game};
use replay_store::exchange::archive::{Header, Writer};

use crate::support::{
    program::{Done, answered, done, minuet},
    stored,
};

/// A title for the window, a screen that is cleared in two ways, a text from right to left, and lines.
const STEERS: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}2J\u{202e}txt\r\n";

/// Writes an archive of Connect Four.
fn archive(path: &Path, games: &[Game]) {
    let header = Header {
        game: "connect-four".into(),
        options: 1,
        written_by: STEERS.into(),
    };
    let mut writer = Writer::new(fs::File::create(path).unwrap(), &header).unwrap();
    games.iter().for_each(|game| writer.add(game).unwrap());
    writer.finish().unwrap();
}

/// Checks that nothing that was printed steers a terminal.
#[track_caller]
fn is_plain(done: &Done) {
    for text in [&done.out, &done.error] {
        let steers = |letter: char| letter.is_control() && letter != '\n' || letter == '\u{202e}';
        assert!(!text.contains(steers), "{text:?}");
        assert!(!text.contains("\ntxt"), "{text:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_of_a_stranger_steers_no_terminal_and_breaks_no_rules() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    stored::run(&run).await;
    let plain = stored::game(9, &[3, 0, 3, 0, 3, 0, 3]);
    let steering = Game {
        actor: STEERS.into(),
        build: STEERS.into(),
        provenance: STEERS.into(),
        search_json: STEERS.into(),
        model_versions: vec![STEERS.into()],
        model_providers: vec![STEERS.into()],
        ..plain.clone()
    };
    let ending = Game {
        ending: STEERS.into(),
        ..stored::game(10, &[3, 0, 3, 0, 3, 0, 3])
    };
    // Both players drop a disc into another column first: the rows do not follow.
    let mut swapped = stored::game(11, &[3, 0, 3, 0, 3, 0, 3]);
    swapped.actions.swap(0, 1);
    let path = folder.path().join("games.minuet");
    archive(&path, &[steering, ending, swapped]);

    let imported = done(minuet("games import").arg(&path).arg("--run").arg(&run));
    assert_eq!(imported.code, Some(1), "{imported:?}");
    is_plain(&imported);
    assert!(
        imported
            .out
            .contains("1 games stored, 0 already present, 2 refused"),
        "{imported:?}"
    );
    for (number, reason) in [
        (10, "ending: `first-won` follows from the actions"),
        (11, "rows: position 1: value "),
    ] {
        let line = format!("game {} was refused: {reason}", hex(&[number; 16]));
        assert!(imported.error.contains(&line), "{imported:?}");
    }
    let id = hex(&[9; 16]);
    for words in [
        "list",
        "list --json",
        &format!("show {id}"),
        &format!("show {id} --json"),
    ] {
        let printed = done(minuet(&format!("games {words} --run")).arg(&run));
        assert_eq!(printed.code, Some(0), "{words}: {printed:?}");
        assert!(
            printed.out.contains(&id) && printed.out.contains("owned"),
            "{words}: {printed:?}"
        );
        is_plain(&printed);
        if words.contains("--json") {
            let lines: Vec<serde_json::Value> = printed
                .out
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect();
            assert!(lines.iter().any(|game| game["actor"] == STEERS), "{words}");
        }
    }
}

/// Returns the file of a network of Othello that makes a tensor of 12 GiB whenever it is run.
fn greedy() -> Vec<u8> {
    let layout = Othello::layout(Default::default());
    let weights = TowerWeights::random(&TowerShape::new(&layout, 1, 8), 1);
    let file = onnx::build(&weights, &Metadata { layout, step: 7 }, Input::Rows).unwrap();
    let mut model = ModelProto::decode(&file[..]).unwrap();
    let graph = model.graph.as_mut().unwrap();
    let side = TensorProto {
        name: Some("side".into()),
        data_type: Some(DataType::Int64 as i32),
        dims: vec![1],
        raw_data: Some((3i64 << 30).to_le_bytes().to_vec().into()),
        ..Default::default()
    };
    graph.initializer.push(side);
    graph.node.push(NodeProto {
        op_type: Some("ConstantOfShape".into()),
        input: vec!["side".into()],
        output: vec!["extra".into()],
        ..Default::default()
    });
    let tensor = type_proto::Tensor {
        elem_type: Some(DataType::Float as i32),
        ..Default::default()
    };
    graph.output.push(ValueInfoProto {
        name: Some("extra".into()),
        r#type: Some(TypeProto {
            value: Some(type_proto::Value::TensorType(tensor)),
            ..Default::default()
        }),
        ..Default::default()
    });
    model.encode_to_vec()
}

#[test]
fn a_network_that_takes_all_memory_is_refused_by_every_command_that_opens_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("greedy.onnx");
    fs::write(&path, greedy()).unwrap();
    let file = path.display();
    for (words, input) in [
        (format!("query {file}"), ""),
        (format!("play --game othello --opponent {file}"), "d3\nquit\n"),
        (
            format!("arena --game othello {file},visits=10 uct,visits=10 --games 2"),
            "",
        ),
        (format!("gtp --game othello --model {file}"), "genmove b\nquit\n"),
    ] {
        let done = answered(minuet(&words).current_dir(folder.path()), input);
        let said = format!("{}{}", done.out, done.error);
        assert!(said.contains("is not loaded"), "{words}: {done:?}");
        assert!(said.contains("MiB may be used"), "{words}: {done:?}");
    }
}

#[test]
fn an_input_that_cannot_be_read_is_a_failure() {
    for words in ["gtp --game go:5 --model uniform", "uci --model uniform"] {
        let folder = fs::File::open("/").unwrap();
        let output = minuet(words).stdin(folder).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words}: {error}");
        assert!(
            error.contains("cannot read the standard input"),
            "{words}: {error}"
        );
    }
}
