//! The search explorer from the page of a game.

use crate::browser::Browser;

#[test]
fn a_tree_is_opened_from_a_game_and_grows_in_place() {
    let Some(browser) = Browser::start() else {
        return;
    };
    browser.open_table("game=paco-sako&side=both&opponent=uct");
    browser.click(".open-tree button");
    let visits = |number: &str| format!("document.querySelector('.visits b')?.textContent === '{number}'");
    browser.wait(&visits("50"));
    browser.script("window.same = true");
    browser.click("#visit-1");
    browser.wait(&visits("51"));
    browser.wait("document.activeElement.id === 'visit-1'");
    browser.wait("document.querySelector('.last a')");
    browser.click("#visit-1000");
    browser.wait(&visits("1,051"));
    browser.click(".nodes tbody tr:nth-child(2) a");
    browser.wait("document.querySelector('.formula .sum')");
    browser.wait("document.querySelectorAll('.nodes .depth-1').length >= 2");
    assert_eq!(
        browser.script("return window.same"),
        true,
        "the page was not loaded anew"
    );
    let address = browser.script("return location.search");
    assert!(address.as_str().unwrap().starts_with("?at="), "{address}");
    browser.script("history.back()");
    browser.wait("!document.querySelector('.formula')");
    browser.script("history.forward()");
    browser.wait("document.querySelector('.formula .sum')");
    browser.fits(&[360, 900, 1600, 3840]);
    browser.end();
}

#[test]
fn every_game_has_a_tree() {
    let Some(browser) = Browser::start() else {
        return;
    };
    for game in games::registry::NAMES {
        browser.open_table(&format!("game={game}&side=both&opponent=uct"));
        browser.click(".open-tree button");
        browser.find(".nodes tbody tr:nth-child(2) a");
        browser.click(".nodes tbody tr:nth-child(2) a");
        browser.find(".formula .sum");
    }
    browser.end();
}
