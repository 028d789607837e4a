//! The page that shows a run learning.

use std::collections::BTreeMap;

use crate::{
    site::{Events, Site},
    trained,
};

/// The newest content of each slot.
#[derive(Default)]
struct Shown(BTreeMap<String, String>);

impl Shown {
    fn of(&self, slot: &str) -> &str {
        self.0.get(slot).map_or("", String::as_str)
    }

    async fn read(&mut self, events: &mut Events) {
        for (slot, content) in events.next().await.as_object().unwrap() {
            self.0.insert(slot.clone(), content.as_str().unwrap().into());
        }
    }
}

#[tokio::test]
async fn a_run_without_checkpoints_says_what_will_come_and_draws_the_positions() {
    let site = Site::new().await;
    let page = site.get("/learn").await;
    assert_eq!(page.status, 200);
    for text in ["The first checkpoint", "Centre column full", "Four to complete"] {
        assert!(page.body.contains(text), "{text} in {}", page.body);
    }
}

#[tokio::test]
async fn milestones_have_names_here_and_among_the_opponents_and_a_checkpoint_that_is_gone_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let versions = trained::run(folder.path(), &[0, 100, 200], &[("minute-0", 0), ("minute-8", 1)]).await;
    let site = Site::of(folder).await;
    let page = site.get("/learn").await.body;
    assert!(page.contains("<b>step 200 (latest)</b>"), "{page}");
    for (version, name) in [
        (&versions[0], ">minute 0</a>"),
        (&versions[1], ">minute 8</a>"),
        (&versions[2], ">newest</a>"),
    ] {
        assert!(page.contains(&format!("href=\"/learn?at={version}\"")), "{page}");
        assert!(page.contains(name), "{name} in {page}");
    }
    let older = site.get(&format!("/learn?at={}", versions[1])).await.body;
    assert!(older.contains("<b>minute 8, step 100</b>"), "{older}");
    let play = site.get("/play").await.body;
    assert!(play.contains(">minute 8, step 100</option>"), "{play}");
    assert!(play.contains(">minute 0, step 0</option>"), "{play}");

    let gone = site.get("/learn?at=000000000300-00000000").await;
    assert_eq!(gone.status, 404);
    assert!(gone.body.contains("not kept any more"), "{}", gone.body);
    assert_eq!(site.get("/learn?at=best").await.status, 400);
}

/// The outside truth is the game: X completes four in a row with column 2 or 6, and a trained network with 50 visits finds that.
#[tokio::test]
async fn the_stream_brings_raw_and_searched_figures_and_curves_over_all_checkpoints() {
    let folder = tempfile::tempdir().unwrap();
    trained::run(folder.path(), &[0, 100, 200], &[("minute-0", 0)]).await;
    let site = Site::of(folder).await;
    let mut events = site.events("/learn/live").await;
    let mut shown = Shown::default();
    // The chosen checkpoint is searched first; the curves are complete when all have answered.
    while !shown.of("lines-6").contains("at step 0")
        || !shown.of("checkpoint").contains("3 of 3 checkpoints asked")
    {
        shown.read(&mut events).await;
        let checkpoint = shown.of("checkpoint");
        assert!(!checkpoint.contains("cannot"), "{checkpoint}");
    }
    let win = shown.of("probe-6");
    let first = win.split("<th scope=\"row\">").nth(2).unwrap();
    assert!(first.starts_with('2') || first.starts_with('6'), "{win}");
    let figures: Vec<u32> = win
        .split("<span class=\"number\">")
        .skip(1)
        .map(|rest| rest.split(' ').next().unwrap().parse().unwrap())
        .collect();
    // Two columns: X's chances, then four moves.
    assert_eq!(figures.len(), 10, "{win}");
    assert!(figures[1] >= 90, "a search that sees the win: {win}");
    assert!(figures[3] >= 50, "most visits go to the win: {win}");
    assert!(
        win.contains("by-prior") && win.contains("class=\"advice\""),
        "{win}"
    );
    // The milestones and the newest checkpoint take the solver tests after that: both have the same network.
    while !shown.of("optimal").contains("at step 0") || !shown.of("optimal").contains("at 200") {
        shown.read(&mut events).await;
    }
    let optimal = shown.of("optimal");
    let described = optimal.split("milestones. network alone: ").nth(1).unwrap();
    let shares: Vec<f64> = described
        .split([' ', ','])
        .filter_map(|word| word.strip_suffix(".000").unwrap_or(word).parse().ok())
        .collect();
    let random = optimal
        .split("Random moves: ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap();
    let random: f64 = random.parse().unwrap();
    assert!(shares[0] > random + 10.0 && shares[0] <= 100.0, "{optimal}");
    assert_eq!(shares[0], shares[2], "{optimal}");

    let lines = shown.of("lines-6");
    for at in ["at step 0", "at 200"] {
        assert!(lines.contains(at), "{at} in {lines}");
    }
}
