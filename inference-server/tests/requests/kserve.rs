//! The Open Inference Protocol: NVIDIA's public client and perf_analyzer against the whole server.
//!
//! The tests need the packages of scripts/python/kserve.txt and perf_analyzer (scripts/perf_analyzer.py). A test whose program is
//! neither cached nor can be fetched prints that it was skipped.

use std::{
    path::Path,
    process::{Command, Output},
    time::Duration,
};

use onnx::Input;

use crate::common::{Served, Server, Store, agrees, file, request, small, tower};

/// Longest time of one measurement.
const LIMIT: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_to_the_public_client_equal_those_of_onnx_runtime() {
    let Some(python) = test_support::python("kserve") else {
        return;
    };
    let (store, layout) = (Store::new(), small());
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    let (weights, best) = (tower(&layout, 1), tower(&layout, 2));
    let rows_file = file(&weights, &layout, Input::Rows);
    let best_file = file(&best, &layout, Input::Rows);
    write("rows.onnx", &rows_file);
    write("planes.onnx", &file(&weights, &layout, Input::Planes));
    write("best.onnx", &best_file);
    write("layout.json", &serde_json::to_vec(&layout).unwrap());
    let rows = onnx::random::rows(&layout, 24, 0.7, 3);
    let rows: Vec<&[u32]> = rows.chunks(layout.row_len().unwrap()).collect();
    write("rows.json", &serde_json::to_vec(&rows).unwrap());

    let best = store.publish(best_file, &layout, 4).await;
    store.repository.set_label("best", &best).await.unwrap();
    let version = store.publish_latest(rows_file, &layout, 5).await;
    let server = Server::start(&store, |config| config.inference.also_serve = vec!["best".into()]).await;
    server.wait_for(&version).await;
    server.wait_for_model("best").await.unwrap();

    let mut client = Command::new(python);
    client
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/requests/client.py"))
        .arg(&server.address)
        .arg(folder.path());
    let ended = tokio::task::spawn_blocking(move || client.output().unwrap())
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    let error = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}{error}");
    let compared: serde_json::Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    println!("{compared}");
    assert!(compared["numbers"].as_u64().unwrap() > 2_000, "{compared}");
    assert!(compared["refusals"].as_u64().unwrap() >= 25, "{compared}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nvidias_perf_analyzer_measures_the_server() {
    let Some(perf_analyzer) = test_support::perf_analyzer() else {
        return;
    };
    let served = Served::start().await;
    let layout = &served.layout;
    let folder = tempfile::tempdir().unwrap();
    let rows = onnx::random::rows(layout, 32, 0.7, 3);
    let stack = layout.stack().unwrap();
    let mut planes = vec![0.0; stack.tensor_len()];
    let (mut compact, mut dense) = (Vec::new(), Vec::new());
    for row in rows.chunks(stack.row_len()) {
        stack.expand(row, &mut planes).unwrap();
        compact.push(serde_json::json!({ "indices": row }));
        dense.push(serde_json::json!({ "planes": planes }));
    }
    let runs: [(&str, &[serde_json::Value], &[&str]); 3] = [
        ("latest", &compact, &["-b", "8", "--concurrency-range", "4"]),
        ("latest_dense", &dense, &["-b", "8", "--concurrency-range", "4"]),
        (
            "latest",
            &compact,
            &["-b", "1", "--concurrency-range", "8", "--async", "--streaming"],
        ),
    ];
    for (model, data, arguments) in runs {
        let input = folder.path().join("input.json");
        let table = folder.path().join("table.csv");
        std::fs::write(&input, serde_json::json!({ "data": data }).to_string()).unwrap();
        let mut measuring = Command::new(&perf_analyzer);
        measuring
            .args(["-m", model, "-i", "grpc", "-u", &served.server.address])
            .args(["--request-count", "100"])
            .args(arguments)
            .arg("--input-data")
            .arg(&input)
            .arg("-f")
            .arg(&table);
        let ended = measure(measuring, &served).await;
        let said = String::from_utf8_lossy(&ended.stdout) + String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{arguments:?}: {said}");
        let table = std::fs::read_to_string(&table).unwrap();
        let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let column = lines
            .next()
            .unwrap()
            .iter()
            .position(|&name| name == "Inferences/Second")
            .unwrap();
        let rate: f64 = lines.next().unwrap()[column].parse().unwrap();
        assert!(rate > 0.0, "{table}");
    }
    served.server.stop().await;
}

/// Runs perf_analyzer, which takes about a second. It was seen to hang once, while the server answered other tests. If it does not end, it
/// is killed, the server must answer another client, and the measurement is made again, three times at most.
async fn measure(measuring: Command, served: &Served) -> Output {
    let mut measuring = tokio::process::Command::from(measuring);
    measuring.kill_on_drop(true);
    for _ in 0..3 {
        match tokio::time::timeout(LIMIT, measuring.output()).await {
            Ok(ended) => return ended.unwrap(),
            Err(_) => eprintln!("perf_analyzer did not end within {LIMIT:?}: {measuring:?}"),
        }
        let asked = request(&served.layout, 1, 4, 3);
        let reply = tokio::time::timeout(LIMIT, served.server.evaluate(asked.clone())).await;
        let reply = reply.expect("the server hangs").unwrap();
        assert!(agrees(&reply, &served.weights, &served.layout, &asked));
    }
    panic!("perf_analyzer did not end in three attempts");
}
