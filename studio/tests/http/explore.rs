//! The search explorer, and play with plain forms: both need no script.

use serde_json::Value;

use crate::site::{Site, location};

/// Begins a game of Connect Four and returns the id of its table.
async fn table(site: &Site, fields: &str) -> String {
    let begun = site
        .submit("/play/new", &format!("game=connect-four&{fields}"))
        .await;
    let address = location(&begun);
    let id = address.strip_prefix("/play?table=").unwrap();
    id.split('&').next().unwrap().to_owned()
}

/// The part of a page for browsers without scripts.
fn plain(page: &str) -> &str {
    page.split("<div class=\"plain\">").nth(1).unwrap()
}

#[tokio::test]
async fn a_tree_grows_by_one_visit_along_the_greatest_score() {
    let site = Site::new().await;
    let table = table(&site, "side=both&opponent=uct").await;
    let address = location(&site.submit("/search", &format!("table={table}")).await);
    for number in 0..30 {
        let page = site.get(&address).await.body;
        assert!(
            page.contains(&format!(
                "<b>{}</b> visits by search without a network",
                50 + number
            )),
            "{page}"
        );
        // The page marks the move that the next visit takes.
        let rows = page.split("<tr").filter(|row| row.contains("class=\"next\""));
        let marked: Vec<&str> = rows
            .filter_map(|row| row.split("at=").nth(1)?.split('"').next())
            .collect();
        let stepped = location(&site.submit(&format!("{address}/visit"), "count=1&at=").await);
        let page = site.get(&stepped).await.body;
        let said = page.split("The last visit took").nth(1).unwrap();
        let taken = said
            .split("at=")
            .nth(1)
            .unwrap()
            .split(['.', '"'])
            .next()
            .unwrap();
        assert!(marked.contains(&taken), "{taken} in {marked:?}: {page}");
    }
}

#[tokio::test]
async fn a_node_shows_its_board_and_the_formula_adds_up_as_the_saved_tree_does() {
    let site = Site::new().await;
    let table = table(&site, "side=both&opponent=uct&actions=%5B3%5D").await;
    let address = location(&site.submit("/search", &format!("table={table}")).await);
    let saved = site.get(&format!("{address}/tree.json")).await;
    assert!(
        saved
            .head
            .contains("attachment; filename=\"minuet-tree-connect-four.json\""),
        "{}",
        saved.head
    );
    let tree: Value = serde_json::from_str(&saved.body).unwrap();
    assert_eq!(tree["visits"], 50);
    let nodes = tree["nodes"].as_array().unwrap();
    let sum = |node: &Value| -> u64 {
        let children = node["children"].as_array().unwrap();
        children
            .iter()
            .map(|child| child["visits"].as_u64().unwrap())
            .sum()
    };
    assert_eq!(sum(&nodes[0]), 50);
    let c = tree["exploration"].as_f64().unwrap();
    for node in nodes.iter().filter(|node| sum(node) > 0) {
        for child in node["children"].as_array().unwrap() {
            let number = |name: &str| child[name].as_f64().unwrap();
            let u = c * number("prior") * (sum(node) as f64).sqrt() / (1.0 + number("visits"));
            assert!((u - number("u")).abs() < 1e-4, "{child} in {node}");
            // With the evaluation of the node as first-play urgency.
            let q = (node["evaluation"].as_f64().unwrap() + number("value") * number("visits"))
                / (1.0 + number("visits"));
            assert!((q - number("q")).abs() < 1e-4, "{child} in {node}");
        }
    }
    let page = site.get(&format!("{address}?at=3")).await.body;
    assert!(page.contains("<h2 id=\"node\">4</h2>"), "{page}");
    assert!(page.contains("X to move, 7 legal moves"), "{page}");
    let prior = format!("{c} · {:.3} · √50", 1.0 / 7.0);
    assert!(page.contains(&prior), "{prior} in {page}");
    for (path, status) in [("?at=9", 404), ("?at=x", 400), ("?at=3.3.3.3.3.3.3", 404)] {
        assert_eq!(
            site.get(&format!("{address}{path}")).await.status,
            status,
            "{path}"
        );
    }
    assert_eq!(site.get("/search/0000000000000000").await.status, 404);
    for (fields, status) in [
        ("count=0", 400),
        ("count=20001", 400),
        ("count=1&x=1", 400),
        ("count=1&at=a", 400),
    ] {
        let reply = site.submit(&format!("{address}/visit"), fields).await;
        assert_eq!(reply.status, status, "{fields}: {}", reply.body);
    }
    assert_eq!(site.submit("/search", "table=none").await.status, 404);
}

#[tokio::test]
async fn a_game_is_played_to_its_end_with_forms_alone() {
    let site = Site::new().await;
    let table = table(&site, "side=first&opponent=random").await;
    let act = format!("/play/tables/{table}/act");
    for _ in 0..21 {
        let page = site.get(&format!("/play?table={table}")).await.body;
        let shown = plain(&page);
        let field = |name: &str| {
            let found = shown.split(&format!("name=\"{name}\" value=\"")).nth(1);
            found.map(|rest| rest.split('"').next().unwrap().to_owned())
        };
        let Some(play) = field("play") else {
            assert!(shown.contains("has won") || shown.contains("draw"), "{shown}");
            let refused = site
                .submit(&act, &format!("at={}&play=0", field("at").unwrap()))
                .await;
            assert_eq!(refused.status, 400);
            assert!(
                plain(&refused.body).contains("The game is over."),
                "{}",
                refused.body
            );
            return;
        };
        let at = field("at").unwrap();
        assert_eq!(
            location(&site.submit(&act, &format!("at={at}&play={play}")).await),
            format!("/play?table={table}")
        );
    }
    panic!("the game has no end");
}

#[tokio::test]
async fn the_computer_has_answered_when_a_form_is_answered_and_turns_are_taken_back() {
    let site = Site::new().await;
    let table = table(&site, "side=second&opponent=uct&visits=20").await;
    let page = async || site.get(&format!("/play?table={table}&side=second")).await.body;
    let begun = page().await;
    assert!(plain(&begun).contains("name=\"at\" value=\"1\""), "{begun}");
    assert!(
        plain(&begun).contains("name=\"side\" value=\"second\""),
        "{begun}"
    );
    let act = format!("/play/tables/{table}/act");
    location(&site.submit(&act, "at=1&side=second&say=4").await);
    assert!(plain(&page().await).contains("name=\"at\" value=\"3\""));
    location(&site.submit(&act, "at=3&side=second&take=undo").await);
    assert!(plain(&page().await).contains("name=\"at\" value=\"1\""));
    for (fields, said) in [
        ("at=1&say=nine", "is not a column"),
        ("at=0&play=3", "The position has changed."),
        ("at=1&play=x", "list of numbers"),
        ("at=1", "one of the fields"),
        ("at=1&play=3&say=4", "one of the fields"),
        ("at=1&take=all", "one of the fields"),
    ] {
        let refused = site.submit(&act, fields).await;
        assert_eq!(refused.status, 400, "{fields}");
        assert!(plain(&refused.body).contains(said), "{fields}: {}", refused.body);
    }
    // A form of another site changes nothing.
    let head = format!(
        "POST {act} HTTP/1.1\nHost: {}\nOrigin: https://evil.example\nContent-Type: application/x-www-form-urlencoded\nContent-Length: 10",
        site.address
    );
    assert_eq!(site.send_with(&head, "at=1&say=4").await.status, 403);
    for (fields, status) in [
        ("", 400),
        ("game=chest", 400),
        ("game=chess&opponent=uci:sh", 400),
        ("game=chess&actions=x", 400),
    ] {
        assert_eq!(site.submit("/play/new", fields).await.status, status, "{fields}");
    }
}
