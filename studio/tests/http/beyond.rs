//! The studio beyond this machine: what it demands, and what a token allows.

use std::{fs, net::Ipv4Addr, path::Path};

use config::SecurityConfig;
use serde_json::json;
use studio::security::door::Door;
use tokio::io::AsyncReadExt as _;

use crate::{
    site::{Reply, Site, location, new_run},
    stored,
};

/// Tokens of people with different rights.
const VIEWER: &str = "viewer-0123456789";
const PLAYER: &str = "player-0123456789";
const OWNER: &str = "owner-0123456789";
const STRANGER: &str = "stranger-0123456789";

fn write_tokens(folder: &Path, lines: &str) {
    let fresh = folder.join("fresh");
    fs::write(&fresh, lines).unwrap();
    durable::rename(&fresh, folder.join("tokens")).unwrap();
}

/// A run in plaintext that three people may see or play.
async fn run() -> Site {
    let folder = tempfile::tempdir().unwrap();
    let settings = ["security.tokens=tokens", "security.plaintext=anywhere"];
    new_run(folder.path(), "connect-four", &settings);
    let lines = format!("viewer sample {VIEWER}\nplayer evaluate {PLAYER}\nowner administer {OWNER}\n");
    write_tokens(folder.path(), &lines);
    stored::run(folder.path()).await;
    Site::at(Ipv4Addr::UNSPECIFIED, folder).await
}

/// Posts a token, and returns the header with its cookie.
async fn sign_in(site: &Site, token: &str) -> String {
    let reply = site.submit("/login", &format!("token={token}&to=/")).await;
    assert_eq!(reply.status, 303, "{}", reply.body);
    let line = reply
        .head
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "));
    let pair = line.unwrap().split(';').next().unwrap();
    format!("Cookie: {pair}")
}

async fn get(site: &Site, path: &str, cookie: &str) -> Reply {
    site.send(&format!("GET {path} HTTP/1.1\nHost: {}\n{cookie}", site.address))
        .await
}

#[test]
fn beyond_this_machine_a_certificate_and_always_tokens_are_demanded() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    fs::write(&tokens, format!("viewer sample {VIEWER}\n")).unwrap();
    let at = |address: &str, security: &SecurityConfig| {
        Door::at(address.parse().unwrap(), security, &[])
            .map(drop)
            .map_err(|error| error.to_string())
    };
    let with_tokens = SecurityConfig {
        tokens: tokens.clone(),
        ..SecurityConfig::default()
    };
    let open = SecurityConfig {
        plaintext: config::Plaintext::Anywhere,
        ..SecurityConfig::default()
    };
    for address in ["0.0.0.0:7070", "192.0.2.7:7070", "[::]:7070"] {
        for refused in [&SecurityConfig::default(), &with_tokens] {
            let error = at(address, refused).unwrap_err();
            assert!(error.contains("without security.certificate"), "{error}");
        }
        let error = at(address, &open).unwrap_err();
        assert!(error.contains("without security.tokens"), "{error}");
        let both = SecurityConfig {
            tokens: tokens.clone(),
            ..open.clone()
        };
        at(address, &both).unwrap();
    }
    for address in ["127.0.0.1:7070", "[::1]:7070", "[::ffff:127.0.0.1]:7070"] {
        at(address, &SecurityConfig::default()).unwrap();
    }
}

#[tokio::test]
async fn without_a_token_nothing_of_the_run_is_shown() {
    let site = run().await;
    for path in [
        "/",
        "/live",
        "/games",
        "/learn",
        "/matches",
        "/report",
        "/play",
        "/play/tables/1/events",
    ] {
        for cookie in [
            "",
            "Cookie: minuet=1",
            &format!("Cookie: minuet-{}={VIEWER}", site.address.port()),
        ] {
            let reply = get(&site, path, cookie).await;
            assert_eq!(reply.status, 401, "{path} {cookie}");
            assert!(
                reply.body.contains("Sign in") && !reply.body.contains("href=\"/games"),
                "{path}: {}",
                reply.body
            );
        }
    }
    let game = json!({ "game": "chess" });
    assert_eq!(site.post("/play/tables", &game).await.status, 401);
    // A probe has no token, and the form needs its style.
    assert_eq!(site.get("/healthz").await.status, 200);
    let form = site.get("/").await.body;
    let style = form.split('"').find(|text| text.ends_with("/style.css")).unwrap();
    assert_eq!(site.get(style).await.status, 200);
}

#[tokio::test]
async fn a_token_is_posted_once_and_its_cookie_stands_for_it() {
    let site = run().await;
    let login = async |token: &str| {
        let fields = format!("token={token}&to=/games?sort=longest%26model=a");
        site.submit("/login", &fields).await
    };
    let reply = login(VIEWER).await;
    assert_eq!(location(&reply), "/games?sort=longest&model=a");
    let cookie = reply
        .head
        .lines()
        .find(|line| line.starts_with("set-cookie: "))
        .unwrap();
    let mut attributes = cookie["set-cookie: ".len()..].split("; ");
    let pair = attributes.next().unwrap();
    let attributes: Vec<&str> = attributes.collect();
    assert_eq!(attributes, ["path=/", "httponly", "samesite=strict"]);
    let (name, value) = pair.split_once('=').unwrap();
    assert_eq!(name, format!("minuet-{}", site.address.port()));
    assert!(value.len() == 64 && !cookie.contains(VIEWER), "{cookie}");
    assert_eq!(
        get(&site, "/", &format!("Cookie: other=1; {pair}")).await.status,
        200
    );
    let again = sign_in(&site, VIEWER).await;
    assert_ne!(again, format!("Cookie: {pair}"));

    for wrong in [STRANGER, "", &"0".repeat(64)] {
        let reply = login(wrong).await;
        assert_eq!(reply.status, 401, "{}", reply.body);
        for part in [
            "The token is not known here.",
            "name=\"to\" value=\"/games?sort=longest&amp;model=a\"",
        ] {
            assert!(reply.body.contains(part), "{part} in {}", reply.body);
        }
        assert!(!reply.head.contains("set-cookie"), "{}", reply.head);
    }
    let foreign = format!(
        "POST /login HTTP/1.1\nHost: {}\nSec-Fetch-Site: cross-site\nContent-Length: 0",
        site.address
    );
    assert_eq!(site.send(&foreign).await.status, 403);
}

#[tokio::test]
async fn sample_reads_and_evaluate_plays() {
    let site = run().await;
    let mut seen = Vec::new();
    for token in [VIEWER, PLAYER, OWNER] {
        let cookie = sign_in(&site, token).await;
        let read = get(&site, "/games", &cookie).await.status;
        let board = get(&site, "/play", &cookie).await.status;
        let game = json!({ "game": "connect-four", "side": "both" });
        let game = site.post_as("/play/tables", &cookie, &game).await;
        seen.push((read, board, game.status));
    }
    assert_eq!(seen, [(200, 403, 403), (403, 200, 200), (200, 200, 200)]);
    let cookie = sign_in(&site, VIEWER).await;
    let refused = get(&site, "/play", &cookie).await.body;
    assert!(
        refused.contains("it needs the right <code>evaluate</code>"),
        "{refused}"
    );
}

#[tokio::test]
async fn no_token_is_taken_from_an_address_and_the_form_writes_none_there() {
    let site = run().await;
    let in_address = get(&site, &format!("/?token={OWNER}"), "").await;
    assert_eq!(in_address.status, 401);
    assert!(!in_address.head.contains("set-cookie"), "{}", in_address.head);
    let form = "method=\"post\" action=\"/login\"";
    assert!(in_address.body.contains(form), "{}", in_address.body);
    // A reply that refuses a form does not repeat its token.
    for (fields, status) in [
        (format!("token={STRANGER}&to=/"), 401),
        (format!("token={OWNER}"), 400),
        (format!("token={OWNER}&to=/&more=1"), 400),
    ] {
        let reply = site.submit("/login", &fields).await;
        assert_eq!(reply.status, status, "{fields}");
        assert!(
            !reply.body.contains(STRANGER) && !reply.body.contains(OWNER),
            "{}",
            reply.body
        );
    }
    let json = site.post("/login", &json!({ "token": OWNER, "to": "/" })).await;
    assert_eq!(json.status, 400, "{}", json.body);
}

#[tokio::test]
async fn signing_in_leads_to_the_page_that_was_asked_for() {
    let site = run().await;
    for (path, to) in [
        ("/games?sort=longest", "/games?sort=longest"),
        ("/compare?by=time&first=a%26b", "/compare?by=time&amp;first=a%26b"),
        ("/login", "/"),
    ] {
        let form = get(&site, path, "").await.body;
        assert!(form.contains(&format!("name=\"to\" value=\"{to}\"")), "{form}");
    }
    // A page after a request that changes something cannot be loaded by its address.
    let form = site.submit("/search", "table=none").await;
    assert_eq!(form.status, 401);
    assert!(form.body.contains("name=\"to\" value=\"/\""), "{}", form.body);
    let reply = site
        .submit("/login", &format!("token={VIEWER}&to=//evil.example/"))
        .await;
    assert_eq!(location(&reply), "/");
}

#[tokio::test]
async fn an_open_stream_and_the_session_end_with_their_token() {
    let site = run().await;
    let cookie = sign_in(&site, VIEWER).await;
    let mut stream = site
        .open(&format!(
            "GET /live HTTP/1.1\nHost: {}\nConnection: close\n{cookie}",
            site.address
        ))
        .await;
    let mut status = [0; 12];
    stream.read_exact(&mut status).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
    write_tokens(site.folder(), &format!("owner administer {OWNER}\n"));
    // The file is read again within seconds.
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert_eq!(get(&site, "/", &cookie).await.status, 401);
    let owner = sign_in(&site, OWNER).await;
    assert_eq!(get(&site, "/", &owner).await.status, 200);
}

/// Posts to an address as a page of the site does.
async fn post(site: &Site, path: &str, cookie: &str) -> Reply {
    let head = format!(
        "POST {path} HTTP/1.1\nHost: {}\nSec-Fetch-Site: same-origin\nContent-Length: 0\n{cookie}",
        site.address
    );
    site.send(&head).await
}

#[tokio::test]
async fn a_person_signs_out_and_many_sessions_of_one_token_end_no_other() {
    let site = run().await;
    let player = sign_in(&site, PLAYER).await;
    let first = sign_in(&site, VIEWER).await;
    let mut last = String::new();
    for _ in 0..32 {
        last = sign_in(&site, VIEWER).await;
    }
    let mut seen = Vec::new();
    for cookie in [&first, &last] {
        seen.push(get(&site, "/", cookie).await.status);
    }
    assert_eq!(
        (seen, get(&site, "/play", &player).await.status),
        (vec![401, 200], 200)
    );

    let page = get(&site, "/", &last).await.body;
    assert!(
        page.contains("<form class=\"sign-out\" method=\"post\" action=\"/logout\">"),
        "{page}"
    );
    let mut stream = site
        .open(&format!(
            "GET /live HTTP/1.1\nHost: {}\nConnection: close\n{last}",
            site.address
        ))
        .await;
    stream.read_exact(&mut [0; 12]).await.unwrap();
    let reply = post(&site, "/logout", &last).await;
    assert_eq!(location(&reply), "/login");
    assert!(reply.head.contains("max-age=0"), "{}", reply.head);
    // The stream of the session ends with it.
    stream.read_to_end(&mut Vec::new()).await.unwrap();
    assert_eq!(get(&site, "/", &last).await.status, 401);
    assert_eq!(location(&post(&site, "/logout", "").await), "/login");
    assert!(!Site::new().await.get("/").await.body.contains("sign-out"));
}

#[tokio::test]
async fn wrong_tokens_are_slowed_and_streams_of_one_token_are_limited() {
    let site = run().await;
    let viewer = sign_in(&site, VIEWER).await;
    let mut seen = Vec::new();
    for _ in 0..12 {
        let reply = site.submit("/login", &format!("token={STRANGER}&to=/")).await;
        seen.push(reply.status);
    }
    assert_eq!((seen[9], seen[11]), (401, 429), "{seen:?}");
    let right = site.submit("/login", &format!("token={OWNER}&to=/")).await;
    assert!(right.body.contains("try again in"), "{}", right.body);
    let mut streams = Vec::new();
    for number in 0..17 {
        let head = format!("GET /live HTTP/1.1\nHost: {}\n{viewer}", site.address);
        let mut stream = site.open(&head).await;
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.unwrap();
        let expected: &[u8] = if number < 16 {
            b"HTTP/1.1 200"
        } else {
            b"HTTP/1.1 429"
        };
        assert_eq!(status, expected, "{number}");
        streams.push(stream);
    }
}

#[tokio::test]
async fn a_foreign_host_is_refused_beyond_this_machine_too() {
    let site = run().await;
    let cookie = sign_in(&site, OWNER).await;
    let ask = async |host: &str| {
        let head = format!("GET / HTTP/1.1\nHost: {host}\n{cookie}");
        site.send(&head).await.status
    };
    assert_eq!(ask("evil.example").await, 421);
    assert_eq!(ask("192.0.2.7:7070").await, 200);
    assert_eq!(ask("localhost").await, 200);
}

/// All files of a folder with their content.
fn files(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push((path.clone(), fs::read(&path).unwrap())),
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn the_pages_change_nothing_of_a_run() {
    let folder = tempfile::tempdir().unwrap();
    stored::run(folder.path()).await;
    let before = files(folder.path());
    let site = Site::of(folder).await;
    for path in ["/", "/games", "/learn", "/matches", "/report", "/play"] {
        assert_eq!(site.get(path).await.status, 200, "{path}");
    }
    let game = json!({ "game": "connect-four", "side": "both" });
    assert_eq!(site.post("/play/tables", &game).await.status, 200);
    let names = |files: &[(std::path::PathBuf, Vec<u8>)]| {
        files.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>()
    };
    let after = files(site.folder());
    assert_eq!(names(&after), names(&before));
    assert!(after == before, "a file has changed");
}
