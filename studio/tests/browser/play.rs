//! The page of a table: the opponent, taking back, hints, the analysis, typed moves.

use crate::browser::{Browser, Hand};

#[test]
fn the_computer_answers_and_a_turn_is_taken_back() {
    let Some(browser) = Browser::start() else {
        return;
    };
    browser.open_table("game=connect-four&opponent=uct&visits=20");
    browser.press(Hand::Click, &[38]);
    browser.find("[data-play][data-at='2']");
    browser.click("[data-do=undo]");
    browser.find("[data-play][data-at='0']");
    // The board is drawn without discs again.
    browser.wait("document.querySelectorAll('.board-slot .piece').length === 0");
    browser.end();
}

#[test]
fn a_game_is_given_up_and_reviewed_and_the_next_begins_with_one_click() {
    let Some(browser) = Browser::start() else {
        return;
    };
    browser.set_width(360);
    browser.open_table("game=connect-four&opponent=uct&visits=20");
    browser.press(Hand::Touch, &[38]);
    browser.find("[data-play][data-at='2']");
    browser.click("[data-do=resign]");
    browser.click("[data-do=review]");
    browser.wait("document.querySelector('.review .plot') && !document.querySelector('.review').textContent.includes('are judged')");
    browser.fits(&[360]);
    browser.click("[data-new]");
    browser.find("[data-play][data-at='0']");
    browser.wait("!document.querySelector('[data-new]') && document.querySelector('.review:empty')");
    browser.end();
}

#[test]
fn the_analysis_streams_figures_and_exact_values_and_stops() {
    let Some(browser) = Browser::start() else {
        return;
    };
    // Twelve discs: the solver takes a moment only.
    let actions = "[3,3,3,3,3,3,0,0,0,0,1,1]";
    browser.open(&format!("/play?game=connect-four&side=both&actions={actions}"));
    browser.find("[data-play][data-at='12']");
    browser.click("[name=analyse]");
    assert!(browser.text(".rows tbody tr").contains('%'));
    browser.find(".overlay .by-visits .advice");
    let judged = "[...document.querySelectorAll('.rows tbody tr')].filter(r => /wins|draws|loses/.test(r.textContent))";
    browser.wait(&format!("{judged}.length >= 6"));
    browser.click("[name=analyse]");
    browser.find(".rows:empty");
    browser.end();
}

#[test]
fn a_hint_has_three_stages() {
    let Some(browser) = Browser::start() else {
        return;
    };
    browser.open_table("game=chess&side=both&start=7k/8/5KQ1/8/8/8/8/8%20w%20-%20-%200%201");
    for words in ["begin on", "go to", "visits"] {
        browser.click("[data-do=hint]");
        browser.wait(&format!(
            "document.querySelector('.hint')?.textContent.includes('{words}')"
        ));
    }
    browser.find("circle.hinted");
    browser.end();
}

#[test]
fn a_typed_move_is_played_and_a_wrong_one_is_explained() {
    let Some(browser) = Browser::start() else {
        return;
    };
    browser.open_table("game=paco-sako&side=both");
    browser.fill("[name=text]", "e2 e5\u{e007}");
    let said = browser.text(".said:not(:empty)");
    assert!(said.contains("cannot be placed on e5"), "{said}");
    browser.fill("[name=text]", "e2 e4\u{e007}");
    browser.find("[data-play][data-at='2']");
    // A piece dragged to a wrong square is explained in the same words.
    browser.drag(12, 44);
    let said = browser.text(".said:not(:empty)");
    assert!(said.contains("e7") && said.contains("e3"), "{said}");
    browser.end();
}

#[test]
fn the_size_of_a_board_is_chosen_on_the_page() {
    let Some(browser) = Browser::start() else {
        return;
    };
    browser.open_table("game=go:9&side=both");
    browser.wait("document.querySelectorAll('[data-board] [data-cell]').length === 81");
    browser.script(
        "const size = document.querySelector('[name=size]'); size.value = '13'; \
         size.dispatchEvent(new Event('change'))",
    );
    browser.wait("document.querySelector('[data-at=\"0\"]') && document.querySelectorAll('[data-board] [data-cell]').length === 169");
    browser.end();
}

#[test]
fn a_finger_chooses_a_small_crossing_and_plays_it_by_a_second_tap() {
    let Some(browser) = Browser::start() else {
        return;
    };
    browser.set_width(360);
    browser.open_table("game=go:19&side=both");
    browser.press(Hand::Touch, &[60]);
    browser.find(".aim");
    assert!(browser.text(".said").contains("d16 is chosen"));
    browser.press(Hand::Touch, &[61]);
    browser.wait("document.querySelector('.said').textContent.startsWith('e16')");
    browser.press(Hand::Touch, &[61]);
    browser.find("[data-play][data-at='1']");
    browser.find("[data-cell='61'] .piece");
    browser.wait(
        "!document.querySelector('.aim') && document.querySelectorAll('.board-slot .piece').length === 1",
    );
    // A mouse does not miss.
    browser.press(Hand::Click, &[60]);
    browser.find("[data-play][data-at='2']");
    browser.end();
}

#[test]
fn the_page_fits_into_every_width() {
    let Some(browser) = Browser::start() else {
        return;
    };
    for game in games::registry::NAMES.iter().chain(&["go:19"]) {
        browser.open_table(&format!("game={game}&side=both"));
        browser.fits(&[360, 900, 1600]);
    }
    browser.end();
}
