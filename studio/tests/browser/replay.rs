//! The page of a stored game.

use studio::run::Run;
use tokio::runtime::Runtime;

use crate::{
    browser::{Browser, key},
    stored,
};

#[test]
fn a_game_is_stepped_through_by_keys_by_its_moves_and_by_the_graph() {
    let folder = tempfile::tempdir().unwrap();
    Runtime::new().unwrap().block_on(stored::run(folder.path()));
    let Some(browser) = Browser::of(Some(Run::open(folder.path()).unwrap())) else {
        return;
    };
    let wait = |ply: usize| {
        browser.wait(&format!(
            "document.querySelector('.where').textContent === 'after {ply} of 8' && \
             document.querySelectorAll('[data-slot=board] .piece').length === {ply} && location.search === '?ply={ply}'"
        ));
    };
    browser.open(&format!("/games/{}?ply=0", "02".repeat(16)));
    wait(0);
    browser.script("window.same = true");
    for (key, ply) in [
        (key::RIGHT, 1),
        (key::DOWN, 2),
        (key::END, 8),
        (key::RIGHT, 8),
        (key::LEFT, 7),
        (key::HOME, 0),
    ] {
        browser.type_key(key);
        wait(ply);
    }
    browser.click("ol.moves a[data-ply='5']");
    wait(5);
    browser.click(".steps [aria-label=Back]");
    wait(4);
    assert_eq!(
        browser.script("return document.activeElement.ariaLabel"),
        "Back",
        "the focus stays"
    );
    browser.type_key(key::HOME);
    wait(0);
    browser.click(".value-card svg[data-low]");
    browser.wait("['after 3 of 8', 'after 4 of 8'].includes(document.querySelector('.where').textContent)");
    assert_eq!(
        browser.script("return window.same"),
        true,
        "the page was not loaded anew"
    );
    browser.end();
}
