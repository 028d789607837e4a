//! The page of settings.

use std::fs;

use crate::site::Site;

/// Words of a text: without marks around what is typed, without elements of HTML and their escapes.
fn words(text: &str) -> String {
    let mut plain = String::new();
    for part in text.split('<') {
        plain.push_str(part.split_once('>').map_or(part, |(_, after)| after));
    }
    let plain = [("&quot;", "\""), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")]
        .iter()
        .fold(plain, |plain, (escape, letter)| plain.replace(escape, letter));
    let plain = plain.replace(['`', '\''], "");
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The file is the truth: each of its keys is on the page, with its value and with the words above it.
#[tokio::test]
async fn every_key_of_the_file_is_listed_with_its_documentation() {
    for game in ["connect-four", "paco-sako", "generator"] {
        let site = Site::of_new(game, &[]).await;
        let page = site.get("/config").await;
        assert_eq!(page.status, 200);
        let text = fs::read_to_string(site.folder().join("run.toml")).unwrap();
        let mut section = String::new();
        let mut comment = String::new();
        let (mut keys, mut rules) = (0, 0);
        for line in text.lines() {
            if let Some(line) = line.strip_prefix("# ") {
                comment += &format!("{line}\n");
                continue;
            }
            let comment = std::mem::take(&mut comment);
            let comment = comment.replace('<', "&lt;").replace('>', "&gt;");
            if let Some(name) = line.strip_prefix('[') {
                section = name.trim_end_matches(']').to_owned();
            } else if let Some((key, value)) = line.split_once(" = ") {
                let begin = format!("id=\"{section}.{key}\"");
                let row = page.body.split(&begin).nth(1);
                let row = row.unwrap_or_else(|| panic!("{begin}"));
                let (row, rest) = row.split_once("<p class=\"documentation\">").unwrap();
                let escaped = value.replace('"', "&quot;");
                assert!(
                    row.contains(&format!("<code>{escaped}</code>")),
                    "{value} in {row}"
                );
                let documentation = rest.split("</p>").next().unwrap();
                assert_eq!(words(documentation), words(&comment), "{game}: {section}.{key}");
                keys += 1;
                rules += usize::from(section == "game.rules");
            }
        }
        assert!(keys > 80, "{keys} keys");
        assert_eq!(rules > 0, game != "connect-four", "{game}: {rules} rules");
        assert!(page.body.contains("No setting differs"), "{}", page.body);
    }
}

#[tokio::test]
async fn settings_that_differ_from_a_new_run_of_the_game_come_first_with_a_command() {
    let settings = ["search.visits=77", "replay.archive=s3://games/old ones"];
    let site = Site::of_new("connect-four", &settings).await;
    let page = site.get("/config").await.body;
    let (different, rest) = page.split_once("<nav class=\"jump\"").unwrap();
    for text in [
        "<code>77</code>",
        "<code>&quot;s3://games/old ones&quot;</code>",
        "minuet up --game connect-four --run runs/another --set search.visits=77 --set 'replay.archive=&quot;s3://games/old ones&quot;'",
    ] {
        assert!(different.contains(text), "{text} in {different}");
    }
    // Settings of the game itself do not differ, though they are not the usual ones of all games.
    assert_eq!(different.matches("<tr>").count(), 3, "{different}");
    assert_eq!(rest.matches("class=\"setting different\"").count(), 2);
    let search = rest.split("id=\"search\"").nth(1).unwrap();
    let first = search.split("class=\"setting").nth(1).unwrap();
    assert!(first.contains("id=\"search.visits\""), "{first}");
    assert!(first.contains("data-copy=\"--set search.visits=77\""), "{first}");
    let blocks = rest.split("id=\"model.blocks\"").nth(1).unwrap();
    assert!(
        blocks
            .split("class=\"setting\"")
            .next()
            .unwrap()
            .contains("fixed at start")
    );
    let visits = first.split("class=\"documentation\"").next().unwrap();
    assert!(!visits.contains("fixed at start"), "{visits}");
}

#[tokio::test]
async fn a_file_that_was_broken_since_the_start_is_explained() {
    let site = Site::new().await;
    fs::write(site.folder().join("run.toml"), "[search]\nvisit = 3\n").unwrap();
    let page = site.get("/config").await;
    assert_eq!(page.status, 200);
    assert!(
        page.body.contains("did you mean `search.visits`?"),
        "{}",
        page.body
    );
}
