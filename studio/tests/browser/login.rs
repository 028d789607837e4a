//! A person on another machine signs in, over TLS.

use std::{fs, net::Ipv4Addr};

use launcher::run::folder::RunFolder;
use serde_json::Value;
use studio::run::Run;

use crate::{accessible, browser::Browser};

const TOKEN: &str = "viewer-0123456789";

#[test]
fn a_person_signs_in_over_tls_and_the_cookie_is_kept_from_scripts_and_plaintext() {
    let folder = tempfile::tempdir().unwrap();
    let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    fs::write(folder.path().join("cert.pem"), own.cert.pem()).unwrap();
    fs::write(folder.path().join("key.pem"), own.signing_key.serialize_pem()).unwrap();
    fs::write(folder.path().join("tokens"), format!("viewer sample {TOKEN}\n")).unwrap();
    let settings = [
        "security.certificate=cert.pem",
        "security.key=key.pem",
        "security.tokens=tokens",
    ];
    let settings = settings.map(|setting| setting.parse().unwrap());
    drop(RunFolder::open(folder.path(), Some("connect-four"), &settings).unwrap());
    let run = Run::open(folder.path()).unwrap();
    let Some(browser) = Browser::at(Ipv4Addr::UNSPECIFIED, Some(run)) else {
        return;
    };
    browser.open("/compare?by=time");
    browser.find(".login");
    if let Some(axe) = accessible::axe() {
        accessible::check(&browser, &axe, "the form");
    }
    // No script is needed.
    browser.set_scripts(false);
    browser.fill("[name=token]", "stranger-0123456789\u{e007}");
    browser.wait("document.querySelector('#reason')?.textContent === 'The token is not known here.'");
    browser.fill("[name=token]", &format!("{TOKEN}\u{e007}"));
    browser.wait("document.querySelector('h1')?.textContent === 'Compare runs'");
    assert_eq!(
        browser.script("return location.pathname + location.search"),
        "/compare?by=time"
    );
    browser.set_scripts(true);
    assert_eq!(browser.script("return document.cookie"), "");
    let cookies = browser.cookies();
    let [cookie] = cookies.as_array().unwrap().as_slice() else {
        panic!("{cookies}")
    };
    assert!(
        cookie["name"].as_str().unwrap().starts_with("__Host-minuet-"),
        "{cookie}"
    );
    for (key, value) in [
        ("httpOnly", Value::from(true)),
        ("secure", true.into()),
        ("sameSite", "Strict".into()),
    ] {
        assert_eq!(cookie[key], value, "{cookie}");
    }
    // The stream of the overview is open, and the token may not play.
    browser.open("/");
    browser.wait("!document.documentElement.classList.contains('lost')");
    browser.open("/play");
    browser.wait("document.querySelector('main').textContent.includes('it needs the right')");
    browser.end();
}
