//! `minuet rating` as a process, with a model store in which checkpoints appear: promotion of the best checkpoint, restarts after
//! kills, full disks.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use checkpoints::{BEST, CANDIDATE, Repository, Version};
use config::{Provider, RunConfig, template};
use games::{
    Game, Notation as _, RowLayout,
    connect_four::ConnectFour,
    generator::{Encoding, GeneratorGame},
};
use onnx::{Input, Metadata, TowerShape, TowerWeights};
use serde_json::{Value, json};
use test_support::SmallDisk;
use tokio_util::sync::CancellationToken;

use crate::support::{
    metrics,
    program::{Killed, fails, minuet},
    served::publish,
};

/// Longest wait; a test that waits this long is assumed to hang.
const TIMEOUT: Duration = Duration::from_secs(240);

/// Number of lines of four through each cell, rank by rank from the bottom.
const LINES: [[f32; 7]; 6] = [
    [3.0, 4.0, 5.0, 7.0, 5.0, 4.0, 3.0],
    [4.0, 6.0, 8.0, 10.0, 8.0, 6.0, 4.0],
    [5.0, 8.0, 11.0, 13.0, 11.0, 8.0, 5.0],
    [5.0, 8.0, 11.0, 13.0, 11.0, 8.0, 5.0],
    [4.0, 6.0, 8.0, 10.0, 8.0, 6.0, 4.0],
    [3.0, 4.0, 5.0, 7.0, 5.0, 4.0, 3.0],
];
/// Weight of a network that prefers cells with many lines through them.
const STRONG: f32 = 0.02;
/// Weight of a network that prefers cells with few lines through them.
const WEAK: f32 = -0.02;

/// A Connect Four run without roles.
struct Place {
    folder: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
    repository: Repository,
    config: RunConfig,
}

impl Place {
    fn new(change: impl FnOnce(&mut RunConfig)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut config = RunConfig::default();
        config.game.name = ConnectFour::NAME.into();
        config.game.options = ConnectFour::OPTIONS;
        config.checkpoints.poll_ms = 50;
        config.search.random_symmetry = false;
        let rating = &mut config.rating;
        (rating.elo0, rating.elo1, rating.max_games) = (0.0, 100.0, 400);
        (rating.visits, rating.threads) = (12, 2);
        rating.provider = Provider::Cpu;
        rating.metrics = port.to_string();
        change(&mut config);
        fs::write(folder.path().join("run.toml"), template(&config)).unwrap();
        let store = folder.path().join("checkpoints");
        Self {
            runtime: tokio::runtime::Runtime::new().unwrap(),
            repository: Repository::open(store.to_str().unwrap()).unwrap(),
            config,
            folder,
        }
    }

    /// Publishes a network with equal priors that values a position by the lines through the occupied cells, and moves `latest` to
    /// it.
    fn publish(&self, step: u64, weight: f32) -> Version {
        let layout = ConnectFour::layout(Default::default());
        let weights = network(&layout, weight);
        let metadata = Metadata { layout, step };
        let model = onnx::build(&weights, &metadata, Input::Rows).unwrap();
        self.publish_model(&metadata, model)
    }

    /// Publishes a model, and moves `latest` to it.
    fn publish_model(&self, metadata: &Metadata, model: Vec<u8>) -> Version {
        self.runtime.block_on(publish(&self.repository, metadata, model))
    }

    fn label(&self, label: &str) -> Option<Version> {
        self.runtime.block_on(self.repository.label(label)).unwrap()
    }

    fn command(&self) -> Command {
        let mut command = minuet("rating --supervised --config");
        command
            .arg(self.folder.path().join("run.toml"))
            .stdin(Stdio::piped());
        command
    }

    fn start(&self) -> Killed {
        Killed(self.command().spawn().unwrap())
    }

    /// Starts the role with another setting.
    fn start_with(&self, setting: &str) -> Killed {
        Killed(self.command().args(["--set", setting]).spawn().unwrap())
    }

    /// Starts the role with its log in a file.
    fn start_logged(&self, log: &Path) -> Killed {
        let log = fs::File::create(log).unwrap();
        Killed(self.command().stderr(log).spawn().unwrap())
    }

    /// Publishes a first network and starts the role. Returns both when the network is the best one.
    fn begin(&self, weight: f32) -> (Version, Killed) {
        let first = self.publish(0, weight);
        let role = self.start();
        self.wait_for_best(&first);
        (first, role)
    }

    fn wait_for_best(&self, version: &Version) {
        wait_until("the best one", || self.label(BEST).as_ref() == Some(version));
    }

    /// Returns the folder of ratings.
    fn rating(&self) -> PathBuf {
        self.folder.path().join(&self.config.rating.folder)
    }

    fn lines(&self) -> Vec<Value> {
        let whole = whole_lines(&self.rating().join("metrics.jsonl"));
        whole
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn matches(&self) -> Vec<PathBuf> {
        let folders = fs::read_dir(self.rating().join("matches"));
        let folders = folders.into_iter().flatten();
        folders.map(|folder| folder.unwrap().path()).collect()
    }

    /// Waits for the result of a candidate's match.
    fn result_of(&self, candidate: &Version) -> Value {
        let mut result = None;
        wait_until("a result", || {
            let is_it = |line: &Value| line["candidate"] == candidate.as_str();
            result = self.lines().into_iter().find(is_it);
            result.is_some()
        });
        result.unwrap()
    }

    /// Waits for the result of a candidate's match, which must have this outcome against this opponent.
    fn expect(&self, candidate: &Version, outcome: &str, opponent: &Version) -> Value {
        let result = self.result_of(candidate);
        let found = json!([result["outcome"], result["opponent"]]);
        assert_eq!(found, json!([outcome, opponent.as_str()]), "{result}");
        result
    }

    /// Waits until the only match has `count` games. Returns its folder.
    fn wait_for_games(&self, count: usize) -> PathBuf {
        let has_games = |folder: &PathBuf| games(folder).len() >= count;
        wait_until("some games", || self.matches().first().is_some_and(has_games));
        self.matches().remove(0)
    }

    /// Returns a sample of the metrics page, e.g. `elo{checkpoint="best"}`.
    fn sample(&self, name: &str) -> Option<f64> {
        let page = metrics::page(&self.config.rating.metrics);
        let samples = page
            .lines()
            .filter_map(|line| line.strip_prefix("minuet_rating_"));
        let mut found = samples.filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        found.next()?.parse().ok()
    }

    fn move_best(&self, to: &Version) {
        self.runtime
            .block_on(self.repository.set_label(BEST, to))
            .unwrap();
    }
}

/// Returns a network with the value `tanh(weight · (lines through the mover's cells - lines through the other player's cells))`.
fn network(layout: &RowLayout, weight: f32) -> TowerWeights {
    const FILTERS: usize = 4;
    let stack = layout.stack().unwrap();
    let (squares, width) = (stack.squares(), stack.width as usize);
    let mut weights = TowerWeights::random(&TowerShape::new(layout, 1, FILTERS), 1);
    for layer in &mut weights.layers {
        layer.weights.fill(0.0);
        layer.bias.fill(0.0);
    }
    // Planes 0 and 1, the mover's discs and the other player's, pass unchanged to filters, channels and hidden units.
    for plane in 0..2 {
        let input = weights.layer_mut("input").unwrap();
        let planes = input.shape.inputs;
        input.weights[(plane * planes + plane) * 9 + 4] = 1.0;
        weights.layer_mut("value.conv").unwrap().weights[plane * FILTERS + plane] = 1.0;
        let hidden = weights.layer_mut("value.hidden").unwrap();
        let inputs = hidden.shape.inputs;
        let own = &mut hidden.weights[plane * inputs + plane * squares..][..squares];
        for (rank, lines) in LINES.iter().enumerate() {
            own[width * rank..width * rank + 7].copy_from_slice(lines);
        }
        let output = weights.layer_mut("value.output").unwrap();
        output.weights[plane] = if plane == 0 { weight } else { -weight };
    }
    weights
}

/// Ends the role as its supervisor does.
fn stop(mut role: Killed) {
    drop(role.0.stdin.take());
    assert!(role.0.wait().unwrap().success());
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < TIMEOUT, "waited for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn games(folder: &Path) -> Vec<String> {
    whole_lines(&folder.join("games.jsonl"))
}

fn whole_lines(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole.map(str::to_owned).collect()
}

#[test]
fn a_better_checkpoint_becomes_the_best_one_and_a_worse_one_does_not() {
    let place = Place::new(|_| {});
    let (first, role) = place.begin(WEAK);
    assert!(place.lines().is_empty(), "the first checkpoint has no opponent");

    let strong = place.publish(10, STRONG);
    let promoted = place.expect(&strong, "promoted", &first);
    assert_eq!(place.label(BEST), Some(strong.clone()));
    let [low, high] = [0, 1].map(|end| promoted["elo_interval"][end].as_f64().unwrap());
    let elo = promoted["elo"].as_f64().unwrap();
    assert!(low > 0.0 && low < elo && elo < high, "{promoted}");
    assert_eq!(promoted["best_elo"], promoted["elo"]);

    let weak = place.publish(20, 1.5 * WEAK);
    let kept = place.expect(&weak, "kept", &strong);
    assert_eq!(place.label(BEST), Some(strong));
    // The label keeps the checkpoint from being pruned.
    assert_eq!(place.label(CANDIDATE), Some(weak));
    assert!(kept["elo"].as_f64() < kept["best_elo"].as_f64(), "{kept}");

    // The metrics page and the table agree.
    let number = |value: &Value| value.as_f64().unwrap();
    for (name, value) in [
        ("promotions_total", 1.0),
        ("matches_total", 2.0),
        ("step{checkpoint=\"best\"}", 10.0),
        ("step{checkpoint=\"latest\"}", 20.0),
        ("elo{checkpoint=\"best\"}", number(&kept["best_elo"])),
        ("elo_low{checkpoint=\"latest\"}", number(&kept["elo_interval"][0])),
        ("games_total", number(&promoted["games"]) + number(&kept["games"])),
    ] {
        let is_told = |found: f64| (found - value).abs() < 1e-6;
        wait_until(&format!("{name} {value}"), || {
            place.sample(name).is_some_and(is_told)
        });
    }
    assert!(place.folder.path().join("rating/tensorboard").is_dir());
    for folder in place.matches() {
        assert!(folder.join("games.txt").is_file(), "{}", folder.display());
    }
    stop(role);
}

#[test]
fn a_match_that_is_killed_continues_before_a_newer_checkpoint_is_rated() {
    // Two equal players and a test that hardly ever decides: no machine finishes the match before the kill.
    let place = Place::new(|config| {
        config.rating.max_games = 100_000;
        config.rating.visits = 60;
        config.rating.elo1 = 0.1;
    });
    let (_, role) = place.begin(STRONG);
    let alike = place.publish(1, 1.01 * STRONG);
    let folder = place.wait_for_games(6);
    drop(role);
    let before = games(&folder);
    assert!(place.lines().is_empty());

    // A newer checkpoint has appeared; the match ends a few games after those that were begun.
    let newer = place.publish(2, 1.02 * STRONG);
    let numbers = before.iter().map(|line| {
        let game: Value = serde_json::from_str(line).unwrap();
        game["game"].as_u64().unwrap()
    });
    let most = (numbers.max().unwrap() + 20).next_multiple_of(2);
    let enough = format!("rating.max_games={most}");
    let role = place.start_with(&enough);
    let result = place.result_of(&alike);
    assert_eq!(result["outcome"], "undecided", "{result}");
    assert_eq!(result["games"], most);
    let after = games(&folder);
    assert_eq!(after[..before.len()], before, "games from before the kill count");
    assert_eq!(after.len() as u64, most, "no game is played twice");
    let result = place.result_of(&newer);
    // Games from before the kill are not counted twice.
    let played = (after.len() - before.len()) as u64 + result["games"].as_u64().unwrap();
    wait_until("all games to be counted", || {
        place.sample("games_total") == Some(played as f64)
    });
    assert_eq!(result["opponent"], place.label(BEST).unwrap().as_str());
    assert_eq!(place.matches().len(), 2);

    // A restart plays no further game.
    stop(role);
    let role = place.start_with(&enough);
    let third = place.publish(3, 1.03 * STRONG);
    place.result_of(&third);
    assert_eq!(place.lines().len(), 3);
    stop(role);
}

#[test]
fn a_match_ends_if_another_process_moves_best_and_a_folder_admits_one_process() {
    let place = Place::new(|config| {
        config.rating.max_games = 20_000;
        // So small a difference is not decided within max_games, however fast the games are.
        config.rating.elo1 = 0.1;
    });
    let (_, role) = place.begin(STRONG);
    let alike = place.publish(1, 1.01 * STRONG);
    place.wait_for_games(1);
    let mut second = place.command();
    second.args(["--set", "rating.metrics="]);
    fails(&mut second, 1, "another process rates in");

    place.move_best(&alike);
    let result = place.result_of(&alike);
    assert_eq!(result["outcome"], "overtaken", "{result}");
    assert!(result["games"].as_u64() < Some(20_000));
    stop(role);
}

#[test]
fn an_interrupted_promotion_is_completed() {
    let place = Place::new(|_| {});
    let (first, role) = place.begin(WEAK);
    let strong = place.publish(10, STRONG);
    let promoted = place.expect(&strong, "promoted", &first);
    wait_until("its end", || !place.rating().join("promotion.json").exists());
    stop(role);

    // The state between the two steps, before and after the label was moved.
    let line = |lines: &[Value]| {
        let mut line = lines[0].clone();
        for key in ["elo", "elo_interval", "best_elo", "best_elo_interval", "time_ms"] {
            line.as_object_mut().unwrap().remove(key);
        }
        line
    };
    let before = line(&place.lines());
    for best in [&strong, &first] {
        fs::write(place.rating().join("promotion.json"), promoted.to_string()).unwrap();
        fs::write(place.rating().join("metrics.jsonl"), "").unwrap();
        place.move_best(best);
        let role = place.start();
        wait_until("the line", || !place.lines().is_empty());
        wait_until("its end", || !place.rating().join("promotion.json").exists());
        assert_eq!(line(&place.lines()), before);
        assert_eq!(place.label(BEST), Some(strong.clone()));
        stop(role);
    }
}

#[test]
fn a_best_checkpoint_without_games_is_rated() {
    let place = Place::new(|config| config.rating.keep_matches = 2);
    let (first, role) = place.begin(WEAK);
    let strong = place.publish(10, STRONG);
    place.result_of(&strong);
    stop(role);

    // Another process moves the label `best`.
    let favourite = place.publish(20, 1.5 * STRONG);
    place.move_best(&favourite);
    let role = place.start();
    let placed = place.expect(&favourite, "placed", &strong);
    assert!(placed["elo"].as_f64().is_some() && placed["best_elo"] == placed["elo"]);
    assert_eq!(place.label(BEST), Some(favourite.clone()));
    let elo = "elo{checkpoint=\"best\"}";
    wait_until("its rating", || place.sample(elo) == placed["elo"].as_f64());
    // Later ratings are on the same scale.
    let weak = place.publish(30, WEAK);
    let kept = place.expect(&weak, "kept", &favourite);
    assert!(kept["elo"].as_f64() < kept["best_elo"].as_f64(), "{kept}");
    wait_until("the oldest match to go", || place.matches().len() == 2);
    stop(role);

    // If no rated checkpoint is left, the ratings begin anew with the best one.
    let stranger = place.publish(40, STRONG);
    place.move_best(&stranger);
    for version in [&first, &strong, &favourite, &weak] {
        let folder = place.folder.path().join("checkpoints/versions");
        fs::remove_dir_all(folder.join(version.as_str())).unwrap();
    }
    let role = place.start();
    wait_until("its rating", || place.sample(elo) == Some(0.0));
    let last = place.publish(50, WEAK);
    let kept = place.expect(&last, "kept", &stranger);
    assert_eq!(kept["best_elo"], 0.0);
    assert!(kept["elo"].as_f64() < Some(0.0), "{kept}");
    stop(role);
}

#[test]
fn the_role_waits_while_the_disk_is_full() {
    let Some(disk) = SmallDisk::mount(8) else {
        return;
    };
    let place = Place::new(|config| config.rating.folder = disk.path().join("rating"));
    let first = place.publish(0, WEAK);
    let log = place.folder.path().join("log");
    let mut role = place.start_logged(&log);
    place.wait_for_best(&first);
    disk.fill();
    let strong = place.publish(10, STRONG);
    let attempts = || fs::read_to_string(&log).unwrap().matches("cannot rate").count();
    wait_until("several attempts", || attempts() >= 3);
    assert!(role.0.try_wait().unwrap().is_none(), "the role is still running");
    // A role that is started on a full disk waits too.
    drop(role);
    role = place.start_logged(&log);
    wait_until("several attempts", || attempts() >= 2);
    disk.make_room();
    assert_eq!(place.result_of(&strong)["outcome"], "promoted");
    assert_eq!(place.label(BEST), Some(strong));
    stop(role);
}

#[test]
fn networks_of_an_inference_server_are_rated_and_the_server_may_be_away() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let place = Place::new(|config| {
        config.rating.remote = true;
        config.inference.address = port.to_string();
    });
    let mut config = place.config.clone();
    config.checkpoints.store = place.folder.path().join("checkpoints").to_str().unwrap().into();
    config.inference.provider = Provider::Cpu;
    let serve = |shutdown: &CancellationToken| {
        let listener = place
            .runtime
            .block_on(tokio::net::TcpListener::bind(port))
            .unwrap();
        let serving = inference_server::serve(listener, config.clone(), shutdown.clone());
        place.runtime.spawn(serving)
    };
    let first = place.publish(0, WEAK);
    let shutdown = CancellationToken::new();
    let serving = serve(&shutdown);
    // The role's own process cannot load a network.
    let role = Killed(place.command().env("ORT_DYLIB_PATH", "nowhere").spawn().unwrap());
    place.wait_for_best(&first);
    let strong = place.publish(10, STRONG);
    place.expect(&strong, "promoted", &first);

    shutdown.cancel();
    place.runtime.block_on(serving).unwrap().unwrap();
    let weak = place.publish(20, WEAK);
    wait_until("the next candidate", || {
        place.label(CANDIDATE) == Some(weak.clone())
    });
    let shutdown = CancellationToken::new();
    let serving = serve(&shutdown);
    place.expect(&weak, "kept", &strong);
    stop(role);
    shutdown.cancel();
    place.runtime.block_on(serving).unwrap().unwrap();
}

/// Both checkpoints get the same held-out problems, one of each kind and level here.
#[test]
fn checkpoints_of_a_game_for_one_player_are_rated_on_held_out_problems() {
    let place = Place::new(|config| {
        config.game.name = GeneratorGame::NAME.into();
        config.game.rules.insert("pairs".into(), 50.into());
        config.game.rules.insert("move_limit".into(), 6.into());
        config.rating.max_games = 12;
    });
    let publish = |step: u64| {
        let metadata = Metadata {
            layout: GeneratorGame::layout(Encoding::Plain),
            step,
        };
        let model = onnx::random::model(&metadata, 1, 8, step).unwrap();
        place.publish_model(&metadata, model)
    };
    let first = publish(0);
    let role = place.start();
    place.wait_for_best(&first);
    let newer = publish(10);
    let line = place.result_of(&newer);
    let problems = line["problems"].as_array().unwrap().iter();
    let class = |class: &Value| json!([class["kind"], class["level"], class["problems"]]);
    let classes: Vec<Value> = problems.map(class).collect();
    let expected = ["draw", "pair"].map(|kind| [2, 4, 8].map(|level| json!([kind, level, 1])));
    assert_eq!(classes, expected.concat(), "{line}");
    stop(role);
}
