//! Nothing moves on a page while it is loaded and kept current.

use studio::run::Run;
use tokio::runtime::Runtime;

use crate::{browser::Browser, stored, trained};

/// Sum of the shifts that is 0.00 as browsers' tools write it.
const STILL: f64 = 0.005;

/// True once a game has begun and its pieces are shown.
const TABLE: &str =
    "document.querySelector('[data-play]').dataset.at && document.querySelector('.status').textContent";

#[test]
fn no_page_moves_while_it_is_loaded_and_kept_current() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::new().unwrap();
    runtime.block_on(stored::run(folder.path()));
    runtime.block_on(trained::run(folder.path(), &[0, 100], &[("minute-0", 0)]));
    let Some(browser) = Browser::of(Some(Run::open(folder.path()).unwrap())) else {
        return;
    };
    for width in [360, 1200] {
        browser.set_width(width);
        for (page, is_current) in [
            (
                "/",
                "document.querySelector('.newest time')?.textContent.endsWith(' ago')",
            ),
            (
                "/games",
                "document.querySelector('.games time').textContent.endsWith(' ago')",
            ),
            (
                "/learn",
                "document.querySelectorAll('.plot').length >= document.querySelectorAll('.probe').length",
            ),
            ("/matches", "true"),
            ("/compare", "true"),
            ("/config", "true"),
            ("/play", TABLE),
            ("/play?game=paco-sako&side=second", TABLE),
            ("/play?game=generator", TABLE),
            ("/play?game=go:19", TABLE),
        ] {
            browser.open(page);
            browser.wait(is_current);
            let shifts = browser.shifts();
            let all: f64 = shifts
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|shift| shift[0].as_f64())
                .sum();
            assert!(all < STILL, "{page} at {width} pixels: {shifts}");
        }
    }
    browser.end();
}
