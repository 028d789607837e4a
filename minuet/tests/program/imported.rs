//! Games that others played: imported into a run without self-play, trained on, and continued by self-play.

use std::{fmt::Write as _, fs};

use games::{Action, Game as _, Outcome, Player, connect_four::ConnectFour};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::json;

use crate::support::{
    program::{done, minuet, printed, printed_json},
    run::{Run, tiny_run},
};

/// Games of a player who chooses at random, one a line.
fn random_games(count: u64) -> String {
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let mut text = String::new();
    for number in 0..count {
        let (mut state, mut played) = (ConnectFour::start(&Default::default(), None).unwrap(), Vec::new());
        while state.outcome().is_none() {
            let mut legal: Vec<Action> = Vec::new();
            state.legal_actions(&mut legal);
            let action = legal[random.random_range(0..legal.len())];
            state.play(action).unwrap();
            played.push(action);
        }
        let result = match state.outcome() {
            Some(Outcome::Won(Player::First)) => "first",
            Some(Outcome::Won(Player::Second)) => "second",
            _ => "draw",
        };
        let ratings = [1500 + number, 1500];
        writeln!(
            text,
            "{}",
            json!({"actions": played, "result": result, "ratings": ratings})
        )
        .unwrap();
    }
    text
}

#[test]
fn imported_games_are_trained_on_alone_and_self_play_continues_from_them() {
    const GAMES: u64 = 60;

    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().join("run");
    let file = folder.path().join("people.jsonl");
    let faults = r#"
        {"actions":[0,1,2],"result":"second"}
        {"actions":[0,0,0,0,0,0,0],"result":"first"}
        {"actions":[0,1,2]}
        {"actions":[0,1,0,1,0,1,0],"result":"second"}
        {"actions":[0,1"#;
    fs::write(&file, random_games(GAMES) + faults).unwrap();
    let without = ["--game", "connect-four", "--actors", "0"];
    let mut run = Run::with_arguments(&without, &here, &tiny_run(), &[]);
    let started = run.wait_for("started", |_| true);
    assert!(!started.to_string().contains("actor-1"), "{started}");
    run.wait_for("summary", |event| {
        event["limit"].as_str().unwrap().contains("learner.min_positions")
    });

    // The run takes them while it is at work. Others are left out, and told.
    let import = |more: &str| {
        let mut command = minuet("games import --run");
        command.arg(&here).arg(&file).args(more.split_whitespace());
        command
    };
    let taken = printed_json(&mut import("--json"));
    assert_eq!(
        (&taken["stored"], &taken["refused"]),
        (&json!(GAMES + 1), &json!(0)),
        "{taken}"
    );
    let left_out = &taken["left_out"];
    for (reason, count) in [
        ("illegal", 1),
        ("no_result", 1),
        ("contradiction", 1),
        ("unreadable", 1),
    ] {
        assert_eq!(left_out[reason], count, "{taken}");
    }
    let example = left_out["examples"][0].as_str().unwrap();
    assert!(
        example.starts_with("people.jsonl, game 62: move 7 (0): "),
        "{example}"
    );
    // Again, and with another selection: each game is stored once.
    let again = printed(&mut import("--min-rating 1530"));
    assert!(again.contains("0 games stored, 0 already present"), "{again}");
    let again = printed(&mut import(""));
    assert!(
        again.contains("0 games stored, 61 already present, 0 refused\nleft out: 1 without a result, 1 with"),
        "{again}"
    );

    // The learner trains until each position was used as often as the settings say.
    let trained = run.wait_for("checkpoint", |event| event["step"].as_u64() >= Some(5));
    run.wait_for("summary", |event| {
        event["actor"]["off"] == true && event["limit"].as_str().unwrap().contains("are used up")
    });
    let checked = printed(minuet("games check --newest 100 --run").arg(&here));
    assert!(checked.contains("61 games: 61 replayed"), "{checked}");
    run.stop();

    // Self-play continues from this network.
    let mut second = Run::with_arguments(&[], &here, &tiny_run(), &[]);
    let is_trained = |version: &String| !version.starts_with("000000000000");
    second.wait_for_game(|game| game.actor == "actor-1" && game.model_versions.iter().any(is_trained));
    let step = trained["step"].as_u64();
    second.wait_for("checkpoint", |event| event["step"].as_u64() > step);
    second.stop();
}

#[test]
fn files_that_cannot_be_imported_are_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().join("run");
    fs::create_dir(&here).unwrap();
    fs::write(
        here.join("run.toml"),
        printed(&mut minuet("config --game connect-four")),
    )
    .unwrap();
    let refused = |file: &str, options: &str, expected: &str| {
        let path = folder.path().join(file);
        fs::write(&path, "1. e4 1-0").unwrap();
        let mut command = minuet(&format!("games import {options} --run"));
        let done = done(command.arg(&here).arg(&path));
        assert_ne!(done.code, Some(0), "{}", done.out);
        assert!(done.error.contains(expected), "{}", done.error);
    };
    refused("a.pgn", "", "connect-four has no such files");
    refused("a.minuet", "--player Ann", "archives have no names of players");
    refused("a.txt", "", "not an archive of games");
}
