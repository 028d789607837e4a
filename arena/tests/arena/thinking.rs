//! A single search: it can be stopped and continued, and gives the same result in this process and through a server.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use arena::{Limits, Player, Spec, Thinker, players::Networks, players::thinker::Ended};
use config::{Provider, RunConfig};
use games::{Game, connect_four::ConnectFour, othello::Othello};
use search::{Decision, GameKey};
use tokio_util::sync::CancellationToken;

use super::common;

const KEY: GameKey = GameKey { run_seed: 3, game: 4 };
static GO_ON: AtomicBool = AtomicBool::new(false);

fn thinker<G: Game>(text: &str, networks: &mut Networks) -> Thinker<G> {
    let spec: Spec = text.parse().unwrap();
    let player = Player::<G>::open(&spec, networks).unwrap();
    let start = G::start(&G::Rules::default(), None).unwrap();
    let settings = player.settings().unwrap().clone();
    Thinker::new(start, settings, KEY, player.evaluator(0).unwrap())
}

fn decide<G: Game>(text: &str, visits: u32, networks: &mut Networks) -> Decision {
    let mut thinker = thinker::<G>(text, networks);
    assert_eq!(
        thinker.think(&Limits::visits(visits), &GO_ON, |_| {}).unwrap(),
        Ended::Visits
    );
    thinker.decision()
}

#[test]
fn a_search_can_be_continued_stopped_and_inspected() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    common::run::<Othello>(&run, 2);
    let place = run.to_str().unwrap();
    let mut networks = common::networks();
    let whole = decide::<Othello>(place, 300, &mut networks);
    assert_eq!(whole.visits.iter().sum::<u32>(), 300);

    let mut thinker = thinker::<Othello>(place, &mut networks);
    let mut batches = 0;
    thinker
        .think(&Limits::visits(120), &GO_ON, |_| batches += 1)
        .unwrap();
    assert!(batches > 1);
    assert_eq!(thinker.visits(), 120);
    thinker.think(&Limits::visits(300), &GO_ON, |_| {}).unwrap();
    assert_eq!(thinker.decision(), whole, "prolonged, it is the longer search");
    assert_eq!(
        thinker.counts().fresh,
        0,
        "the cache of the first search knew everything"
    );

    // Stopped from another thread.
    let stop = AtomicBool::new(false);
    let ended = std::thread::scope(|scope| {
        let thinking = scope.spawn(|| {
            let ended = thinker.think(&Limits::default(), &stop, |_| {}).unwrap();
            (ended, thinker)
        });
        stop.store(true, Ordering::Relaxed);
        thinking.join().unwrap()
    });
    let (ended, mut thinker) = ended;
    assert_eq!(ended, Ended::Stopped);
    let line = thinker.line(None);
    assert_eq!(line.first().copied(), thinker.best());
    let mut state = *thinker.state();
    for action in line {
        state.play(action).unwrap();
    }

    // A search without any time still finds a move, and keeps the tree below it.
    thinker.advance(thinker.best().unwrap()).unwrap();
    let now = Limits {
        until: Some(Instant::now() - Duration::from_secs(1)),
        visits: None,
    };
    assert_eq!(thinker.think(&now, &GO_ON, |_| {}).unwrap(), Ended::Time);
    assert!(thinker.best().is_some());
}

#[test]
fn a_finished_game_needs_no_search() {
    let mut networks = common::networks();
    let mut thinker = thinker::<ConnectFour>("uct", &mut networks);
    for column in [0, 1, 0, 1, 0, 1, 0] {
        thinker.advance(column).unwrap();
    }
    assert_eq!(
        thinker.think(&Limits::default(), &GO_ON, |_| {}).unwrap(),
        Ended::Visits
    );
    assert_eq!(thinker.best(), None);
}

/// Every traversal of this won position is terminal, so the search never waits for a network.
#[test]
fn the_clock_is_checked_when_no_traversal_needs_a_network() {
    let mut networks = common::networks();
    let mut thinker = thinker::<ConnectFour>("uct", &mut networks);
    for column in [0, 1, 0, 1, 0, 1] {
        thinker.advance(column).unwrap();
    }
    let ended = thinker
        .think(&Limits::time(Duration::from_millis(1)), &GO_ON, |_| {})
        .unwrap();
    assert_eq!(ended, Ended::Time);
    assert_eq!(thinker.best(), Some(0));
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

    let spec: Spec = address.parse().unwrap();
    // Before the model is published, the server reports that it has none.
    let began = Instant::now();
    let mut networks = common::networks();
    let player = loop {
        match Player::<ConnectFour>::open(&spec, &mut networks) {
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

    let search = "leaves=4,exploration=2.75";
    let here = decide::<ConnectFour>(&format!("{},{search}", run.to_str().unwrap()), 200, &mut networks);
    let there = decide::<ConnectFour>(&format!("{address},{search}"), 200, &mut networks);
    // Priors travel in half precision, so visits may differ by a few.
    let apart: u32 = here
        .visits
        .iter()
        .zip(&there.visits)
        .map(|(here, there)| here.abs_diff(*there))
        .sum();
    assert!(apart <= 20, "{:?} {:?}", here.visits, there.visits);
    assert!((here.value.get() - there.value.get()).abs() < 0.02);

    let wrong: Spec = address.parse().unwrap();
    let said = Player::<Othello>::open(&wrong, &mut networks)
        .unwrap_err()
        .to_string();
    assert!(said.contains("plays connect-four, not othello"), "{said}");
    let missing: Spec = format!("{address}@best").parse().unwrap();
    let said = Player::<ConnectFour>::open(&missing, &mut networks)
        .unwrap_err()
        .to_string();
    assert!(said.contains("best"), "{said}");
    shutdown.cancel();
    runtime.block_on(serving).unwrap().unwrap();

    let mut thinker = thinker::<ConnectFour>(&address, &mut networks);
    let said = thinker
        .think(&Limits::visits(10_000), &GO_ON, |_| {})
        .unwrap_err()
        .to_string();
    assert!(said.contains(&address), "{said}");
}
