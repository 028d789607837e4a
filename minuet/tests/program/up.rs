//! `minuet up` as a process, with fake roles that crash on demand: supervision, stopping, events and exit codes.

use std::{
    fs,
    io::{self, BufRead, BufReader, Lines, Read, Write as _},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    thread,
    time::Duration,
};

use rustix::{
    fs::{OFlags, fcntl_setfl},
    process::{Pid, Signal, kill_process},
};
use serde_json::{Value, json};
use service::{process, role::Role};
use test_support::SmallDisk;

use crate::support::program::{done, fails, minuet, printed};

const ROLES: [Role; 4] = [
    Role::ReplayStore,
    Role::InferenceServer,
    Role::Learner,
    Role::Actor,
];

/// A folder with the roles' binaries, all of which are the fake role, and a run's folder.
struct Place {
    folder: tempfile::TempDir,
    run: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let fake = Path::new(env!("CARGO_BIN_EXE_minuet")).with_file_name("examples/fake_role");
        assert!(
            fake.is_file(),
            "{} is missing: cargo test builds it, cargo test --test does not",
            fake.display()
        );
        fs::create_dir_all(folder.path().join("bin")).unwrap();
        for role in ROLES {
            symlink(&fake, folder.path().join("bin").join(role.binary())).unwrap();
        }
        Self {
            run: folder.path().join("run"),
            folder,
        }
    }

    /// Creates the run's folder on `disk`.
    fn on(disk: &SmallDisk) -> Self {
        Self {
            run: disk.path().join("run"),
            ..Self::new()
        }
    }

    fn behave(&self, process: &str, behaviour: &str) {
        fs::create_dir_all(self.run.join("behaviour")).unwrap();
        fs::write(self.run.join("behaviour").join(process), behaviour).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        self.command_with_studio(&[arguments, &["--no-studio"]].concat())
    }

    fn command_with_studio(&self, arguments: &[&str]) -> Command {
        let mut command = minuet("up --binaries");
        command
            .arg(self.folder.path().join("bin"))
            .arg("--run")
            .arg(&self.run)
            .args(["--set", "rating.enabled=false"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn up(&self, arguments: &[&str]) -> Up {
        Up::new(self.command(arguments))
    }

    /// Starts a run of four roles, and waits until they are ready. Returns it with its processes.
    fn ready(&self) -> (Up, Vec<Known>) {
        let mut up = self.up(&[]);
        up.until_ready(4);
        let processes = known_processes(&self.run);
        assert_eq!(processes.len(), 4);
        (up, processes)
    }

    /// Returns the roles in the order in which their processes stopped.
    fn order(&self) -> Vec<String> {
        let text = fs::read_to_string(self.run.join("order")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

/// A running `minuet up --json`.
struct Up {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Up {
    fn new(mut command: Command) -> Self {
        let mut child = command.arg("--json").spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Waits for the next event of this kind; `None` if there are no more events.
    fn next(&mut self, kind: &str) -> Option<Value> {
        self.lines
            .by_ref()
            .map(|line| event(&line.unwrap()))
            .find(|event| event["event"] == kind)
    }

    /// Waits until these processes are ready.
    fn until_ready(&mut self, count: usize) {
        for _ in 0..count {
            self.next("role-ready").expect("a role becomes ready");
        }
    }

    fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Sends a signal that must stop the run. Returns all events to the end.
    fn stop(self, signal: Signal) -> Vec<Value> {
        self.send(signal);
        let (events, code, said) = self.end();
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(events.last().unwrap()["event"], "stopped");
        events
    }

    /// Returns all events to the end, the exit code, and the text on standard error.
    fn end(mut self) -> (Vec<Value>, Option<i32>, String) {
        let events = self.lines.map(|line| event(&line.unwrap())).collect();
        let mut said = String::new();
        let mut errors = self.child.stderr.take().unwrap();
        errors.read_to_string(&mut said).unwrap();
        (events, self.child.wait().unwrap().code(), said)
    }
}

fn event(line: &str) -> Value {
    let event: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    assert!(event["at_ms"].is_u64() && event["event"].is_string(), "{line}");
    event
}

fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["event"] == kind).collect()
}

/// A process in the run's `processes.json`: its name, its number and its start time.
type Known = (String, u32, u64);

fn known_processes(run: &Path) -> Vec<Known> {
    let census: Value = serde_json::from_slice(&fs::read(run.join("processes.json")).unwrap()).unwrap();
    let processes = census["processes"].as_array().unwrap().iter();
    let known = |process: &Value| {
        let number = |key: &str| process[key].as_u64().unwrap();
        let name = process["name"].as_str().unwrap().to_owned();
        (name, number("pid") as u32, number("started_at"))
    };
    processes.map(known).collect()
}

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
}

fn wait_until_gone(processes: &[Known]) {
    let is_there = |(_, pid, started_at): &Known| process::started_at(*pid) == Some(*started_at);
    while processes.iter().any(is_there) {
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn ctrl_c_stops_every_process_in_order_and_a_second_start_continues() {
    let place = Place::new();
    let mut up = place.up(&["--actors", "2", "--set", "search.visits=17"]);
    let started = up.next("started").unwrap();
    assert_eq!(
        [&started["new"], &started["game"]],
        [&json!(true), &json!("paco-sako")]
    );
    assert_eq!(started["processes"].as_array().unwrap().len(), 5);
    up.until_ready(5);
    let processes = known_processes(&place.run);
    assert_eq!(processes.len(), 5);
    let events = up.stop(Signal::INT);
    assert_eq!(of_kind(&events, "stopping")[0]["reason"], "Ctrl-C");
    assert_eq!(of_kind(&events, "role-stopped").len(), 5);
    let order = place.order();
    let actors: Vec<&str> = order.iter().take(2).map(|name| &name[..5]).collect();
    assert_eq!(actors, ["actor", "actor"], "{order:?}");
    assert_eq!(order[2], "learner", "{order:?}");
    wait_until_gone(&processes);

    let text = fs::read_to_string(place.run.join("run.toml")).unwrap();
    assert!(text.contains("\nvisits = 17\n"), "{text}");
    let mut again = place.up(&["--for", "10ms"]);
    assert_eq!(again.next("started").unwrap()["new"], false);
    let (events, code, _) = again.end();
    assert_eq!(code, Some(0));
    let reason = &of_kind(&events, "stopping")[0]["reason"];
    assert_eq!(reason, "the time limit of 10ms is over");
}

#[test]
fn a_process_that_dies_is_restarted_and_its_log_quoted() {
    let place = Place::new();
    place.behave("learner", "crash-once");
    let mut up = place.up(&[]);
    let exited = up.next("role-exited").unwrap();
    assert_eq!(
        [&exited["name"], &exited["status"]],
        ["learner", "exit status: 1"]
    );
    let quoted = exited["last_lines"].to_string();
    assert!(quoted.contains("the learner crashes once"), "{quoted}");
    let started = up.next("role-started").unwrap();
    assert_eq!(started["name"], "learner");

    // Any process can be killed any number of times.
    for _ in 0..2 {
        kill_and_wait(&mut up, &place, "inference-server");
    }
    up.stop(Signal::TERM);
    assert_eq!(place.order().len(), 4);
}

#[test]
fn a_run_continues_when_its_output_cannot_be_written() {
    let place = Place::new();
    let mut command = place.command(&["--json"]);
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut child = command.stdout(full).spawn().unwrap();
    let journal = place.run.join("up/metrics.jsonl");
    let mut events = String::new();
    while events.matches("role-ready").count() < 4 || !events.contains("No space left on device") {
        assert_eq!(child.try_wait().unwrap(), None, "{events}");
        thread::sleep(Duration::from_millis(20));
        events = fs::read_to_string(&journal).unwrap_or_default();
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{said}");
    assert!(
        said.contains("cannot write to standard output: No space left on device"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(place.order().len(), 4);
}

#[test]
fn a_signal_stops_a_run_whose_output_is_blocked() {
    let place = Place::new();
    let (reader, writer) = io::pipe().unwrap();
    // Nobody reads, and the pipe is full before the run begins.
    fcntl_setfl(&writer, OFlags::NONBLOCK).unwrap();
    while (&writer).write(b"\n").is_ok() {}
    fcntl_setfl(&writer, OFlags::empty()).unwrap();
    let mut child = place.command(&[]).stdout(writer).spawn().unwrap();
    let mut events = String::new();
    while events.matches("role-ready").count() < 4 {
        assert_eq!(child.try_wait().unwrap(), None, "{events}");
        thread::sleep(Duration::from_millis(20));
        events = fs::read_to_string(place.run.join("up/metrics.jsonl")).unwrap_or_default();
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(place.order().len(), 4);
    drop(reader);
}

#[test]
fn a_copy_of_a_running_folder_leaves_the_run_alone() {
    let place = Place::new();
    let (up, processes) = place.ready();
    let copy = Place::new();
    fs::create_dir_all(&copy.run).unwrap();
    for file in ["run.toml", "processes.json"] {
        fs::copy(place.run.join(file), copy.run.join(file)).unwrap();
    }
    let mut other = copy.up(&["--set", "run.seed=2"]);
    let warning = other.next("warning").unwrap();
    let text = warning["text"].as_str().unwrap();
    assert!(text.contains("is left alone"), "{text}");
    other.until_ready(4);
    other.stop(Signal::TERM);
    let is_there = |(_, pid, started_at): &Known| process::started_at(*pid) == Some(*started_at);
    assert!(processes.iter().all(is_there));
    let events = up.stop(Signal::TERM);
    assert!(of_kind(&events, "role-exited").is_empty());
}

#[test]
fn damaged_choices_are_named_and_measured_again() {
    let place = Place::new();
    let (up, _) = place.ready();
    up.stop(Signal::TERM);
    fs::write(place.run.join("choices.json"), "{\"threads\": 2").unwrap();
    let found = done(minuet("doctor --run").arg(&place.run));
    assert!(found.out.contains("choices.json: EOF"), "{}", found.out);
    let mut up = place.up(&[]);
    let warning = up.next("warning").unwrap();
    let text = warning["text"].as_str().unwrap();
    assert!(text.starts_with("choices.json cannot be read (EOF"), "{text}");
    up.until_ready(4);
    up.stop(Signal::TERM);
}

#[test]
fn processes_run_although_their_list_cannot_be_written() {
    let place = Place::new();
    let (mut up, processes) = place.ready();
    // A folder in place of the file makes the write fail, as a full disk would.
    let file = place.run.join("processes.json");
    fs::remove_file(&file).unwrap();
    fs::create_dir_all(file.join("in the way")).unwrap();
    kill(processes[0].1);
    up.next("role-exited").unwrap();
    let warning = up.next("warning").unwrap();
    let text = warning["text"].as_str().unwrap();
    assert!(text.contains("to the list of processes"), "{text}");
    up.next("role-ready").unwrap();
    let events = up.stop(Signal::TERM);
    assert!(of_kind(&events, "role-failed").is_empty());
}

#[test]
fn a_role_that_fails_on_a_full_disk_is_restarted_without_limit() {
    let Some(disk) = SmallDisk::mount(8) else {
        return;
    };
    let place = Place::on(&disk);
    let (mut up, processes) = place.ready();
    // The learner fails while the disk is full.
    place.behave("learner", "crash");
    disk.fill();
    processes.iter().for_each(|(_, pid, _)| kill(*pid));
    let (mut learners, mut others) = (0, 0);
    // More restarts than a role gets that fails at once on a disk with free space.
    while learners < 7 {
        let line = up.lines.next().expect("the run continues").unwrap();
        let event = event(&line);
        assert_ne!(event["event"], "role-failed", "{event}");
        if event["event"] == "role-exited" {
            learners += u32::from(event["name"] == "learner");
            others += u32::from(event["name"] != "learner");
        }
    }
    assert_eq!(others, 3, "each of the others was killed once and restarted");
    fs::remove_file(place.run.join("behaviour/learner")).unwrap();
    disk.make_room();
    up.next("role-started").unwrap();
    while up.next("role-ready").unwrap()["name"] != "learner" {}
    up.stop(Signal::TERM);
}

/// Kills a process and waits until it is restarted.
fn kill_and_wait(up: &mut Up, place: &Place, name: &str) {
    let processes = known_processes(&place.run);
    let known = processes.iter().find(|(known, ..)| known == name);
    kill(known.unwrap().1);
    let exited = up.next("role-exited").unwrap();
    assert_eq!(
        [&exited["name"], &exited["status"]],
        [name, "signal: 9 (SIGKILL)"]
    );
    while up.next("role-started").unwrap()["name"] != name {}
}

#[test]
fn a_process_that_cannot_run_stops_the_run_and_its_log_is_named() {
    for (behaviour, reason) in [
        ("crash", "failed at once 5 times in a row"),
        ("unusable", "exit status: 2"),
    ] {
        let place = Place::new();
        place.behave("actor-1", behaviour);
        let (events, code, said) = place.up(&[]).end();
        assert_eq!(code, Some(1), "{said}");
        let failed = of_kind(&events, "role-failed");
        assert_eq!(failed.len(), 1);
        assert_eq!(failed[0]["name"], "actor-1");
        let log = place.run.join("logs/actor-1.log");
        let log = fs::canonicalize(log).unwrap();
        assert_eq!(failed[0]["log"], log.to_str().unwrap());
        for part in [reason, "logs/actor-1.log"] {
            assert!(said.contains(part), "{said}");
        }
        assert_eq!(events.last().unwrap()["event"], "stopped");
        let exits = of_kind(&events, "role-exited").len();
        assert_eq!(exits, if behaviour == "crash" { 4 } else { 0 });
        // The other processes stop as usual.
        assert!(place.order().contains(&"learner".to_owned()));
    }
}

#[test]
fn no_process_outlives_a_killed_up_and_the_next_start_continues() {
    let place = Place::new();
    let (mut up, processes) = place.ready();
    up.send(Signal::KILL);
    up.child.wait().unwrap();

    // Started at once, while the roles may still be stopping.
    let (next, _) = place.ready();
    wait_until_gone(&processes);
    next.stop(Signal::TERM);
    assert_eq!(place.order().len(), 8, "all processes stopped on request");
}

#[test]
fn a_second_signal_kills_a_process_that_does_not_stop() {
    let place = Place::new();
    place.behave("actor-1", "stubborn");
    let (mut up, processes) = place.ready();
    up.send(Signal::INT);
    up.next("stopping").unwrap();
    up.send(Signal::INT);
    let (_, code, said) = up.end();
    assert_eq!(code, Some(1));
    assert!(said.contains("stopped at once"), "{said}");
    wait_until_gone(&processes);
}

#[test]
fn a_folder_admits_one_process_and_bad_usage_is_exit_code_2() {
    let place = Place::new();
    let mut up = place.up(&[]);
    up.next("started").unwrap();
    let other = format!("another `minuet up` (process {})", up.child.id());
    fails(&mut place.command(&[]), 1, &other);
    up.stop(Signal::TERM);

    for (arguments, reason) in [
        (
            ["--set", "search.visit=3"],
            "unknown key `search.visit`; did you mean `search.visits`?",
        ),
        (["--set", "search.visits=0"], "`search.visits` must be at least 1"),
        (["--set", "visits=3"], "write section.key=value"),
        (["--for", "soon"], "invalid value 'soon'"),
    ] {
        fails(&mut place.command(&arguments), 2, reason);
    }
    let another_game = &mut place.command(&["--game", "chess"]);
    fails(another_game, 1, "is a run of paco-sako, not of chess");
}

#[test]
fn missing_binaries_are_named_before_anything_is_started() {
    let place = Place::new();
    fs::remove_file(place.folder.path().join("bin/minuet-learner")).unwrap();
    let (events, code, said) = place.up(&[]).end();
    assert_eq!(code, Some(1));
    assert!(said.contains("there is no minuet-learner in"), "{said}");
    assert!(of_kind(&events, "role-started").is_empty());
}

#[test]
fn output_without_a_terminal_is_lines() {
    let place = Place::new();
    let mut child = place.command(&[]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    let first = lines.next().unwrap();
    assert!(first.starts_with("00:00:00 paco-sako: a new run in "), "{first}");
    let mut figures = lines.by_ref().filter(|line| line.contains(" visits/s"));
    let figures = figures.next().unwrap();
    for part in ["games", "checkpoint none yet"] {
        assert!(figures.contains(part), "{figures}");
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let rest: Vec<String> = lines.collect();
    for part in ["SIGTERM: stopping", "kept in "] {
        assert!(rest.iter().any(|line| line.contains(part)), "{rest:?}");
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// `script` runs the command on a terminal of its own.
#[test]
fn a_terminal_that_cannot_move_its_cursor_gets_lines() {
    for term in ["dumb", ""] {
        let place = Place::new();
        let command = place.command(&["--for", "1s"]);
        let words: Vec<_> = [command.get_program()]
            .into_iter()
            .chain(command.get_args())
            .map(|word| word.to_str().unwrap())
            .collect();
        let mut terminal = Command::new("script");
        terminal
            .args(["-qec", &words.join(" "), "/dev/null"])
            .env("TERM", term);
        let text = printed(&mut terminal);
        for part in ["paco-sako: a new run in ", "kept in "] {
            assert!(text.contains(part), "{term}: {text}");
        }
    }
}

#[test]
fn the_studio_is_named_first_and_its_end_does_not_end_the_run() {
    let place = Place::new();
    let program = place.folder.path().join("bin/minuet");
    symlink(env!("CARGO_BIN_EXE_minuet"), program).unwrap();
    let mut up = Up::new(place.command_with_studio(&[]));
    let first = event(&up.lines.next().unwrap().unwrap());
    assert_eq!(first["event"], "studio");
    let url = first["url"].as_str().unwrap();
    assert!(url.starts_with("http://127.0.0.1:"), "{first}");
    let started = |up: &mut Up| loop {
        let event = up.next("role-started").expect("the studio is started");
        if event["name"] == "studio" {
            return event["pid"].as_u64().unwrap() as u32;
        }
    };
    let pid = started(&mut up);
    kill(pid);
    assert_eq!(up.next("role-exited").unwrap()["name"], "studio");
    assert_ne!(started(&mut up), pid);
    let events = up.stop(Signal::INT);
    let stopped = of_kind(&events, "role-stopped");
    let is_studio = |event: &&Value| event["name"] == "studio" && event["killed"] == false;
    assert!(stopped.iter().any(is_studio), "{stopped:?}");
}

#[test]
fn a_run_continues_without_ratings() {
    let place = Place::new();
    symlink("/bin/false", place.folder.path().join("bin/minuet")).unwrap();
    let mut up = place.up(&["--set", "rating.enabled=true"]);
    let failed = up.next("role-failed").expect("the role is given up");
    assert_eq!(failed["name"], "rating");
    let events = up.stop(Signal::INT);
    assert_eq!(of_kind(&events, "role-stopped").len(), ROLES.len());
}
