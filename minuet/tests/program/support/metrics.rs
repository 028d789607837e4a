//! Compares the metrics that dashboards, alerts and autoscalers name with those that processes export.

use std::{
    collections::BTreeSet,
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::Path,
    time::{Duration, Instant},
};

use serde_json::Value;

const TIMEOUT: Duration = Duration::from_secs(120);
/// Files that name metrics, from the repository's root.
const FILES: [&str; 5] = [
    "deploy/grafana/dashboards/minuet.json",
    "deploy/prometheus/alerts.yml",
    "deploy/kubernetes/components/monitoring/prometheus-rule.yaml",
    "deploy/kubernetes/components/hpa/adapter-rules.yaml",
    "deploy/kubernetes/components/keda/scaled-object.yaml",
];

/// Metric that a process exports only if it knows tokens, because its alert fires at 0.
const WITH_TOKENS: &str = "minuet_server_tokens";

/// Beginning of the names of metrics that only runs of games about problems export.
const OF_PROBLEMS: &str = "minuet_actor_problem_";

/// Returns the addresses of the metrics pages in a `started` event.
pub fn pages(started: &Value) -> Vec<String> {
    let processes = started["processes"].as_array().unwrap();
    let page = |process: &Value| process["metrics"].as_str().unwrap().to_owned();
    processes.iter().map(page).collect()
}

/// Waits until every metric that the deployment's files name is on one of the pages of a run without tokens and problems.
pub fn wait_until_all_named_are_exported(pages: &[String]) {
    let mut named = named();
    assert!(named.len() > 40, "{named:?}");
    assert!(named.remove(WITH_TOKENS), "{named:?}");
    named.retain(|name| !name.starts_with(OF_PROBLEMS));
    wait_for(pages, &named);
}

/// Waits until every metric about problems that the deployment's files name is on one of the pages.
#[allow(dead_code, reason = "each test uses some of it")]
pub fn wait_until_those_of_problems_are_exported(pages: &[String]) {
    let mut named = named();
    named.retain(|name| name.starts_with(OF_PROBLEMS));
    assert!(named.len() > 3, "{named:?}");
    wait_for(pages, &named);
}

/// Waits until the processes answer, and checks that they export counters before the first event: an alert on a rise
/// misses the first event if the counter appears with it.
pub fn check_counters_at_the_start(pages: &[String]) {
    let counters = named().into_iter().filter(|name| name.ends_with("_total"));
    wait_for(pages, &counters.collect());
}

fn wait_for(pages: &[String], wanted: &BTreeSet<String>) {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let there: BTreeSet<String> = pages.iter().flat_map(|page| exported(page)).collect();
        let missing: Vec<&String> = wanted.difference(&there).collect();
        if missing.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "no process exports {missing:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Returns the names of metrics in the files, except those of Prometheus' recording rules.
fn named() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut recorded = BTreeSet::new();
    let mut named = BTreeSet::new();
    for file in FILES {
        let text = fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        for line in text.lines() {
            let names =
                words(line).filter(|word| word.starts_with("minuet_") || word.starts_with("process_"));
            if line.trim_start().trim_start_matches("- ").starts_with("record:") {
                recorded.extend(names.map(str::to_owned));
            } else {
                named.extend(names.map(str::to_owned));
            }
        }
    }
    named.difference(&recorded).cloned().collect()
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_' || letter == ':'))
}

/// Returns a metrics page; empty while the process does not answer.
pub fn page(address: &str) -> String {
    let read = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        write!(
            stream,
            "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
        )?;
        let mut page = String::new();
        stream.read_to_string(&mut page)?;
        Ok(page)
    };
    read().unwrap_or_default()
}

/// Returns the names on a page; none while the process does not answer.
fn exported(address: &str) -> Vec<String> {
    let page = page(address);
    let samples = page.lines().filter(|line| !line.starts_with('#'));
    samples
        .filter_map(|line| words(line).next().map(str::to_owned))
        .collect()
}
