//! Tests of a role as a process: start, signals, exit codes and log lines.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    ffi::OsStr,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, ChildStdout, Command, Output, Stdio},
    time::{Duration, Instant},
};

/// Returns the example role, which cargo builds next to the tests.
fn role() -> Command {
    command(program())
}

fn program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.ancestors().nth(2).unwrap().join("examples/role")
}

fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .env_remove("MINUET_CONFIG")
        .env_remove("MINUET_LOG");
    command
}

fn output(arguments: &[&str]) -> Output {
    role().args(arguments).output().unwrap()
}

/// Starts the role and waits until it runs.
fn running(arguments: &[&str]) -> (Child, BufReader<ChildStdout>) {
    started(role().args(arguments))
}

fn started(command: &mut Command) -> (Child, BufReader<ChildStdout>) {
    let mut child = command.spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "running\n");
    (child, stdout)
}

fn send(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).unwrap();
}

fn ended(mut child: Child, mut stdout: BufReader<ChildStdout>) -> (Option<i32>, String, String) {
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    let mut log = String::new();
    child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    (child.wait().unwrap().code(), rest, log)
}

#[test]
fn sigterm_and_sigint_let_a_role_finish() {
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let (child, stdout) = running(&[]);
        send(&child, signal);
        let (code, rest, log) = ended(child, stdout);
        assert_eq!((code, rest.as_str()), (Some(0), "kept\n"), "{log}");
        assert!(log.contains("started") && log.contains("stopped"), "{log}");
    }
}

#[test]
fn a_second_signal_ends_a_role_at_once() {
    let mut child = role().args(["--set", "run.seed=5"]).spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    for expected in ["started", "SIGTERM"] {
        line.clear();
        log.read_line(&mut line).unwrap();
        assert!(line.contains(expected), "{line}");
        send(&child, rustix::process::Signal::TERM);
    }
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn only_a_supervised_role_stops_when_its_standard_input_closes() {
    let (mut child, stdout) = running(&["--supervised"]);
    drop(child.stdin.take());
    let (code, rest, log) = ended(child, stdout);
    assert_eq!((code, rest.as_str()), (Some(0), "kept\n"), "{log}");

    let (mut child, stdout) = running(&[]);
    drop(child.stdin.take());
    send(&child, rustix::process::Signal::TERM);
    let (code, rest, log) = ended(child, stdout);
    assert_eq!((code, rest.as_str()), (Some(0), "kept\n"), "{log}");
    assert!(
        log.contains("SIGTERM") && !log.contains("standard input"),
        "{log}"
    );
}

#[test]
fn failure_and_panic_are_exit_code_1_with_the_reason_in_the_log() {
    let failed = output(&["--set", "run.seed=2"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("the store is gone"));

    let (child, stdout) = running(&["--set", "run.seed=3", "--log-format", "json"]);
    let (code, _, log) = ended(child, stdout);
    assert_eq!(code, Some(1));
    let panic = log.lines().find(|line| line.contains("panicked")).unwrap();
    let parsed: serde_json::Value = serde_json::from_str(panic).unwrap();
    assert_eq!(parsed["level"], "ERROR");
    assert!(panic.contains("index out of bounds"), "{panic}");
}

#[test]
fn bad_usage_and_unusable_configuration_are_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.toml");
    std::fs::write(&file, "[search]\nvisit = 3\n").unwrap();
    let path = file.to_str().unwrap();
    let cases: [(&[&str], &str); 4] = [
        (
            &["--config", path],
            "unknown key `search.visit`; did you mean `search.visits`?",
        ),
        (&["--config", "/no/such/file"], "cannot read /no/such/file"),
        (&["--set", "visits=3"], "write section.key=value"),
        (&["--set", "run.seed=4"], "write section.key=value"),
    ];
    for (arguments, reason) in cases {
        let refused = output(arguments);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(reason), "{arguments:?}: {said}");
    }
}

#[test]
fn the_file_named_by_the_environment_is_read_and_the_metrics_page_served() {
    let free = free();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.toml");
    std::fs::write(&file, format!("[actor]\nmetrics = \"{free}\"\n")).unwrap();
    let (child, stdout) = started(role().env("MINUET_CONFIG", &file));

    let mut page = String::new();
    let mut connection = TcpStream::connect(free).unwrap();
    connection
        .write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .unwrap();
    connection.read_to_string(&mut page).unwrap();
    assert!(
        page.contains("minuet_build_info{version=\"0.1.0\",role=\"actor\"} 1"),
        "{page}"
    );
    send(&child, rustix::process::Signal::TERM);
    assert_eq!(ended(child, stdout).0, Some(0));
}

/// Returns the example role under limits of descriptors, which are arguments of the shell's `ulimit`.
fn role_with_descriptors(limits: &[&str], arguments: &[&str]) -> Command {
    let mut shell = command("sh");
    let limits: String = limits.iter().map(|limit| format!("ulimit {limit} && ")).collect();
    shell
        .args(["-c", &format!("{limits} exec \"$0\" \"$@\"")])
        .arg(program())
        .args(arguments);
    shell
}

/// Returns an address with a port that was free just now.
fn free() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

#[test]
fn the_limit_of_descriptors_is_raised_at_the_start() {
    let (child, stdout) = started(&mut role_with_descriptors(&["-Sn 50", "-Hn 200"], &[]));
    send(&child, rustix::process::Signal::TERM);
    let (_, _, log) = ended(child, stdout);
    assert!(log.contains("descriptors=200"), "{log}");
}

#[test]
fn a_role_without_descriptors_logs_it_once_and_serves_again_when_there_are_some() {
    let health = free();
    let settings = format!("actor.health={health}");
    let arguments = ["--set", &settings, "--set", "run.seed=6"];
    let (mut child, mut stdout) = started(&mut role_with_descriptors(&["-n 60"], &arguments));
    let mut log = BufReader::new(child.stderr.take().unwrap());
    // These connections wait in the queue of the operating system.
    let began = Instant::now();
    let waiting: Vec<TcpStream> = (0..5).map(|_| TcpStream::connect(&health).unwrap()).collect();
    let mut lines = String::new();
    while !lines.contains("cannot accept") {
        assert!(log.read_line(&mut lines).unwrap() > 0, "{lines}");
    }
    // Time for further attempts, which would write further lines. The role tries again after 50 to 1000 ms.
    std::thread::sleep(Duration::from_secs(1));
    writeln!(child.stdin.as_mut().unwrap()).unwrap();
    let mut line = String::new();
    // Printed once more when the descriptors are free.
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "running\n");
    let allowed = 1 + began.elapsed().as_secs() as usize / 10;
    drop(waiting);
    while !output(&["--probe", &health]).status.success() {}
    send(&child, rustix::process::Signal::TERM);
    log.read_to_string(&mut lines).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{lines}");
    let found = lines
        .lines()
        .filter(|line| line.contains("cannot accept"))
        .count();
    assert!(found <= allowed, "{lines}");
}

#[test]
fn a_probe_of_a_closed_port_says_so_in_one_sentence() {
    let address = free();
    let probe = output(&["--probe", &address]);
    assert_eq!(probe.status.code(), Some(1));
    let said = String::from_utf8(probe.stderr).unwrap();
    assert!(said.contains(&format!("{address} does not answer: ")), "{said}");
    assert!(!said.contains("code:") && !said.contains('{'), "{said}");
}

#[test]
fn the_metrics_page_has_a_limit_of_readers() {
    let page = free();
    let setting = format!("actor.metrics={page}");
    let (child, stdout) = running(&["--set", &setting]);
    let read = |stream: &mut TcpStream| {
        let mut text = String::new();
        // A connection that was closed with unread data ends with an error.
        let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n");
        let _ = stream.read_to_string(&mut text);
        text
    };
    let mut readers: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(&page).unwrap()).collect();
    // Closed without an answer.
    let mut last = readers.pop().unwrap();
    assert_eq!(read(&mut last), "");
    let text = read(&mut readers[0]);
    assert!(
        text.starts_with("HTTP/1.1 200 OK\r\n") && text.contains("minuet_build_info"),
        "{text}"
    );
    drop(readers);
    while read(&mut TcpStream::connect(&page).unwrap()).is_empty() {}
    send(&child, rustix::process::Signal::TERM);
    assert_eq!(ended(child, stdout).0, Some(0));
}
