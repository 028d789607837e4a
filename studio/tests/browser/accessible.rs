//! Every page, checked with axe-core in both themes, on a narrow and on a wide page.

use std::{fs, path::Path};

use studio::run::Run;
use tokio::runtime::Runtime;

use crate::{browser::Browser, run_at_work::RunAtWork, stored, trained};

/// A rated match of the checkpoints with steps 0 and 100.
const MATCH: &str = r#"{"schema":1,"time_ms":1795255200000,"candidate":"000000000100-8c1f0e2d","step":100,"opponent":"000000000000-8c1f0e2d","outcome":"promoted","games":40,"wins":25,"draws":5,"losses":10,"pairs":[1,3,6,7,3],"log_likelihood_ratio":2.96,"elo_difference":137.0,"elo_difference_interval":[34.0,null],"elo":137.0,"elo_interval":[34.0,262.0],"best_elo":137.0,"best_elo_interval":[34.0,262.0]}"#;

/// The script of axe-core. `None`, and a counted skip, if it cannot be fetched.
pub fn axe() -> Option<String> {
    let python = test_support::python("axe")?;
    let environment = python.parent().and_then(Path::parent).unwrap();
    let mut libraries = fs::read_dir(environment.join("lib")).unwrap();
    let library = libraries.next().unwrap().unwrap().path();
    let script = library.join("site-packages/axe_playwright_python/axe.min.js");
    Some(fs::read_to_string(script).unwrap())
}

/// Checks the open page in both themes on both widths.
pub fn check(browser: &Browser, axe: &str, page: &str) {
    for theme in ["light", "dark"] {
        browser.prefer(theme);
        for width in [360, 1200] {
            browser.set_width(width);
            let found = browser.violations(axe);
            assert!(found.is_empty(), "{page}, {theme}, {width} pixels: {found:#?}");
        }
    }
}

#[test]
fn a_picture_without_words_is_a_violation() {
    let Some(axe) = axe() else { return };
    let Some(browser) = Browser::start() else {
        return;
    };
    browser.open_table("game=connect-four&side=both");
    browser.script("document.querySelector('main').append(document.createElement('img'))");
    let found = browser.violations(&axe);
    assert!(
        found.iter().any(|line| line.starts_with("image-alt: ")),
        "{found:?}"
    );
    browser.end();
}

#[test]
fn all_pages_of_a_run_have_no_violation() {
    let Some(axe) = axe() else { return };
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::new().unwrap();
    runtime.block_on(stored::run(folder.path()));
    let labels = [("minute-0", 0), ("minute-1", 1)];
    runtime.block_on(trained::run(folder.path(), &[0, 100], &labels));
    fs::create_dir_all(folder.path().join("rating")).unwrap();
    fs::write(folder.path().join("rating/metrics.jsonl"), format!("{MATCH}\n")).unwrap();
    let Some(browser) = Browser::of(Some(Run::open(folder.path()).unwrap())) else {
        return;
    };
    browser.open("/");
    let links =
        browser.script("return [...document.querySelectorAll('nav a')].map(a => a.getAttribute('href'))");
    let mut pages: Vec<String> = links
        .as_array()
        .unwrap()
        .iter()
        .map(|link| link.as_str().unwrap().into())
        .collect();
    assert!(pages.len() >= 5, "{pages:?}");
    browser.open("/games");
    let game =
        browser.script("return document.querySelector('main a[href^=\"/games/\"]').getAttribute('href')");
    pages.push(game.as_str().unwrap().into());
    pages.push("/nothing-here".into());
    for page in &pages {
        browser.open(page);
        match page.as_str() {
            "/learn" => browser.wait("document.querySelectorAll('.plot').length > 0"),
            "/play" => drop(browser.find("[data-play][data-at='0'] .turn")),
            _ => {}
        }
        check(&browser, &axe, page);
    }
    browser.end();
}

#[test]
fn an_overview_with_alarms_has_no_violation() {
    let Some(axe) = axe() else { return };
    let folder = tempfile::tempdir().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = listener.local_addr().unwrap();
    drop(listener);
    let run = RunAtWork::new(folder.path(), nobody);
    let Some(browser) = Browser::of(Some(Run::open(folder.path()).unwrap())) else {
        return;
    };
    run.kill("actor-1");
    run.set("learner", "minuet_learner_divergences_total 1\n");
    browser.open("/");
    browser.wait("document.querySelectorAll('.alarms > li').length === 2");
    check(&browser, &axe, "/");
    browser.end();
}

#[test]
fn a_table_of_each_game_has_no_violation() {
    let Some(axe) = axe() else { return };
    let Some(browser) = Browser::start() else {
        return;
    };
    for game in games::registry::NAMES {
        browser.open_table(&format!("game={game}&side=both"));
        browser.click("[name=analyse]");
        browser.find(".rows tbody tr");
        check(&browser, &axe, game);
        // The exact values of Connect Four's empty board take minutes.
        browser.click("[name=analyse]");
        browser.wait("!document.querySelector('.rows tbody tr')");
    }
    browser.end();
}

#[test]
fn a_search_tree_has_no_violation() {
    let Some(axe) = axe() else { return };
    let Some(browser) = Browser::start() else {
        return;
    };
    for game in ["paco-sako", "generator"] {
        browser.open_table(&format!("game={game}&side=both&opponent=uct"));
        browser.click(".open-tree button");
        browser.find(".nodes tbody tr:nth-child(2) a");
        // The page marks the way of the last visit.
        browser.click("#visit-1");
        browser.find(".last a");
        check(&browser, &axe, &format!("the tree of {game}"));
        browser.click(".nodes tbody tr:nth-child(2) a");
        browser.find(".formula .sum");
        check(&browser, &axe, &format!("a node of {game}"));
    }
    browser.end();
}
