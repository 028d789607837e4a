//! Tables over HTTP: what is refused, what the stream sends, and the limits.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use studio::{
    explore,
    failure::Failure,
    play::{
        open_table,
        table::{Command, Table},
        tables::{Limits, Tables},
    },
};

use crate::site::Site;

#[tokio::test]
async fn a_move_reaches_the_stream_as_the_pieces_that_changed() {
    let site = Site::new().await;
    let table = site.table(&json!({ "game": "chess", "side": "both" })).await;
    let address = format!("/play/tables/{table}");
    let mut events = site.events(&format!("{address}/events")).await;
    let first = events.next().await;
    assert_eq!(first["offers"].as_array().unwrap().len(), 20);
    for slot in ["board", "status", "moves", "position"] {
        assert!(first["slots"][slot].is_string(), "{slot}");
    }
    let say = json!({ "do": "say", "text": "e4" });
    assert_eq!(site.post(&address, &say).await.status, 200);
    let next = events.next().await;
    assert_eq!(next["flags"]["at"], 1);
    let status = next["slots"]["status"].as_str().unwrap();
    assert!(status.contains("White played <b>e4</b>"), "{status}");
    // Nothing is evaluated, so the bar stays as it is.
    assert!(next["slots"].get("bar").is_none(), "{next}");
    assert_eq!(site.post(&address, &json!({ "do": "undo" })).await.status, 200);
    assert_eq!(events.next().await["flags"]["at"], 0);
}

#[tokio::test]
async fn a_threat_is_told_and_a_game_that_was_given_up_is_reviewed() {
    let site = Site::new().await;
    let game = json!({ "game": "connect-four", "side": "both", "opponent": "uct" });
    let address = format!("/play/tables/{}", site.table(&game).await);
    let mut events = site.events(&format!("{address}/events")).await;
    let shows = |slot: &'static str, words: &'static str| {
        move |event: &Value| {
            event["slots"][slot]
                .as_str()
                .is_some_and(|text| text.contains(words))
        }
    };
    let say = |text: &str| json!({ "do": "say", "text": text });
    assert_eq!(site.post(&address, &json!({ "do": "review" })).await.status, 400);
    for column in ["1", "2", "1", "2", "1"] {
        assert_eq!(site.post(&address, &say(column)).await.status, 200);
    }
    let threat = "Threat: X wins in the next turn. One move prevents it.";
    events.find(shows("status", threat)).await;
    assert_eq!(site.post(&address, &json!({ "do": "resign" })).await.status, 200);
    let over = events.find(shows("status", "O resigned: X wins.")).await;
    assert_eq!(
        (&over["flags"]["over"], &over["offers"]),
        (&json!(true), &json!([]))
    );
    assert_eq!(site.post(&address, &json!({ "do": "resign" })).await.status, 400);
    assert_eq!(site.post(&address, &say("1")).await.status, 400);
    // The review searches six positions.
    assert_eq!(site.post(&address, &json!({ "do": "review" })).await.status, 200);
    let review = |event: &Value| {
        let text = event["slots"]["review"].as_str().unwrap_or_default();
        text.contains("Review") && !text.contains("are judged")
    };
    events.find(review).await;
    assert_eq!(site.post(&address, &json!({ "do": "back" })).await.status, 200);
    let again = events.find(|event| event["flags"]["over"] == false).await;
    assert_eq!(again["slots"]["review"], "");
}

#[tokio::test]
async fn refusals_are_sentences_and_change_nothing() {
    let site = Site::new().await;
    let table = site.table(&json!({ "game": "paco-sako", "side": "both" })).await;
    let address = format!("/play/tables/{table}");
    let play = |actions: &[u32], at: usize| json!({ "do": "play", "actions": actions, "at": at });
    for (command, words) in [
        (json!({ "do": "say", "text": "e2 e5" }), "cannot be placed on e5"),
        (play(&[0], 0), "."),
        (play(&[12, 92], 7), "has changed"),
        (play(&[4_000_000_000], 0), "."),
        (json!({ "do": "undo" }), "nothing of yours"),
        (json!({ "do": "back" }), "nothing of yours"),
        (json!({ "do": "fly" }), "fly"),
    ] {
        let reply = site.post(&address, &command).await;
        let answer: Value = serde_json::from_str(&reply.body).unwrap();
        assert_eq!(reply.status, 400, "{command}: {}", reply.body);
        let said = answer["error"].as_str().unwrap();
        assert!(said.contains(words), "{command}: {answer}");
    }
    let record = site.get(&format!("{address}/record")).await;
    let record: Value = serde_json::from_str(&record.body).unwrap();
    assert_eq!(record["actions"], json!([]));
    let missing = site.post("/play/tables/00000000", &json!({ "do": "back" })).await;
    assert_eq!(missing.status, 404);
}

#[tokio::test]
async fn a_board_has_the_size_that_was_chosen_and_its_record_tells_it() {
    let site = Site::new().await;
    let page = site.get("/play?game=go:13").await.body;
    assert!(page.contains("Play go:13"), "{page}");
    assert!(
        page.contains("<option value=\"13\" selected>13×13</option>"),
        "{page}"
    );
    assert_eq!(page.matches("data-cell=").count(), 169);
    let chess = site.get("/play?game=chess").await.body;
    assert!(!chess.contains("name=\"size\""), "{chess}");
    for game in ["go:99", "go:x", "chess:9"] {
        assert_eq!(
            site.get(&format!("/play?game={game}")).await.status,
            400,
            "{game}"
        );
        let reply = site.post("/play/tables", &json!({ "game": game })).await;
        assert_eq!(reply.status, 400, "{game}: {}", reply.body);
    }
    let table = site.table(&json!({ "game": "go:5", "side": "both" })).await;
    let address = format!("/play/tables/{table}");
    for text in ["e5", "pass"] {
        let say = json!({ "do": "say", "text": text });
        assert_eq!(site.post(&address, &say).await.status, 200);
    }
    let record = site.get(&format!("{address}/record")).await;
    let record: Value = serde_json::from_str(&record.body).unwrap();
    assert_eq!((&record["game"], &record["size"]), (&json!("go"), &json!(5)));
    assert_eq!(record["actions"], json!([24, 25]));
    let page = site.get(&format!("/play?table={table}")).await.body;
    assert!(page.contains("Play go:5"), "{page}");
}

/// A page names an opponent by an id of the list, so that it cannot make the studio read a file or start a program.
#[tokio::test]
async fn an_opponent_that_is_not_listed_is_refused() {
    let site = Site::new().await;
    for opponent in [
        "uci:/bin/sh",
        "/etc/passwd",
        "../model.onnx",
        "http://127.0.0.1:1",
        "uct,visits=9",
        "",
    ] {
        let reply = site
            .post("/play/tables", &json!({ "game": "chess", "opponent": opponent }))
            .await;
        assert_eq!(reply.status, 400, "{opponent}");
        assert!(reply.body.contains("no opponent"), "{}", reply.body);
    }
    for (game, words) in [
        (json!({ "game": "chest" }), "did you mean chess"),
        (json!({ "game": "chess", "visits": 20_001 }), "1 to 20000"),
        (json!({ "game": "chess", "visits": 0 }), "1 to 20000"),
        (json!({ "game": "chess", "start": "8/8" }), "cannot start"),
        (json!({ "game": "chess", "side": "red" }), "Unknown side"),
        (json!({ "game": "chess", "actions": [1] }), "not legal"),
    ] {
        let reply = site.post("/play/tables", &game).await;
        assert_eq!(reply.status, 400, "{game}");
        assert!(reply.body.contains(words), "{game}: {}", reply.body);
    }
    let text = site
        .send_with(
            &format!(
                "POST /play/tables HTTP/1.1\nHost: {}\nContent-Type: text/plain\nContent-Length: 16",
                site.address
            ),
            "{\"game\":\"chess\"}",
        )
        .await;
    assert_eq!(text.status, 400, "a form of another site has no JSON");
}

/// Opens a table of two people, and returns its id.
async fn open(tables: &Arc<Tables>, game: &str) -> Result<String, Failure> {
    let new = json!({ "game": game, "side": "both", "opponent": "uct" });
    open_table(tables, serde_json::from_value(new).unwrap()).await
}

#[tokio::test]
async fn the_table_that_was_left_first_makes_room_and_watched_ones_stay() {
    let limits = Limits {
        tables: 3,
        ..Limits::default()
    };
    let tables = Arc::new(Tables::new(None, limits));
    let mut ids = Vec::new();
    let mut watchers = Vec::new();
    for _ in 0..3 {
        ids.push(open(&tables, "othello").await.unwrap());
    }
    watchers.push(tables.table(&ids[0]).unwrap().watch());
    let fourth = open(&tables, "othello").await.unwrap();
    assert!(matches!(tables.table(&ids[1]), Err(Failure::Missing(_))));
    for id in [&ids[2], &fourth] {
        watchers.push(tables.table(id).unwrap().watch());
    }
    let refused = open(&tables, "othello").await;
    assert!(matches!(refused, Err(Failure::Busy(_))), "{refused:?}");
}

/// The search would take hours. It ends because nobody watches.
#[tokio::test]
async fn a_search_that_nobody_watches_stops() {
    let limits = Limits {
        visits: 1 << 30,
        unwatched: Duration::ZERO,
        ..Limits::default()
    };
    let tables = Arc::new(Tables::new(None, limits));
    let id = open(&tables, "chess").await.unwrap();
    let table = tables.table(&id).unwrap();
    let watching = Arc::clone(&table).watch();
    let mut changes = table.changes();
    Arc::clone(&table).execute(Command::Analyse { on: true }).unwrap();
    // The first report shows that the search is at work.
    while !analysis(&table).contains("visits") {
        changes.changed().await.unwrap();
    }
    drop(watching);
    // The search holds the table until it ends.
    while Arc::strong_count(&table) > 2 {
        tokio::task::yield_now().await;
    }
    assert!(analysis(&table).contains("visits"), "what was found stays");
}

/// At the start of a game the solver needs minutes: for the analysis, and for the perfect opponent. It ends because nobody watches.
#[tokio::test]
async fn exact_solving_that_nobody_watches_stops() {
    for (side, is_analysed) in [("both", true), ("second", false)] {
        let limits = Limits {
            unwatched: Duration::ZERO,
            ..Limits::default()
        };
        let tables = Arc::new(Tables::new(None, limits));
        let opponent = if is_analysed { "uct" } else { "perfect" };
        let game = json!({ "game": "connect-four", "side": side, "opponent": opponent });
        let new = serde_json::from_value(game).unwrap();
        let id = open_table(&tables, new).await.unwrap();
        let table = tables.table(&id).unwrap();
        let watching = Arc::clone(&table).watch();
        if is_analysed {
            Arc::clone(&table).execute(Command::Analyse { on: true }).unwrap();
        }
        while tables.solving.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        drop(watching);
        let ended = tokio::time::timeout(Duration::from_secs(60), tables.solving.acquire());
        drop(ended.await.expect("the solver has stopped").unwrap());
        assert_eq!(table.record()["actions"], json!([]));
    }
}

/// The visits would take hours. They end because the person has left, and other searches wait until then.
#[tokio::test]
async fn visits_of_a_tree_that_nobody_waits_for_stop() {
    const VISITS: u32 = 1 << 30;
    let limits = Limits {
        visits: VISITS,
        searches: 1,
        ..Limits::default()
    };
    let tables = Arc::new(Tables::new(None, limits));
    let id = open(&tables, "chess").await.unwrap();
    let explorer = tables.table(&id).unwrap().explorer().unwrap();
    let mut left = Box::pin(explore::search(&tables.searches, Arc::clone(&explorer), VISITS));
    while tables.searches.available_permits() > 0 {
        let ended = futures::poll!(&mut left);
        assert!(ended.is_pending());
    }
    drop(left);
    explore::search(&tables.searches, Arc::clone(&explorer), 1)
        .await
        .unwrap();
    let made = explorer.tree()["visits"].as_u64().unwrap();
    assert!((1..u64::from(VISITS)).contains(&made), "{made} visits");
}

fn analysis(table: &Table) -> String {
    let shown = table.shown(studio::board::View::default());
    shown.html.content("analysis").0.to_owned()
}
