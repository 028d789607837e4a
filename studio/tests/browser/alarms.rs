//! An alarm that comes while somebody looks.

use serde_json::Value;
use studio::run::Run;

use crate::{browser::Browser, run_at_work::RunAtWork};

/// Places of all cards, by their upper and lower edges.
const PLACES: &str = "return [...document.querySelectorAll('.card')].map(c => { const b = c.getBoundingClientRect(); return [b.top, b.bottom] })";

#[test]
fn an_alarm_appears_while_the_page_is_open_and_nothing_moves() {
    for width in [360, 1200] {
        let folder = tempfile::tempdir().unwrap();
        let nobody = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let run = RunAtWork::new(folder.path(), nobody);
        let Some(browser) = Browser::of(Some(Run::open(folder.path()).unwrap())) else {
            return;
        };
        browser.allow_clipboard();
        browser.set_width(width);
        browser.open("/");
        browser.wait(
            "document.querySelector('[role=status] [data-slot=alarm-titles]').textContent === 'No alarm.'",
        );
        // The page's stream is open when ages are counted in seconds.
        browser.wait("/seen \\d+ s ago/.test(document.querySelector('[data-slot=alarm-count]').textContent)");
        browser.script(
            "window.shift = 0; \
            new PerformanceObserver(list => { for (const entry of list.getEntries()) shift += entry.value }) \
            .observe({ type: 'layout-shift' })",
        );
        let before = browser.script(PLACES);
        assert!(before.as_array().unwrap().len() >= 7, "{before}");

        run.kill("actor-1");
        run.set(
            "replay-store",
            "minuet_replay_disk_bytes 9\nminuet_replay_disk_limit_bytes 10\nminuet_replay_unarchived_volumes 2\n",
        );
        run.set("learner", "minuet_learner_divergences_total 1\n");
        browser.wait("document.querySelectorAll('.alarms > li').length === 4");
        let said = browser
            .script("return document.querySelector('[role=status] [data-slot=alarm-titles]').textContent");
        assert_eq!(said, "Alarms: Role down, Diverged, Replay disk, Archive behind.");
        assert_eq!(browser.script(PLACES), before, "{width} pixels");
        assert_eq!(browser.script("return shift"), Value::from(0), "{width} pixels");

        browser.click("button[data-copy*='window_positions']");
        browser.script("navigator.clipboard.readText().then(text => (window.copied = text))");
        browser.wait("window.copied === '--set replay.window_positions=250000'");
        browser.end();
    }
}
