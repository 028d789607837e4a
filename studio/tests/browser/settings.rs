//! The page of settings: what is copied, and that it fits.

use launcher::run::folder::RunFolder;
use studio::run::Run;

use crate::browser::Browser;

#[test]
fn a_setting_is_copied_and_the_page_fits_into_every_width() {
    let folder = tempfile::tempdir().unwrap();
    let settings: [config::Override; 2] = [
        "search.visits=77".parse().unwrap(),
        "actor.name=the first".parse().unwrap(),
    ];
    drop(RunFolder::open(folder.path(), Some("chess"), &settings).unwrap());
    let Some(browser) = Browser::of(Some(Run::open(folder.path()).unwrap())) else {
        return;
    };
    browser.allow_clipboard();
    browser.open("/config");
    browser.find("#search\\.visits");
    browser.fits(&[360, 900, 1600, 3840]);
    browser.click("#actor\\.name button");
    browser.wait("document.querySelector('#actor\\\\.name button').textContent.startsWith('Copied')");
    browser.script("navigator.clipboard.readText().then(text => (window.copied = text))");
    browser.wait("window.copied === `--set 'actor.name=\"the first\"'`");
    browser.end();
}
