//! The analysis role as a process, asked by a client made from its `.proto` file by others, and by Minuet's own.

use std::{
    collections::BTreeMap,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use config::RunConfig;
use games::{Game as _, connect_four::ConnectFour};
use onnx::{TowerShape, TowerWeights};
use proto::v1::{
    AnalysisQuery, AnalyzeRequest, DescribeAnalysisRequest, analysis_client::AnalysisClient, analyze_request,
};
use serde_json::{Value, json};

use crate::support::{
    program::{Killed, done, minuet, printed_lines},
    served::Served,
};

/// A running role.
struct Role {
    process: Killed,
    address: String,
}

impl Role {
    /// Starts the role on a free port, and waits until it serves.
    fn start(settings: &[String]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let address = format!("127.0.0.1:{port}");
        let mut command = minuet("analysis --set inference.provider=cpu");
        command.arg("--set").arg(format!("analysis.address={address}"));
        for setting in settings {
            command.arg("--set").arg(setting);
        }
        let mut process = Killed(command.spawn().unwrap());
        let until = Instant::now() + Duration::from_secs(120);
        while done(&mut minuet(&format!("analysis --probe {address}"))).code != Some(0) {
            assert!(process.0.try_wait().unwrap().is_none(), "the role has ended");
            assert!(Instant::now() < until, "the role does not serve");
        }
        Self { process, address }
    }
}

/// Runs a case of analysis.py and returns its lines: the description first. `None` without grpcio.
fn plain_client(role: &Role, token: &str, case: &str) -> Option<Vec<Value>> {
    let python = test_support::python("grpc")?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut client = Command::new(python);
    client
        .arg(root.join("minuet/tests/program/analysis.py"))
        .arg(root.join("proto/minuet/v1/analysis.proto"))
        .args([&role.address, token, case]);
    Some(printed_lines(&mut client))
}

fn tokens(folder: &Path) -> (PathBuf, [&'static str; 2]) {
    let file = folder.join("tokens");
    let known = ["0123456789abcdef", "fedcba9876543210"];
    let [bot, actor] = known;
    std::fs::write(
        &file,
        format!("bot analyze {bot}\nactor evaluate,sample {actor}\n"),
    )
    .unwrap();
    (file, known)
}

#[test]
fn a_client_made_from_the_proto_gets_the_answers_of_the_lines_and_needs_the_right() {
    let folder = tempfile::tempdir().unwrap();
    let (file, [bot, actor]) = tokens(folder.path());
    let role = Role::start(&[
        "game.name=chess".into(),
        "analysis.model=chess".into(),
        format!("security.tokens={:?}", file.display().to_string()),
    ]);
    let Some(said) = plain_client(&role, bot, "answers") else {
        return;
    };
    assert_eq!(
        (&said[0]["game"], &said[0]["name"]),
        (&json!("chess"), &json!("chess"))
    );
    let answers: BTreeMap<(String, u64), &Value> = said[1..]
        .iter()
        .map(|reply| {
            let turn = reply["turn"].as_u64().unwrap_or_default();
            ((reply["id"].as_str().unwrap().to_owned(), turn), reply)
        })
        .collect();
    assert_eq!(answers.len(), said.len() - 1, "{said:?}");
    let error = |id: &str| answers[&(id.to_owned(), 0)]["error"].as_str().unwrap();
    assert!(error("none").starts_with("visits: must be from 1"));
    assert!(error("rules").starts_with("rules:"));
    assert_eq!(error("empty"), "query: missing");
    let mate = &answers[&("mate".to_owned(), 0)]["answer"];
    assert_eq!(
        (&mate["proven"], &mate["moves"][0]["action"]),
        (&json!("win"), &json!("\"a1a8\""))
    );
    // The lines of `minuet analyze` have the same numbers.
    let query =
        json!({"id": 1, "moves": ["e4", "e5"], "turns": [0, 1, 2], "visits": 60, "include": ["tree"]});
    let mut lines = Command::new("sh");
    lines.args([
        "-c",
        &format!(
            "echo '{query}' | {} analyze --game chess --provider cpu",
            env!("CARGO_BIN_EXE_minuet")
        ),
    ]);
    for line in printed_lines(&mut lines) {
        let answer = &answers[&("all".to_owned(), line["turn"].as_u64().unwrap())]["answer"];
        for name in ["position", "to_move", "network", "visits", "legal"] {
            assert_eq!(answer[name], line[name], "{name}");
        }
        for (ours, theirs) in answer["moves"]
            .as_array()
            .unwrap()
            .iter()
            .zip(line["moves"].as_array().unwrap())
        {
            assert_eq!(
                (&ours["text"], &ours["visits"]),
                (&theirs["text"], &theirs["visits"])
            );
            assert_eq!(ours["action"].as_str().unwrap(), theirs["action"].to_string());
        }
        let visits = |nodes: &Value| -> Vec<u64> {
            let nodes = nodes.as_array().unwrap().iter();
            nodes.map(|node| node["visits"].as_u64().unwrap()).collect()
        };
        assert_eq!(visits(&answer["tree"]), visits(&line["tree"]));
        let sum = |name: &str| -> f64 {
            let all = answer["priors"].as_array().unwrap().iter();
            all.map(|one| one[name].as_f64().unwrap_or_default()).sum()
        };
        assert!((sum("prior") - 1.0).abs() < 1e-3);
    }
    for (token, code) in [("", "UNAUTHENTICATED"), (actor, "PERMISSION_DENIED")] {
        let refused = plain_client(&role, token, "answers").unwrap();
        assert_eq!(refused.len(), 1);
        assert_eq!(refused[0]["code"], code);
    }
}

#[test]
fn every_one_of_many_queries_of_a_stream_is_answered_once() {
    let role = Role::start(&["game.name=chess".into(), "analysis.model=uct".into()]);
    let Some(said) = plain_client(&role, "", "many") else {
        return;
    };
    let ended = said[1..].iter().filter(|reply| reply["partial"] != true);
    let mut answers: BTreeMap<&str, usize> = BTreeMap::new();
    for reply in ended {
        *answers.entry(reply["id"].as_str().unwrap()).or_default() += 1;
        let is_query = !reply["id"].as_str().unwrap().starts_with(['c', 'p']);
        let is_answered = reply["answer"]["visits"].as_u64().is_some() || reply["cancelled"] == true;
        assert!(!is_query || is_answered, "{reply}");
    }
    assert_eq!(answers.len(), 1200);
    assert!(answers.values().all(|&count| count == 1));
}

fn query(id: &str, query: AnalysisQuery) -> AnalyzeRequest {
    AnalyzeRequest {
        id: id.into(),
        request: Some(analyze_request::Request::Query(query)),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn evaluations_come_from_an_inference_server_and_a_stop_answers_with_what_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let layout = ConnectFour::layout(Default::default());
    let weights = TowerWeights::random(&TowerShape::new(&layout, 1, 8), 1);
    let mut config = RunConfig::default();
    config.game.name = "connect-four".into();
    config.checkpoints.store = folder.path().display().to_string();
    let served = Served::start(config, &layout, &weights).await;
    let settings = [
        "game.name=connect-four".to_owned(),
        format!("inference.address={}", served.address),
    ];
    let mut role = tokio::task::spawn_blocking(move || Role::start(&settings))
        .await
        .unwrap();
    let mut client = AnalysisClient::connect(format!("http://{}", role.address))
        .await
        .unwrap();
    let model = client
        .describe_analysis(DescribeAnalysisRequest {})
        .await
        .unwrap();
    let version = served.version.to_string();
    assert_eq!(model.into_inner().version, version);
    let (sender, requests) = tokio::sync::mpsc::unbounded_channel();
    let requests = tokio_stream::wrappers::UnboundedReceiverStream::new(requests);
    let short = AnalysisQuery {
        visits: Some(100),
        ..AnalysisQuery::default()
    };
    sender.send(query("short", short)).unwrap();
    let mut replies = client.analyze(requests).await.unwrap().into_inner();
    let reply = replies.message().await.unwrap().unwrap();
    let answer = reply.answer.unwrap();
    assert_eq!(
        (reply.id.as_str(), answer.visits, answer.network),
        ("short", 100, Some(version))
    );
    assert!(answer.fresh > 0);
    let long = AnalysisQuery {
        visits: Some(4_000_000),
        report_ms: Some(1),
        ..AnalysisQuery::default()
    };
    sender.send(query("long", long)).unwrap();
    let begun = replies.message().await.unwrap().unwrap();
    assert_eq!(begun.partial, Some(true));
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&role.process.0),
        rustix::process::Signal::TERM,
    )
    .unwrap();
    // The client's side of the stream is still open.
    let mut last = begun;
    while let Some(reply) = replies.message().await.unwrap() {
        last = reply;
    }
    assert_eq!((last.id.as_str(), last.cancelled), ("long", Some(true)));
    assert!(last.answer.unwrap().visits > 0);
    let ended = tokio::task::spawn_blocking(move || role.process.0.wait().unwrap());
    assert_eq!(ended.await.unwrap().code(), Some(0));
    served.stop().await;
}
