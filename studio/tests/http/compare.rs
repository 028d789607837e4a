//! Comparison of runs.

use std::{fs, os::unix::fs::symlink, path::Path};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;

use crate::site::{Site, new_run};

/// Moment of the first figures, in milliseconds since the Unix epoch.
const BEGIN: u64 = 1_795_255_200_000;

/// Writes figures of a run that stores `games` games and evaluates `rate` positions in each second, and trains to the steps 10 and 20
/// after 15 and 25 seconds.
fn train(folder: &Path, games: u64, rate: f64, losses: [f64; 2]) {
    let line = |second: u64| {
        json!({
            "event": "summary", "at_ms": BEGIN + 1_000 * second, "after_seconds": second,
            "inference": { "positions_per_second": rate }, "replay": { "games_inserted": games * second },
        })
    };
    let lines: Vec<String> = [0, 10, 20, 30].map(|second| line(second).to_string()).into();
    fs::create_dir_all(folder.join("up")).unwrap();
    fs::write(folder.join("up/metrics.jsonl"), lines.join("\n") + "\n").unwrap();
    let step = |step: u64, second: u64, loss: f64| {
        json!({
            "time_ms": BEGIN + 1_000 * second, "step": step, "steps": 10, "policy_loss": 2.0, "value_loss": loss, "target_entropy": 1.5,
        })
    };
    let lines = [step(10, 15, losses[0]), step(20, 25, losses[1])].map(|line| line.to_string());
    fs::create_dir_all(folder.join("learner")).unwrap();
    fs::write(folder.join("learner/metrics.jsonl"), lines.join("\n") + "\n").unwrap();
}

/// Site of the run `one` with the runs `two` and `other` in the same folder, and a folder that is not a run.
async fn site() -> Site {
    let parent = tempfile::tempdir().unwrap();
    new_run(&parent.path().join("one"), "connect-four", &[]);
    new_run(
        &parent.path().join("two"),
        "connect-four",
        &["search.visits=77", "model.blocks=2"],
    );
    new_run(&parent.path().join("other"), "othello", &[]);
    fs::create_dir(parent.path().join("notes")).unwrap();
    train(&parent.path().join("one"), 2, 100.0, [0.8, 0.6]);
    train(&parent.path().join("two"), 4, 300.0, [0.9, 0.5]);
    let run = parent.path().join("one");
    Site::within(parent, &run).await
}

#[tokio::test]
async fn curves_are_aligned_by_each_axis() {
    let site = site().await;
    // Each run has trained to the steps 10 and 20 after 15 and 25 seconds.
    for (by, across, one, two) in [
        ("step", "step", [10.0, 20.0], [10.0, 20.0]),
        ("time", "minutes at work", [0.25, 0.42], [0.25, 0.42]),
        ("games", "games", [30.0, 50.0], [60.0, 100.0]),
        (
            "evaluations",
            "evaluations by the network",
            [1_500.0, 2_500.0],
            [4_500.0, 7_500.0],
        ),
    ] {
        let page = site.get(&format!("/compare?by={by}")).await;
        assert_eq!(page.status, 200, "{}", page.body);
        let described = page
            .body
            .split("aria-label=\"Value loss in training. ")
            .nth(1)
            .unwrap();
        let described = described.split(".\"").next().unwrap();
        let curves: Vec<&str> = described.split("; ").collect();
        let wanted = [
            format!("one: 0.800 at {across} {}, 0.600 at {}", one[0], one[1]),
            format!("two: 0.900 at {across} {}, 0.500 at {}", two[0], two[1]),
        ];
        assert_eq!(curves, wanted, "{by}");
    }
    let page = site.get("/compare").await.body;
    assert!(page.contains("One run of another game is left out."), "{page}");
    assert!(
        page.contains("<option value=\"two\" selected>two</option>"),
        "{page}"
    );
    // Totals: 30 seconds of work at 300 evaluations in each second.
    assert!(page.contains("<td>9,000</td>"), "{page}");
    assert_eq!(site.get("/compare?by=colour").await.status, 400);
}

#[tokio::test]
async fn only_settings_that_differ_are_listed() {
    let site = site().await;
    let page = site.get("/compare").await.body;
    let differ = page.split("id=\"settings\"").nth(1).unwrap();
    for (key, [one, two]) in [("search.visits", ["16", "77"]), ("model.blocks", ["4", "2"])] {
        let row = differ.split(&format!("/config#{key}\"")).nth(1).unwrap();
        let row = row.split("</tr>").next().unwrap();
        for value in [one, two] {
            assert!(row.contains(&format!("<code>{value}</code>")), "{row}");
        }
    }
    assert_eq!(differ.matches("/config#").count(), 2, "{differ}");
}

#[tokio::test]
async fn a_run_is_chosen_by_its_name_and_other_folders_are_not_read() {
    let site = site().await;
    let alone = site.get("/compare?first=&second=&third=").await.body;
    assert!(alone.contains("There is nothing to compare with."), "{alone}");
    for name in ["other", "notes", "..%2Fone", "missing"] {
        let page = site.get(&format!("/compare?first={name}")).await;
        assert_eq!(page.status, 404, "{name}");
    }
    let two = site.folder().join("two/run.toml");
    fs::write(&two, "[search]\nvisit = 1\n").unwrap();
    let page = site.get("/compare").await;
    assert_eq!(page.status, 200);
    for text in [
        "There is no other run of connect-four",
        "did you mean `search.visits`?",
    ] {
        assert!(page.body.contains(text), "{text} in {}", page.body);
    }
}

/// Another account may have made the folders next to a run.
#[tokio::test]
async fn links_and_pipes_of_a_neighbour_are_not_followed() {
    let site = site().await;
    let at = |path: &str| site.folder().join(path);
    let secret = at("secret");
    fs::create_dir(&secret).unwrap();
    fs::write(secret.join("shadow"), "root:$6$salt$hash:19000:0:99999:7:::\n").unwrap();
    train(&secret, 9, 999.0, [0.111, 0.222]);
    for folder in ["link", "pipe", "text", "large"] {
        fs::create_dir(at(folder)).unwrap();
    }
    symlink(secret.join("shadow"), at("link/run.toml")).unwrap();
    mknodat(CWD, at("pipe/run.toml"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    fs::copy(secret.join("shadow"), at("text/run.toml")).unwrap();
    fs::File::create(at("large/run.toml"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    symlink(at("two"), at("linked-run")).unwrap();
    // The figures of a run that can be compared are links and a pipe too.
    for folder in ["up", "learner"] {
        fs::remove_dir_all(at("two").join(folder)).unwrap();
    }
    symlink(secret.join("learner"), at("two/learner")).unwrap();
    fs::create_dir(at("two/up")).unwrap();
    symlink(secret.join("up/metrics.jsonl"), at("two/up/metrics.jsonl")).unwrap();
    fs::create_dir(at("two/rating")).unwrap();
    mknodat(CWD, at("two/rating/metrics.jsonl"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let page = site.get("/compare").await;
    assert_eq!(page.status, 200, "{}", page.body);
    for (name, reason) in [
        ("link", "its run.toml is a link, which is not followed"),
        ("pipe", "its run.toml cannot be read: it is not a regular file"),
        ("text", "TOML parse error at line 1, column "),
        ("large", "its run.toml cannot be read: it is larger than 1 MiB"),
    ] {
        let said = format!("The run <code>{name}</code> cannot be used: {reason}");
        assert!(page.body.contains(&said), "{said} in {}", page.body);
    }
    for text in ["root", "$6$", "linked-run", "0.111", "0.222"] {
        assert!(!page.body.contains(text), "{text} in {}", page.body);
    }
}
