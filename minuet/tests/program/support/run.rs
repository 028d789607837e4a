//! [`Run`]: a `minuet up` process under test, with its events, its store and its roles' processes.

use std::{
    collections::BTreeSet,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use proto::v1::{GameSummary, ListGamesRequest, replay_store_client::ReplayStoreClient};
use serde_json::Value;

use super::program::{Killed, minuet};

/// Longest wait; a test that waits this long is assumed to hang.
const TIMEOUT: Duration = Duration::from_secs(300);
const PAGE: u32 = 500;

/// Returns the path of a role's program, next to `minuet`.
pub fn program_of(role: &str) -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_minuet")).with_file_name(format!("minuet-{role}"));
    assert!(
        program.exists(),
        "{} is not built: run make test, or cargo build --release --bins first",
        program.display()
    );
    program
}

/// Returns settings of a run that publishes a trained checkpoint within seconds.
pub fn tiny_run() -> Vec<&'static str> {
    vec![
        "model.blocks=1",
        "model.filters=8",
        "model.value_hidden=8",
        "model.global_pooling=0",
        "model.value_head=scalar",
        "search.visits=6",
        "search.max_actions=120",
        "actor.games_per_thread=16",
        "actor.threads=1",
        "inference.provider=\"cpu\"",
        "inference.max_batch=64",
        "learner.batch_size=32",
        "learner.threads=1",
        "learner.min_positions=200",
        "learner.checkpoint_steps=5",
        "learner.warmup_steps=2",
        "learner.samples_per_position=2.0",
        "checkpoints.poll_ms=100",
        "rating.enabled=false",
    ]
}

/// A running `minuet up --json`. Dropping it kills it.
pub struct Run {
    child: Killed,
    events: mpsc::Receiver<Value>,
    past: Vec<Value>,
    replay: String,
    runtime: tokio::runtime::Runtime,
}

#[allow(dead_code, reason = "each test uses some of it")]
impl Run {
    /// Starts a run of Paco Ŝako.
    pub fn start(folder: &Path, settings: &[&str]) -> Self {
        Self::with_arguments(&[], folder, settings, &[])
    }

    /// Starts a run of another game.
    pub fn of_game(game: &str, folder: &Path, settings: &[&str]) -> Self {
        Self::with_arguments(&["--game", game], folder, settings, &[])
    }

    /// Starts a run with more arguments of `minuet up`, and variables in the environment of all its processes.
    pub fn with_arguments(
        arguments: &[&str],
        folder: &Path,
        settings: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        for role in ["actor", "inference-server", "replay-store", "learner"] {
            program_of(role);
        }
        let mut command = minuet("up --no-studio --json --run");
        command.arg(folder).args(arguments);
        command.args(settings.iter().flat_map(|setting| ["--set", setting]));
        command.envs(variables.iter().copied()).stdout(Stdio::piped());
        let mut child = Killed(command.spawn().unwrap());
        let lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
        let (send, events) = mpsc::channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let event = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not an event: {line}"));
                if send.send(event).is_err() {
                    return;
                }
            }
        });
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let mut run = Self {
            child,
            events,
            past: Vec::new(),
            replay: String::new(),
            runtime: runtime.enable_all().build().unwrap(),
        };
        let started = run.wait_for("started", |_| true);
        started["replay"].as_str().unwrap().clone_into(&mut run.replay);
        // `started` may be waited for again.
        run.past.push(started);
        run
    }

    /// Waits for the next event of this kind that `fits`, and returns it. Events that do not fit are kept for later calls.
    pub fn wait_for(&mut self, kind: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let is_it = |event: &Value| event["event"] == kind && fits(event);
        if let Some(at) = self.past.iter().position(is_it) {
            return self.past.remove(at);
        }
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left) {
                Ok(event) if is_it(&event) => return event,
                Ok(event) => {
                    assert_ne!(event["event"], "role-failed", "{event:#}");
                    if event["event"] != "summary" {
                        self.past.push(event);
                    }
                }
                Err(error) => panic!("no {kind} event ({error}); before it: {:#?}", self.past),
            }
        }
    }

    /// Waits for a stored game that `fits`.
    pub fn wait_for_game(&mut self, fits: impl Fn(&GameSummary) -> bool) -> GameSummary {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(game) = self.games().into_iter().find(&fits) {
                return game;
            }
            assert!(Instant::now() < deadline, "no such game was stored");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits until the stored games `fit`.
    pub fn wait_for_games(&mut self, fit: impl Fn(&[GameSummary]) -> bool) {
        let deadline = Instant::now() + TIMEOUT;
        while !fit(&self.games()) {
            assert!(Instant::now() < deadline, "no such games were stored");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Returns the ids of all stored games. Panics if a game is stored twice.
    pub fn game_ids(&mut self) -> BTreeSet<Vec<u8>> {
        let games = self.games();
        let ids: BTreeSet<Vec<u8>> = games.iter().map(|game| game.id.to_vec()).collect();
        assert_eq!(ids.len(), games.len(), "a game is stored twice");
        ids
    }

    /// Returns all stored games.
    pub fn games(&mut self) -> Vec<GameSummary> {
        let address = format!("http://{}", self.replay);
        self.runtime.block_on(async {
            let deadline = Instant::now() + TIMEOUT;
            loop {
                match list_games(address.clone()).await {
                    Ok(games) => return games,
                    // The store may just have been killed.
                    Err(error) => assert!(Instant::now() < deadline, "the store does not answer: {error}"),
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        })
    }

    /// Sends a signal to a role's present process. The process must survive it.
    pub fn signal(&mut self, role: &str, name: &str) {
        let pid = self.pid(role);
        signal(&pid.to_string(), name);
    }

    /// Returns the number of a role's present process.
    pub fn pid(&mut self, role: &str) -> i32 {
        let started = self.wait_for("role-started", |event| event["name"] == role);
        let pid = started["pid"].as_i64().unwrap() as i32;
        self.past.push(started);
        pid
    }

    /// `kill -9` of a role's present process.
    pub fn kill(&mut self, role: &str) {
        let started = self.wait_for("role-started", |event| event["name"] == role);
        // Earlier events are of the killed process.
        self.past
            .retain(|event| event["name"] != role && event["event"] != "checkpoint");
        signal(&started["pid"].to_string(), "KILL");
    }

    /// Stops the run and returns its `stopped` event.
    pub fn stop(mut self) -> Value {
        signal(&self.child.0.id().to_string(), "TERM");
        let kept = self.wait_for("stopped", |_| true);
        let status = self.child.0.wait().unwrap();
        assert!(status.success(), "minuet up ended with {status}");
        kept
    }
}

fn signal(pid: &str, name: &str) {
    let mut kill = Command::new("kill");
    let status = kill.args([&format!("-{name}"), pid]).status().unwrap();
    assert!(status.success(), "cannot send SIG{name} to {pid}");
}

async fn list_games(address: String) -> Result<Vec<GameSummary>, Box<dyn std::error::Error>> {
    let mut client = ReplayStoreClient::connect(address).await?;
    let mut games: Vec<GameSummary> = Vec::new();
    loop {
        let after_sequence = games.last().map_or(0, |game| game.sequence);
        let request = ListGamesRequest {
            after_sequence,
            limit: PAGE,
            ..ListGamesRequest::default()
        };
        let page = client.list_games(request).await?.into_inner().games;
        if page.is_empty() {
            return Ok(games);
        }
        games.extend(page);
    }
}
