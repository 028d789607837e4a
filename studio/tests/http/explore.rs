//! The search explorer, which needs no script.

use serde_json::{Value, json};

use crate::site::{Site, location};

/// Begins a game of Connect Four for two people and returns the id of its table.
async fn table(site: &Site, actions: &[u32]) -> String {
    let game = json!({ "game": "connect-four", "side": "both", "opponent": "uct", "actions": actions });
    site.table(&game).await
}

#[tokio::test]
async fn a_tree_grows_by_one_visit_along_the_greatest_score() {
    let site = Site::new().await;
    let table = table(&site, &[]).await;
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
    let table = table(&site, &[3]).await;
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
    let below = |parent: usize| nodes.iter().filter(move |node| node["parent"] == parent);
    let sum = |parent: usize| -> u64 { below(parent).map(|child| child["visits"].as_u64().unwrap()).sum() };
    assert_eq!(sum(0), 50);
    let c = tree["exploration"].as_f64().unwrap();
    for (parent, node) in nodes.iter().enumerate() {
        for child in below(parent) {
            let number = |name: &str| child[name].as_f64().unwrap();
            let u = c * number("prior") * (sum(parent) as f64).sqrt() / (1.0 + number("visits"));
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
