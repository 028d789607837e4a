//! Bad input: each fault is explained in a sentence, and the studio continues.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    net::TcpListener,
    path::Path,
    thread,
};

use checkpoints::Repository;
use serde_json::{Value, json};
use studio::run::Run;

use crate::{site::Site, stored, trained};

const PAGES: [&str; 8] = [
    "/", "/play", "/games", "/learn", "/matches", "/compare", "/config", "/report",
];
/// Moment of the first figures, in milliseconds since the Unix epoch.
const BEGIN: u64 = 1_795_255_200_000;

/// Checks that every page is shown, and returns the overview.
async fn overview(site: &Site) -> String {
    for page in PAGES {
        let reply = site.get(page).await;
        assert_eq!(reply.status, 200, "{page}: {}", reply.body);
    }
    site.get("/").await.body
}

fn write(path: &Path, content: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// A line of the learner.
fn step(step: u64, time_ms: u64, loss: f64) -> String {
    let line = json!({
        "time_ms": time_ms, "step": step, "steps": 10, "policy_loss": 2.0, "value_loss": loss, "target_entropy": 1.5,
    });
    format!("{line}\n")
}

#[test]
fn a_folder_that_is_no_run_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let said = |folder: &Path| format!("{:#}", Run::open(folder).unwrap_err());
    let missing = said(&folder.path().join("nothing"));
    assert!(missing.contains("there is no folder"), "{missing}");
    let empty = said(folder.path());
    assert!(
        empty.contains("run.toml is not the configuration of a run"),
        "{empty}"
    );
    fs::write(folder.path().join("run.toml"), "[search]\nvisits = ").unwrap();
    let half = said(folder.path());
    assert!(half.contains("run.toml") && half.contains("line 2"), "{half}");
}

#[tokio::test]
async fn files_that_are_written_in_part_are_shown_as_far_as_they_are_whole() {
    let site = Site::new().await;
    let at = |name: &str| site.folder().join(name);
    let event = json!({ "event": "checkpoint", "at_ms": BEGIN, "text": ["a whole event"] });
    let half = &b"{\"event\":\"summary\",\"at_ms\":17952"[..];
    write(&at("up/now.json"), half);
    write(
        &at("up/metrics.jsonl"),
        &[event.to_string().as_bytes(), b"\n", half].concat(),
    );
    write(
        &at("rating/metrics.jsonl"),
        b"\0\0\0\0\n{\"schema\":1,\"time_ms\":1795",
    );
    let (first, second) = (step(10, BEGIN, 0.75), step(20, BEGIN, 0.5));
    let (begun, rest) = second.split_at(second.len() / 2);
    write(
        &at("learner/metrics.jsonl"),
        &[first.as_bytes(), b"\xff\xfe no line\n", begun.as_bytes()].concat(),
    );
    let page = overview(&site).await;
    for part in ["a whole event", "training: 0.750 at step 10"] {
        assert!(page.contains(part), "{part} in {page}");
    }
    let mut file = OpenOptions::new()
        .append(true)
        .open(at("learner/metrics.jsonl"))
        .unwrap();
    file.write_all(rest.as_bytes()).unwrap();
    let page = site.get("/compare").await.body;
    assert!(page.contains("0.750 at step 10, 0.500 at 20"), "{page}");
}

#[tokio::test]
async fn a_checkpoint_that_is_pruned_while_it_is_shown_is_missed_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let versions = trained::run(folder.path(), &[0, 100], &[]).await;
    let config = config::load(&folder.path().join("run.toml")).unwrap();
    let site = Site::of(folder).await;
    let opponent = versions[0].as_str();
    let game = json!({ "game": "connect-four", "opponent": opponent, "side": "first" });
    let table = site.table(&game).await;
    let mut events = site.events(&format!("/learn/live?at={}", versions[0])).await;
    events.says("checkpoint", "<b>step 0</b>").await;

    let repository = Repository::open(&config.checkpoints.store).unwrap();
    repository.prune(1).await.unwrap();
    events
        .says("checkpoint", "not kept any more. Choose another one.")
        .await;
    let page = site.get("/learn").await.body;
    assert!(page.contains("<b>step 100 (latest)</b>"), "{page}");

    // A game against it cannot continue, and says so.
    let address = format!("/play/tables/{table}");
    let mut events = site.events(&format!("{address}/events")).await;
    let play = json!({ "do": "play", "actions": [3], "at": 0 });
    assert_eq!(site.post(&address, &play).await.status, 200);
    let is_told = |event: &Value| {
        let status = event["slots"]["status"].as_str().unwrap_or_default();
        status.contains("class=\"trouble\"") && status.contains(versions[0].as_str())
    };
    events.find(is_told).await;
    overview(&site).await;
}

#[tokio::test]
async fn stores_that_are_away_are_missed_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    stored::run(folder.path()).await;
    let config = config::load(&folder.path().join("run.toml")).unwrap();
    // Something accepts connections at the replay store's address, and closes them.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || listener.incoming().for_each(drop));
    let named = config.replay.folder.join("address");
    fs::write(&named, address).unwrap();
    let checkpoints = Path::new(&config.checkpoints.store);
    fs::remove_dir_all(checkpoints).ok();
    fs::write(checkpoints, "").unwrap();

    let site = Site::of(folder).await;
    let games = site.get("/games").await;
    assert_eq!(games.status, 502, "{}", games.body);
    assert!(
        games.body.contains("The replay store does not answer"),
        "{}",
        games.body
    );
    let learn = site.get("/learn").await;
    assert_eq!(learn.status, 200, "{}", learn.body);
    assert!(
        learn.body.contains("The checkpoints cannot be listed"),
        "{}",
        learn.body
    );
    for page in ["/", "/play", "/matches", "/compare", "/config"] {
        let reply = site.get(page).await;
        assert_eq!(reply.status, 200, "{page}: {}", reply.body);
    }

    // The store and the checkpoints come back.
    fs::remove_file(named).unwrap();
    fs::remove_file(checkpoints).unwrap();
    let games = site.get("/games").await;
    assert!(games.body.contains("O won"), "{}", games.body);
}

#[tokio::test]
async fn the_folder_of_the_stored_games_is_closed_when_the_run_starts() {
    let folder = tempfile::tempdir().unwrap();
    stored::run(folder.path()).await;
    let site = Site::of(folder).await;
    assert_eq!(site.get("/games").await.status, 200);
    let is_used = || {
        let lock = fs::File::open(site.folder().join("replay/lock")).unwrap();
        lock.try_lock().is_err()
    };
    assert!(is_used());
    let run = launcher::run::folder::RunFolder::open(site.folder(), None, &[]).unwrap();
    // No page opens it again before the store answers.
    let games = site.get("/games").await;
    assert_eq!(games.status, 502, "{}", games.body);
    assert!(games.body.contains("the run starts or stops"), "{}", games.body);
    assert_eq!(site.get("/").await.status, 200);
    let closed = async {
        while is_used() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), closed)
        .await
        .unwrap();
    drop(run);
    assert_eq!(site.get("/games").await.status, 200);
}

#[tokio::test]
async fn two_studios_show_one_run() {
    let folder = tempfile::tempdir().unwrap();
    stored::run(folder.path()).await;
    let one = Site::of(folder).await;
    let two = Site::within(tempfile::tempdir().unwrap(), one.folder()).await;
    for _ in 0..2 {
        for site in [&one, &two] {
            overview(site).await;
            let game = site.get(&format!("/games/{}", "02".repeat(16))).await;
            assert!(game.body.contains("O has won"), "{}", game.body);
        }
    }
}

/// The clock is put back by an hour between the second and the third line of each file.
#[tokio::test]
async fn a_clock_that_goes_back_stops_no_page() {
    let site = Site::new().await;
    let at = |name: &str| site.folder().join(name);
    let moments = [BEGIN, BEGIN + 10_000, BEGIN - 3_590_000, BEGIN - 3_580_000];
    let summary = |at_ms: u64| {
        json!({
            "event": "summary", "at_ms": at_ms, "after_seconds": 1.0,
            "inference": { "positions_per_second": 10.0 }, "replay": { "games_inserted": 5 },
        })
    };
    let lines: String = moments
        .iter()
        .map(|&at_ms| format!("{}\n", summary(at_ms)))
        .collect();
    write(&at("up/metrics.jsonl"), lines.as_bytes());
    let steps: String = (1..)
        .zip(moments)
        .map(|(number, at_ms)| step(10 * number, at_ms, 0.5))
        .collect();
    write(&at("learner/metrics.jsonl"), steps.as_bytes());
    // The studio's own clock is behind: the figures come from the future.
    let now = launcher::moment::now();
    write(
        &at("up/now.json"),
        summary(now + 86_400_000).to_string().as_bytes(),
    );
    let page = overview(&site).await;
    assert!(
        page.contains("at step 10") && page.contains("0.500 at 40") && page.contains("dated later than now"),
        "{page}"
    );
    for by in ["time", "games", "evaluations"] {
        let page = site.get(&format!("/compare?by={by}")).await;
        assert_eq!(page.status, 200, "{by}: {}", page.body);
    }
}

#[tokio::test]
async fn parameters_that_cannot_be_read_are_refused_on_a_page() {
    let site = Site::new().await;
    let game = format!("/games/{}?ply=x", "02".repeat(16));
    for page in ["/play?visits=many", "/games?sort=luck", "/compare?by=luck", &game] {
        let reply = site.get(page).await;
        assert_eq!(reply.status, 400, "{page}: {}", reply.body);
        assert!(
            reply.body.contains("The address: ") && reply.body.contains("Overview"),
            "{page}: {}",
            reply.body
        );
    }
}
