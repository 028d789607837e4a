//! A single search: it can be stopped and continued, and gives the same result in this process and through a server.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use arena::{Player, Spec, Thinker, players::Networks};
use config::{Provider, RunConfig};
use games::{Game as _, connect_four::ConnectFour, othello::Othello, registry};
use search::{Decision, GameKey, Settings};
use tokio_util::sync::CancellationToken;

use super::common;

const KEY: GameKey = GameKey { run_seed: 3, game: 4 };
static GO_ON: AtomicBool = AtomicBool::new(false);

fn open(game: &str, text: &str, networks: &mut Networks) -> Result<Player, String> {
    let game = registry::find(game).unwrap();
    Player::open(game, &text.parse::<Spec>().unwrap(), networks).map_err(|error| error.to_string())
}

fn thinker(game: &str, text: &str, networks: &mut Networks) -> Thinker {
    let player = open(game, text, networks).unwrap();
    let (settings, searches) = player.searches(0).unwrap();
    let start = common::variant(game).start(None).unwrap();
    Thinker::new(&*start, settings.clone(), KEY, searches).unwrap()
}

fn decide(game: &str, text: &str, visits: u32, networks: &mut Networks) -> Decision {
    let mut thinker = thinker(game, text, networks);
    thinker.think(visits, &GO_ON, |_| {}).unwrap();
    thinker.search().decision()
}

#[test]
fn a_search_can_be_continued_stopped_and_inspected() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    common::run::<Othello>(&run, 2);
    let place = run.to_str().unwrap();
    let mut networks = common::networks();
    let whole = decide(Othello::NAME, place, 300, &mut networks);
    assert_eq!(whole.visits.iter().sum::<u32>(), 300);

    let mut thinker = thinker(Othello::NAME, place, &mut networks);
    let mut batches = 0;
    thinker.think(120, &GO_ON, |_| batches += 1).unwrap();
    assert!(batches > 1);
    assert_eq!(thinker.search().visits_done(), 120);
    thinker.think(300, &GO_ON, |_| {}).unwrap();
    assert_eq!(
        thinker.search().decision(),
        whole,
        "prolonged, it is the longer search"
    );
    assert_eq!(
        thinker.searches().counts().fresh,
        0,
        "the cache of the first search knew everything"
    );

    // Stopped from another thread.
    let stop = AtomicBool::new(false);
    let mut thinker = std::thread::scope(|scope| {
        let thinking = scope.spawn(|| {
            thinker.think(Settings::MAX_VISITS, &stop, |_| {}).unwrap();
            thinker
        });
        stop.store(true, Ordering::Relaxed);
        thinking.join().unwrap()
    });
    assert!(thinker.search().visits_done() < Settings::MAX_VISITS);
    let line = thinker.search().principal_variation(None);
    assert_eq!(line.first().copied(), thinker.search().choose(0.0));
    let mut state = thinker.state().copy();
    for action in line {
        state.play(action).unwrap();
    }

    // A search that is stopped from the beginning still finds a move, and keeps the tree below it.
    let best = thinker.search().choose(0.0).unwrap();
    thinker.advance(best).unwrap();
    thinker.think(Settings::MAX_VISITS, &stop, |_| {}).unwrap();
    assert!(thinker.search().choose(0.0).is_some());
}

/// Every traversal of the won position is terminal, so the search never waits for a network.
#[test]
fn a_stop_is_noticed_without_a_network_and_a_finished_game_needs_no_search() {
    let mut networks = common::networks();
    let mut thinker = thinker(ConnectFour::NAME, "uct", &mut networks);
    for column in [0, 1, 0, 1, 0, 1] {
        thinker.advance(column).unwrap();
    }
    let stop = AtomicBool::new(false);
    let stop_after_some = |thinker: &Thinker| {
        if thinker.search().visits_done() >= 300 {
            stop.store(true, Ordering::Relaxed);
        }
    };
    thinker
        .think(Settings::MAX_VISITS, &stop, stop_after_some)
        .unwrap();
    assert!(thinker.search().visits_done() < Settings::MAX_VISITS);
    assert_eq!(thinker.search().choose(0.0), Some(0));
    thinker.advance(0).unwrap();
    thinker.think(Settings::MAX_VISITS, &GO_ON, |_| {}).unwrap();
    assert_eq!(thinker.search().choose(0.0), None);
}

#[test]
fn a_search_through_a_server_gives_the_same_result() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let version = common::run::<ConnectFour>(&run, 5);
    let store = run.join("checkpoints").to_str().unwrap().to_owned();

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let listener = runtime
        .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
        .unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let shutdown = CancellationToken::new();
    let mut config = RunConfig::default();
    config.game.name = ConnectFour::NAME.into();
    config.game.options = 0;
    config.checkpoints.store = store;
    config.inference.provider = Provider::Cpu;
    config.inference.max_batch = 16;
    config.inference.max_queue = 256;
    let serving = runtime.spawn(inference_server::serve(listener, config, shutdown.clone()));

    // Before the model is published, the server reports that it has none.
    let began = Instant::now();
    let mut networks = common::networks();
    let player = loop {
        match open(ConnectFour::NAME, &address, &mut networks) {
            Ok(player) => break player,
            Err(error) => assert!(began.elapsed() < Duration::from_secs(60), "{error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let description = player.network().unwrap().description();
    assert_eq!(
        (description.version.as_str(), description.step),
        (version.as_str(), 7)
    );

    let search = "leaves=4,exploration=2.75,solver=true";
    let here = decide(
        ConnectFour::NAME,
        &format!("{},{search}", run.to_str().unwrap()),
        200,
        &mut networks,
    );
    let there = decide(
        ConnectFour::NAME,
        &format!("{address},{search}"),
        200,
        &mut networks,
    );
    // Priors travel in half precision, so visits may differ by a few.
    let apart: u32 = here
        .visits
        .iter()
        .zip(&there.visits)
        .map(|(here, there)| here.abs_diff(*there))
        .sum();
    assert!(apart <= 20, "{:?} {:?}", here.visits, there.visits);
    assert!((here.value.get() - there.value.get()).abs() < 0.02);

    let said = open(Othello::NAME, &address, &mut networks).unwrap_err();
    assert!(said.contains("plays connect-four, not othello"), "{said}");
    let said = open(ConnectFour::NAME, &format!("{address}@best"), &mut networks).unwrap_err();
    assert!(said.contains("best"), "{said}");
    shutdown.cancel();
    runtime.block_on(serving).unwrap().unwrap();

    let mut thinker = thinker(ConnectFour::NAME, &address, &mut networks);
    let said = thinker.think(10_000, &GO_ON, |_| {}).unwrap_err().to_string();
    assert!(said.contains(&address), "{said}");
}
