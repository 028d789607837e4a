//! Faults of what a run learns: each raises its alarm in `minuet doctor --run`, and a healthy run raises none.

use std::{fs, net::SocketAddr, path::Path, time::SystemTime};

use games::{Game as _, connect_four::ConnectFour};
use launcher::run::folder::RunFolder;
use onnx::{TowerShape, TowerWeights};
use proto::v1::Game;
use replay_store::{
    settings::Settings,
    store::{Store, append::Verdict},
};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::support::{
    program::{done, minuet},
    run_at_work::RunAtWork,
    served::Served,
    stored,
};

/// Alarms about what a run learns.
const LEARNING: [&str; 7] = [
    "MinuetGapGrows",
    "MinuetPolicyCollapsed",
    "MinuetGamesDrawn",
    "MinuetGamesCut",
    "MinuetOpeningsEqual",
    "MinuetOtherProvider",
    "MinuetBestUnchanged",
];

/// Those of the alarms that `minuet doctor` lists for a run: name and text. Each has a remedy and a setting.
fn alarms(folder: &Path) -> Vec<(String, String)> {
    let doctor = done(minuet("doctor --json --run").arg(folder));
    let report: Value = serde_json::from_str(&doctor.out).unwrap();
    let of = |alarm: &Value, key: &str| alarm[key].as_str().unwrap_or_default().to_owned();
    let raised = report["alarms"].as_array().unwrap().iter();
    raised
        .filter(|alarm| LEARNING.contains(&of(alarm, "name").as_str()))
        .map(|alarm| {
            assert!(!of(alarm, "fix").is_empty(), "{alarm}");
            assert!(of(alarm, "setting").contains('='), "{alarm}");
            (of(alarm, "name"), of(alarm, "text"))
        })
        .collect()
}

fn nobody() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

fn none() -> Vec<(String, String)> {
    Vec::new()
}

fn only(name: &str, text: &str) -> Vec<(String, String)> {
    vec![(name.into(), text.into())]
}

/// Writes lines of the learner with these value losses on trained and on held-out games, and with this change of the policy losses from
/// each validation to the next.
fn validate(folder: &Path, policy_change: f64, losses: impl Iterator<Item = (f64, f64)>) {
    let lines = losses.enumerate().map(|(number, (trained, held_out))| {
        let policy = 0.7 + policy_change * number as f64;
        let step = 50 * number;
        format!(
            "{{\"step\":{step},\"steps\":50,\"policy_loss\":1.9,\"value_loss\":0.4,\"target_entropy\":1.2}}\n\
             {{\"step\":{step},\"steps\":0,\"validation\":{{\"held_out\":{{\"policy\":{},\"value\":{held_out}}},\
             \"trained\":{{\"policy\":{policy},\"value\":{trained}}}}}}}\n",
            policy + 0.01
        )
    });
    fs::create_dir_all(folder.join("learner")).unwrap();
    fs::write(folder.join("learner/metrics.jsonl"), lines.collect::<String>()).unwrap();
}

#[test]
fn a_growing_gap_is_an_alarm_if_the_network_gets_worse_on_held_out_games() {
    let folder = tempfile::tempdir().unwrap();
    let _run = RunAtWork::new(folder.path(), nobody());
    let rising = |number: u32| (0.4, 0.4 + 0.01 * f64::from(number));
    validate(folder.path(), 0.0, (0..30).map(|_| (0.4, 0.5)));
    assert_eq!(alarms(folder.path()), none());
    validate(folder.path(), 0.0, (0..19).map(|number| rising(2 * number)));
    assert_eq!(alarms(folder.path()), none(), "too few validations");
    validate(
        folder.path(),
        0.0,
        (0..30).map(|number| (0.7 - 0.02 * f64::from(number), 0.8 - 0.01 * f64::from(number))),
    );
    assert_eq!(
        alarms(folder.path()),
        none(),
        "it still learns what holds for other games"
    );
    validate(folder.path(), -0.02, (0..30).map(rising));
    assert_eq!(
        alarms(folder.path()),
        none(),
        "the policy gains more than the value loses"
    );
    validate(folder.path(), 0.0, (0..30).map(rising));
    let text = "the loss on held-out games, policy and value together, rose from 1.255 to 1.355, and its distance from that on trained games from 0.155 to 0.255";
    assert_eq!(alarms(folder.path()), only("MinuetGapGrows", text));
}

/// Writes rated matches with these outcomes.
fn rate(folder: &Path, outcomes: &[&str]) {
    let lines = outcomes.iter().enumerate().map(|(number, outcome)| {
        let step = 100 * (number + 1);
        format!(
            "{{\"schema\":1,\"time_ms\":1795255200000,\"candidate\":\"{step:012}-8c1f0e2d\",\"step\":{step},\
             \"opponent\":\"000000000000-8c1f0e2d\",\"outcome\":\"{outcome}\",\"games\":40,\"wins\":16,\"draws\":4,\"losses\":20,\
             \"pairs\":[3,7,6,3,1],\"log_likelihood_ratio\":-2.96,\"elo_difference\":-35.0,\
             \"elo_difference_interval\":[-140.0,65.0],\"elo\":0.0,\"elo_interval\":[0.0,0.0],\"best_elo\":0.0,\
             \"best_elo_interval\":[0.0,0.0]}}\n"
        )
    });
    fs::create_dir_all(folder.join("rating")).unwrap();
    fs::write(folder.join("rating/metrics.jsonl"), lines.collect::<String>()).unwrap();
}

#[test]
fn a_best_checkpoint_that_is_never_beaten_is_an_alarm() {
    let folder = tempfile::tempdir().unwrap();
    let _run = RunAtWork::new(folder.path(), nobody());
    let mut outcomes = vec!["kept"; 21];
    rate(folder.path(), &outcomes[..20]);
    assert_eq!(alarms(folder.path()), none());
    rate(folder.path(), &outcomes);
    let text = "no checkpoint of the last 21 rated matches has beaten the best one";
    assert_eq!(alarms(folder.path()), only("MinuetBestUnchanged", text));
    outcomes.push("promoted");
    rate(folder.path(), &outcomes);
    assert_eq!(alarms(folder.path()), none());
}

#[test]
fn another_provider_than_asked_for_is_an_alarm() {
    let page = "minuet_inference_provider_info{provider=\"cuda\"} 0\nminuet_inference_provider_info{provider=\"cpu\"} 1\n";
    let text = "the inference server runs on cpu, and the run asks for cuda";
    let other = only("MinuetOtherProvider", text);
    for (asked, expected) in [("cuda", other), ("cpu", none()), ("auto", none())] {
        let folder = tempfile::tempdir().unwrap();
        let setting = format!("inference.provider={asked}").parse().unwrap();
        drop(RunFolder::open(folder.path(), Some("connect-four"), &[setting]).unwrap());
        let run = RunAtWork::new(folder.path(), nobody());
        run.set("inference-server", page);
        assert_eq!(alarms(folder.path()), expected);
    }
}

/// Columns of a drawn game.
const DRAWN: [u32; 42] = [
    5, 4, 5, 0, 6, 2, 4, 5, 5, 0, 4, 1, 1, 0, 4, 5, 6, 5, 3, 1, 1, 2, 2, 6, 2, 6, 6, 3, 6, 2, 0, 3, 0, 3, 3,
    4, 3, 1, 4, 2, 1, 0,
];

/// Raises alarms of a run whose store has these games.
async fn alarms_of_games(games: impl Iterator<Item = Game>) -> Vec<(String, String)> {
    let folder = tempfile::tempdir().unwrap();
    drop(RunFolder::open(folder.path(), Some("connect-four"), &[]).unwrap());
    let settings = Settings::from_config(&config::load(&folder.path().join("run.toml")).unwrap());
    let store = Store::open(settings.clone()).unwrap();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    for mut game in games {
        game.finished_at_ms = now.as_millis() as u64;
        assert_eq!(store.put(&game).await.unwrap(), Verdict::Stored);
    }
    let closing = tokio::task::spawn_blocking(move || store.close());
    closing.await.unwrap().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let ending = CancellationToken::new();
    let serving = tokio::spawn(replay_store::serve::serve(listener, settings, ending.clone()));
    let found = tokio::task::spawn_blocking(move || {
        let _run = RunAtWork::new(folder.path(), address);
        (alarms(folder.path()), folder)
    });
    let (found, _folder) = found.await.unwrap();
    ending.cancel();
    serving.await.unwrap().unwrap();
    found
}

/// Games that begin differently: the columns of the first two moves of each player come from the number.
fn varied(number: u8) -> Game {
    let [first, second] = [u32::from(number) % 5, 1 + u32::from(number) / 5 % 6];
    let second = if first == second { 6 } else { second };
    stored::game(number, &[first, second, first, second, first, second, first])
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_drawn_games_raise_two_alarms_and_varied_ones_none() {
    assert_eq!(alarms_of_games((1..=60).map(varied)).await, none());
    let found = alarms_of_games((1..=60).map(|number| stored::game(number, &DRAWN))).await;
    let equal = "60 of the newest 60 games began with the same actions";
    let expected = [
        only("MinuetGamesDrawn", "100 % of the newest 60 games were drawn"),
        only("MinuetOpeningsEqual", equal),
    ];
    assert_eq!(found, expected.concat());
    let few = alarms_of_games((1..=40).map(|number| stored::game(number, &DRAWN))).await;
    assert_eq!(few, none(), "too few games");
}

#[tokio::test(flavor = "multi_thread")]
async fn games_that_reach_the_limit_of_actions_are_an_alarm() {
    let cut = |number: u8| {
        let whole = varied(number);
        stored::game(number, &whole.actions[..whole.actions.len() - 1])
    };
    let games = (1..=60).map(|number| if number <= 58 { cut(number) } else { varied(number) });
    let text = "97 % of the newest 60 games reached the limit of actions";
    assert_eq!(alarms_of_games(games).await, only("MinuetGamesCut", text));
}

/// Alarms of a run whose inference server runs a network of these weights.
async fn alarms_of_network(weights: TowerWeights) -> Vec<(String, String)> {
    let folder = tempfile::tempdir().unwrap();
    drop(RunFolder::open(folder.path(), Some("connect-four"), &[]).unwrap());
    let config = config::load(&folder.path().join("run.toml")).unwrap();
    let served = Served::start(config, &ConnectFour::layout(Default::default()), &weights).await;
    let address = served.address.clone();
    let found = tokio::task::spawn_blocking(move || {
        let _run = RunAtWork::serving(folder.path(), nobody(), &address);
        (alarms(folder.path()), folder)
    });
    let (found, _folder) = found.await.unwrap();
    served.stop().await;
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_is_certain_everywhere_is_an_alarm_and_a_random_one_is_not() {
    let layout = ConnectFour::layout(Default::default());
    let mut weights = TowerWeights::random(&TowerShape::new(&layout, 1, 8), 1);
    assert_eq!(alarms_of_network(weights.clone()).await, none());
    let linear = weights.layer_mut("policy.linear").unwrap();
    linear.bias = (0..linear.shape.outputs)
        .map(|action| 50.0 * action as f32)
        .collect();
    let found = alarms_of_network(weights).await;
    assert_eq!(found.len(), 1, "{found:?}");
    let (name, text) = &found[0];
    assert_eq!(name, "MinuetPolicyCollapsed");
    let begin = "on the probe positions the policy has 0.";
    assert!(text.starts_with(begin), "{text}");
}
