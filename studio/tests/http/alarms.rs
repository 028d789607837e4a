//! Alarms of a run at work on the overview.

use std::{path::Path, time::Duration};

use replay_store::{
    settings::Settings,
    store::{Store, append::Verdict},
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{run_at_work::RunAtWork, site::Site, stored};

/// Serves a store with one game, which ended in 1970.
async fn store_of_old_games(folder: &Path) -> (std::net::SocketAddr, CancellationToken) {
    let settings = Settings::from_config(&config::load(&folder.join("run.toml")).unwrap());
    let store = Store::open(settings.clone()).unwrap();
    let mut game = stored::game(1, &[3, 0, 3, 0, 3, 0, 3]);
    game.finished_at_ms = 1_000;
    assert_eq!(store.put(&game).await.unwrap(), Verdict::Stored);
    let closed = tokio::task::spawn_blocking(move || store.close()).await;
    closed.unwrap().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let listener = listener.into_std().unwrap();
    let ending = CancellationToken::new();
    let ended = ending.clone();
    tokio::spawn(async move {
        loop {
            let listener = TcpListener::from_std(listener.try_clone().unwrap()).unwrap();
            let served = replay_store::serve::serve(listener, settings.clone(), ended.clone()).await;
            // The lock of the closed store may be free only a moment later. Then the store is opened again.
            let Err(error) = served else { return };
            eprintln!("the store is not served: {error:#}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    (address, ending)
}

const FULL_STORE: &str = "minuet_replay_disk_bytes 9663676416\nminuet_replay_disk_limit_bytes 10737418240\n\
    minuet_replay_games_refused_total 3\n";

#[tokio::test]
async fn each_fault_of_a_run_is_shown_with_its_number_the_remedy_and_a_setting() {
    let folder = tempfile::tempdir().unwrap();
    drop(launcher::run::folder::RunFolder::open(folder.path(), Some("connect-four"), &[]).unwrap());
    let (replay, store) = store_of_old_games(folder.path()).await;
    let run = RunAtWork::new(folder.path(), replay);
    let site = Site::of(folder).await;
    let mut events = site.events("/live").await;
    // A look waits two seconds for the store, which may need longer to open on a busy machine.
    let healthy = events.says("alarm-titles", "Alarm: No new game.").await;
    assert!(
        !healthy["alarms"].as_str().unwrap().contains("data-copy"),
        "{healthy}"
    );

    run.kill("actor-1");
    run.set("replay-store", FULL_STORE);
    run.set("learner", "minuet_learner_divergences_total 2\n");
    run.set("inference-server", "minuet_inference_model_step 100\n");
    run.record(7_200.0);
    let faults = events.says("alarm-count", "<b>7</b>, 4 critical").await;
    let shown = faults["alarms"].as_str().unwrap().to_owned();
    for part in [
        "<b>Role down</b><span class=\"hidden-text\"> (critical)</span>: actor-1 does not answer.",
        "<b>Games refused</b><span class=\"hidden-text\"> (critical)</span>: the replay store refused 3 games.",
        "<b>Diverges again</b><span class=\"hidden-text\"> (critical)</span>: training diverged 2 times.",
        "<b>No checkpoint</b>: the newest checkpoint is 120 minutes old.",
        "<b>Replay disk</b>: the replay store uses 9.00 GiB of 10.00 GiB.",
        "<b>Model old</b>: the inference server serves step 100, but step 200 was published 120 minutes ago.",
        "Free the disk, or find the sender in logs/replay-store.log",
        "data-copy=\"--set replay.window_positions=250000\"",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let page = site.get("/").await.body;
    assert!(
        page.contains(&shown),
        "a page that is loaded shows what a stream sends"
    );

    // The run ends: nothing is checked any more.
    drop(run);
    store.cancel();
    let ended = events.says("alarms", "while it is at work").await;
    assert!(
        ended["alarm-titles"].as_str().unwrap().contains("No alarm."),
        "{ended}"
    );
}
