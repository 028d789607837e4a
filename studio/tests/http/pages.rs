//! The pages of a run, without a browser.

use std::fs;

use launcher::watch::{Problems, Summary};
use serde_json::{Value, json};

use crate::{site::Site, stored};

/// Site of a stopped run with games.
async fn with_games() -> Site {
    let folder = tempfile::tempdir().unwrap();
    stored::run(folder.path()).await;
    Site::of(folder).await
}

/// Writes `up/now.json` as `minuet up` does.
fn record(site: &Site, change: impl FnOnce(&mut Summary)) {
    let mut summary = Summary::default();
    change(&mut summary);
    let mut line = serde_json::to_value(summary).unwrap();
    line["event"] = "summary".into();
    line["at_ms"] = 1_795_255_200_000_u64.into();
    let folder = site.folder().join("up");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("now.json"), line.to_string()).unwrap();
}

#[tokio::test]
async fn a_run_that_never_started_says_so_and_has_its_diagram() {
    let site = Site::new().await;
    let page = site.get("/").await;
    assert_eq!(page.status, 200);
    for text in [
        "Not started yet",
        "Actors",
        "Inference",
        "No checkpoint is rated yet",
        "The first finished game",
    ] {
        assert!(page.body.contains(text), "{text} in {}", page.body);
    }
    let games = site.get("/games").await;
    assert!(games.body.contains("No game is finished yet."), "{}", games.body);
}

#[tokio::test]
async fn the_overview_shows_what_was_recorded_with_its_time() {
    let site = Site::new().await;
    record(&site, |summary| {
        summary.learner.step = Some(735);
        summary.actor.visits_per_second = Some(21_340.0);
        summary.limit = "inference limits: busy 93 %".into();
    });
    let learner = site.folder().join("learner");
    fs::create_dir_all(&learner).unwrap();
    let line =
        json!({"step": 735, "steps": 10, "policy_loss": 2.0, "value_loss": 0.75, "target_entropy": 1.5});
    fs::write(learner.join("metrics.jsonl"), format!("{line}\n")).unwrap();
    let up = site.folder().join("up/metrics.jsonl");
    let event =
        json!({"event": "checkpoint", "at_ms": 1_795_255_200_000_u64, "text": ["checkpoint <x>: 735 steps"]});
    fs::write(up, format!("{event}\n{{\"event\":\"summary\",\"at_ms\":1}}\n")).unwrap();
    let page = site.get("/").await.body;
    for text in [
        "Stopped",
        "step 735",
        "21,340",
        "data-at=\"1795255200000\"",
        "checkpoint &lt;x&gt;: 735 steps",
        "training: 0.500 at step 735",
        "training: 0.750 at step 735",
    ] {
        assert!(page.contains(text), "{text} in {page}");
    }
}

#[tokio::test]
async fn problems_are_shown_by_kind_in_games_that_have_them() {
    let site = Site::of_new("generator", &[]).await;
    record(&site, |summary| {
        summary.problems = vec![Problems {
            kind: "pair".into(),
            level: 3.0,
            recent: 40,
            solve_rate: Some(0.72),
            moves: Some(6.04),
        }];
    });
    let cells =
        "<th scope=\"row\">pair</th><td>3</td><td>72 %<span class=\"quiet\"> of 40</span></td><td>6.0</td>";
    for path in ["/", "/report"] {
        let page = site.get(path).await.body;
        assert!(page.contains(cells), "{path}: {page}");
    }
    let other = Site::new().await.get("/").await.body;
    assert!(!other.contains(">Problems<"), "{other}");
}

#[tokio::test]
async fn a_stream_sends_all_parts_once_and_then_only_what_changed() {
    let site = Site::new().await;
    record(&site, |summary| summary.learner.step = Some(1));
    let mut events = site.events("/live").await;
    let first = events.next().await;
    assert!(first["status"].as_str().unwrap().contains("step 1"), "{first}");
    assert!(first.as_object().unwrap().len() >= 8, "{first}");
    record(&site, |summary| summary.learner.step = Some(2));
    let second = events.next().await;
    assert!(second["status"].as_str().unwrap().contains("step 2"), "{second}");
    let names: Vec<&String> = second.as_object().unwrap().keys().collect();
    assert_eq!(names, ["flow", "status"]);
}

#[tokio::test]
async fn games_of_a_stopped_run_are_listed_in_each_order_and_filtered() {
    let site = with_games().await;
    let ids = async |query: &str| -> Vec<String> {
        let page = site.get(&format!("/games{query}")).await;
        assert_eq!(page.status, 200, "{}", page.body);
        let links = page.body.split("href=\"/games/").skip(1);
        links.map(|rest| rest[..2].to_owned()).collect()
    };
    assert_eq!(ids("").await, ["03", "02", "01"]);
    assert_eq!(ids("?sort=oldest").await, ["01", "02", "03"]);
    assert_eq!(ids("?sort=longest").await[0], "02");
    assert_eq!(ids(&format!("?model={}", stored::MODEL)).await.len(), 3);
    assert!(ids("?model=none").await.is_empty());
    assert!(ids("?ending=nothing").await.is_empty());
    let page = site.get("/games").await.body;
    assert!(page.contains("X won") && page.contains("O won"), "{page}");
    assert_eq!(site.get("/games?cursor=zz").await.status, 400);
    assert_eq!(site.get("/games?sort=best").await.status, 400);
}

#[tokio::test]
async fn a_game_is_replayed_move_by_move_with_what_the_search_thought() {
    let site = with_games().await;
    let id = "02".repeat(16);
    let page = site.get(&format!("/games/{id}?ply=1")).await.body;
    for text in [
        "O has won",
        "after 1 of 8",
        "plays <b>2</b>",
        "the most visited move",
        "15 visits",
        "75 % for X",
    ] {
        assert!(page.contains(text), "{text} in {page}");
    }
    let at: Value = serde_json::from_str(&site.get(&format!("/games/{id}/at/8")).await.body).unwrap();
    assert!(
        at["thought"]
            .as_str()
            .unwrap()
            .contains("This is the end of the game"),
        "{at}"
    );
    assert!(at["steps"].as_str().unwrap().contains("after 8 of 8"), "{at}");
    // A number beyond the end shows the end.
    let beyond: Value = serde_json::from_str(&site.get(&format!("/games/{id}/at/800")).await.body).unwrap();
    assert_eq!(beyond, at);
    assert_eq!(site.get(&format!("/games/{}", "ff".repeat(16))).await.status, 404);
    assert_eq!(site.get("/games/xyz").await.status, 400);
    assert_eq!(
        site.get(&format!("/games/{}/at/0", "ff".repeat(16))).await.status,
        404
    );
}

/// Sizes are of what is sent, and nothing is compressed. The shapes of the pieces do not count.
#[tokio::test]
async fn a_page_with_all_its_files_is_smaller_than_150_kilobytes() {
    let site = with_games().await;
    let game = format!("/games/{}", "02".repeat(16));
    for path in [
        "/", "/play", "/games", &game, "/learn", "/matches", "/compare", "/config",
    ] {
        let page = site.get(path).await.body;
        let pieces = page.split("<svg class=\"definitions\"").nth(1);
        let pieces = pieces.map_or(0, |rest| rest.find("</svg>").unwrap());
        let named = page.split('"').filter(|text| text.starts_with("/assets/"));
        let mut files: Vec<String> = named.map(String::from).collect();
        let mut size = page.len() - pieces;
        let mut number = 0;
        while let Some(file) = files.get(number).cloned() {
            let content = site.get(&file).await.body;
            let folder = file.rsplit_once('/').unwrap().0;
            let imported = content.split("from \"./").skip(1);
            let imported = imported.map(|rest| format!("{folder}/{}", rest.split('"').next().unwrap()));
            for file in imported.filter(|file| !files.contains(file)).collect::<Vec<_>>() {
                files.push(file);
            }
            size += content.len();
            number += 1;
        }
        assert!(files.len() >= 5, "{files:?}");
        assert!(size < 150_000, "{path}: {size} bytes with {files:?}");
    }
}
