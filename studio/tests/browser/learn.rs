//! The slider over checkpoints.

use studio::run::Run;
use tokio::runtime::Runtime;

use crate::{
    browser::{Browser, key},
    trained,
};

#[test]
fn the_slider_moves_through_the_checkpoints_by_keys_and_the_page_fits() {
    let folder = tempfile::tempdir().unwrap();
    let labels = [("minute-0", 0), ("minute-1", 1), ("minute-8", 2)];
    let versions =
        Runtime::new()
            .unwrap()
            .block_on(trained::run(folder.path(), &[0, 100, 200, 300], &labels));
    let Some(browser) = Browser::of(Some(Run::open(folder.path()).unwrap())) else {
        return;
    };
    browser.open("/learn");
    let named = |name: &str| format!("document.querySelector('.chosen b').textContent === '{name}'");
    browser.wait(&named("step 300 (latest)"));
    browser.wait("document.querySelector('[type=range]').value === '3'");
    // The network's figures and those of the search have come.
    browser
        .wait("[...document.querySelectorAll('.answer td .number')].every(f => f.textContent.includes('%'))");
    browser.wait("document.querySelectorAll('.plot').length === document.querySelectorAll('.probe').length");

    browser.script("document.querySelector('[type=range]').focus()");
    browser.type_key(key::LEFT);
    browser.wait(&named("minute 8, step 200"));
    browser.wait(
        "document.querySelector('[type=range]').getAttribute('aria-valuetext') === 'minute 8, step 200'",
    );
    browser.type_key(key::LEFT);
    browser.type_key(key::LEFT);
    browser.wait(&named("minute 0, step 0"));
    assert_eq!(
        browser.script("return location.search"),
        format!("?at={}", versions[0])
    );
    assert_eq!(browser.script("return document.activeElement.type"), "range");
    browser.click(".milestones a[data-version^='000000000100']");
    browser.wait(&named("minute 1, step 100"));
    browser.wait("document.querySelector('[type=range]').value === '1'");

    // The choice of the figure needs no script of ours.
    let visible = |class: &str| {
        browser.script(&format!(
            "return getComputedStyle(document.querySelector('.{class}')).display !== 'none'"
        ))
    };
    assert_eq!(
        (visible("by-prior"), visible("by-visits")),
        (true.into(), false.into())
    );
    browser.click("[value=visits]");
    assert_eq!(
        (visible("by-prior"), visible("by-visits")),
        (false.into(), true.into())
    );

    browser.fits(&[360, 900, 1600, 3840]);
    browser.end();
}
