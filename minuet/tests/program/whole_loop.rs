//! The whole loop as a user runs it: `minuet up` with real processes and a tiny network.

use std::{collections::BTreeSet, path::Path, process::Command};

use games::{
    Action, Game,
    generator::{EpisodeEnd, GeneratorGame, Rules},
};

#[cfg(feature = "s3")]
use crate::support::server;
use crate::support::{
    acknowledged::{self, Acknowledged, Stored},
    metrics,
    run::{Run, tiny_run},
};

#[test]
fn actors_play_and_the_server_serves_what_the_learner_publishes() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = tiny_run();
    settings.extend([
        "rating.enabled=true",
        "rating.visits=2",
        "rating.max_games=2",
        "rating.provider=\"cpu\"",
    ]);
    let mut first = Run::start(folder.path(), &settings);
    let started = first.wait_for("started", |event| event["new"] == true);
    assert_eq!(started["game"], "paco-sako");
    let pages = metrics::pages(&started);
    metrics::check_counters_at_the_start(&pages);

    let untrained = first.wait_for("serving", |_| true)["version"].clone();
    let checkpoint = first.wait_for("checkpoint", |event| event["step"].as_u64() >= Some(1));
    let trained = checkpoint["step"].as_u64().unwrap();
    query_the_run(folder.path());
    assert!(checkpoint["positions_seen"].as_u64().unwrap() > 0);
    // Checkpoints come fast in this run, so the server may serve a later one than this.
    let serving = first.wait_for("serving", |event| step_of(&event["version"]) >= trained);
    assert_ne!(untrained, serving["version"]);
    metrics::wait_until_all_named_are_exported(&pages);
    // A stored game lists the models that evaluated its positions.
    let game = first.wait_for_game(|game| {
        let steps = game
            .model_versions
            .iter()
            .map(|version| step_of(&version.as_str().into()));
        steps.max() >= Some(trained)
    });
    assert!(game.positions > 0);
    let before = first.game_ids();
    let kept = first.stop();
    assert!(kept["games"].as_u64().unwrap() >= before.len() as u64);
    assert_eq!(kept["killed"].as_array().unwrap().len(), 0);
    let step_kept = step_of(&kept["checkpoint"]);

    // A second start continues the run: the same games, later steps.
    let mut second = Run::start(folder.path(), &tiny_run());
    second.wait_for("started", |event| event["new"] == false);
    let next = second.wait_for("checkpoint", |event| event["step"].as_u64() > Some(step_kept));
    assert!(next["positions_seen"].as_u64() > checkpoint["positions_seen"].as_u64());
    let after = second.game_ids();
    assert!(
        after.is_superset(&before),
        "stored games are missing after a restart"
    );
    second.stop();
}

/// Every game that was acknowledged to the actor before a kill is in the store, once, with the contents that the actor sent.
#[test]
fn killing_each_role_loses_changes_and_duplicates_no_acknowledged_game() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut settings = tiny_run();
    settings.extend(["replay.held_out=0", "checkpoints.keep=0"]);
    let mut run = Run::start_with(folder, &settings, &[acknowledged::LOGGING]);
    run.wait_for("checkpoint", |event| event["step"].as_u64() >= Some(1));
    let mut acknowledged = Acknowledged::default();
    let mut step = 0;
    for role in ["actor-1", "inference-server", "learner", "replay-store"] {
        acknowledged.read(folder);
        // The role is killed right after an acknowledgement.
        acknowledged.wait_for_more(folder);
        run.kill(role);
        run.wait_for("role-exited", |event| event["name"] == role);
        acknowledged.read(folder);
        run.wait_for("role-ready", |event| event["name"] == role);
        let stored = run.game_ids();
        let missing = acknowledged.missing(&stored);
        assert!(
            missing.is_empty(),
            "missing after the kill of {role}: {missing:?}"
        );
        // The run continues: new games are stored, and a later checkpoint is published.
        run.wait_for_game(|game| !stored.contains(&game.id.to_vec()));
        let next = run.wait_for("checkpoint", |event| event["step"].as_u64() > Some(step));
        step = next["step"].as_u64().unwrap();
    }
    let kept = run.stop();
    acknowledged.read(folder);
    let stored = Stored::read(folder);
    assert_eq!(acknowledged.missing_in(&stored), BTreeSet::new());
    assert_eq!(stored.damaged, []);
    let kept = kept["games"].as_u64().unwrap();
    assert!((acknowledged.ids.len() as u64..=stored.digests.len() as u64).contains(&kept));
    // Games that were sent again after a kill are not counted again.
    assert_eq!(stored.inserted, stored.trainable);
    check_draws(folder, stored.trainable);
}

/// Checks the counts of the batches that every checkpoint was trained on: a learner that was killed continues with the batch after
/// the last one of its checkpoint.
fn check_draws(folder: &Path, trainable: u64) {
    const BATCH: u64 = 32;
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let repository = checkpoints::Repository::open(folder.join("checkpoints").to_str().unwrap()).unwrap();
    let manifests = runtime.block_on(repository.list()).unwrap();
    let count = |manifest: &checkpoints::Manifest, name: &str| {
        let progress = &manifest.draft.learner_state["progress"];
        progress[name].as_u64().unwrap_or_default()
    };
    let mut continued = 0;
    for manifest in &manifests {
        let (step, batches) = (manifest.draft.step, count(manifest, "next_batch"));
        assert_eq!(batches, step, "{}: one batch for each step", manifest.version);
        assert_eq!(
            count(manifest, "samples"),
            batches * BATCH,
            "{}",
            manifest.version
        );
        assert!(count(manifest, "inserted") <= trainable, "{}", manifest.version);
        let parent = manifest.draft.parent.as_ref();
        let parent = parent.and_then(|parent| manifests.iter().find(|other| other.version == *parent));
        if let Some(parent) = parent {
            assert!(parent.draft.step < step, "{}", manifest.version);
            continued += 1;
        }
    }
    assert!(continued > 3, "checkpoints name their parents");
}

/// Old checkpoints are kept for the games that were played with them, so that every search can be repeated.
#[test]
fn the_searches_of_a_hundred_games_across_checkpoints_are_reproduced() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = tiny_run();
    settings.extend(["checkpoints.keep=2", "checkpoints.keep_for_games=1000"]);
    let mut run = Run::of_game("connect-four", folder.path(), &settings);
    run.wait_for("checkpoint", |event| event["step"].as_u64() >= Some(30));
    run.wait_for_game(|game| game.sequence >= 100);
    // Several checkpoints take turns in the games that are checked, however fast the machine is.
    run.wait_for_games(|games| {
        let spread = (0..100).map(|number| &games[number * games.len() / 100].model_versions);
        let versions: BTreeSet<&String> = spread.clone().flatten().collect();
        versions.len() > 3 && spread.clone().filter(|versions| versions.len() > 1).count() > 3
    });
    run.stop();
    let check = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_minuet"))
            .args(["games", "check", "--json", "--run"])
            .arg(folder.path())
            .args(arguments)
            .output()
            .unwrap()
    };
    // The first of these games was played with a checkpoint that is no longer among the newest two.
    let stored = Stored::read(folder.path());
    let spread = (0..100).map(|number| number * stored.in_order.len() / 100);
    let ids: Vec<&str> = spread
        .clone()
        .map(|place| stored.in_order[place].as_str())
        .collect();
    let models: Vec<&Vec<String>> = spread.map(|place| &stored.versions[place]).collect();
    let versions: BTreeSet<&String> = models.iter().copied().flatten().collect();
    assert!(versions.len() > 2, "{versions:?}");
    assert!(
        models.iter().any(|models| models.len() > 1),
        "no game is played across checkpoints"
    );
    let done = check(&[&["--strict"], &ids[..]].concat());
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let lines = String::from_utf8(done.stdout).unwrap();
    let reproduced = lines.matches("\"outcome\":\"search reproduced\"").count();
    assert_eq!(reproduced, 100, "{lines}");

    // Without a checkpoint, games are not called reproduced.
    let oldest_version = versions.first().unwrap();
    std::fs::remove_dir_all(folder.path().join("checkpoints/versions").join(oldest_version)).unwrap();
    let done = check(&ids);
    assert_eq!(done.status.code(), Some(4));
    let lines = String::from_utf8(done.stdout).unwrap();
    assert!(lines.contains("\"outcome\":\"not tried\""), "{lines}");
}

/// `minuet games` opens the store of a stopped run itself.
#[test]
fn games_of_a_stopped_run_are_listed_shown_exported_and_imported() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run::start(folder.path(), &tiny_run());
    run.wait_for("checkpoint", |event| event["step"].as_u64() >= Some(1));
    let kept = run.stop();
    let minuet = |arguments: &[&str]| {
        let done = Command::new(env!("CARGO_BIN_EXE_minuet"))
            .args(arguments)
            .arg("--run")
            .arg(folder.path())
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    };
    let listed = minuet(&["games", "list", "--limit", "100000", "--json"]);
    let listed: Vec<serde_json::Value> = listed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(listed.len() as u64, kept["games"].as_u64().unwrap());
    let id = listed[0]["id"].as_str().unwrap();
    assert!(minuet(&["games", "show", id]).contains(id));
    let archive = folder.path().join("all.minuet");
    let archive = archive.to_str().unwrap();
    let exported: serde_json::Value =
        serde_json::from_str(&minuet(&["games", "export", archive, "--json"])).unwrap();
    assert_eq!(exported["games"], listed.len());
    let imported: serde_json::Value =
        serde_json::from_str(&minuet(&["games", "import", archive, "--json"])).unwrap();
    assert_eq!(
        (&imported["stored"], &imported["duplicates"]),
        (&0.into(), &listed.len().into())
    );
}

#[cfg(feature = "s3")]
#[test]
fn checkpoints_in_an_object_store_are_trained_and_served() {
    let Some(python) = server::python() else { return };
    let store = server::Server::start(python, &[]);
    let url = format!(
        "checkpoints.store=\"s3://{}/run?endpoint=http://127.0.0.1:{}&allow_http=true\"",
        server::BUCKET,
        store.port
    );
    let games = url
        .replace("checkpoints.store=", "replay.archive=")
        .replace("/run?", "/games?");
    let folder = tempfile::tempdir().unwrap();
    let mut settings = tiny_run();
    // Volumes are sealed after a few games.
    settings.extend([url.as_str(), games.as_str(), "replay.window_positions=1600"]);
    let credentials = server::credentials();
    let variables: Vec<(&str, &str)> = credentials
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let mut run = Run::start_with(folder.path(), &settings, &variables);
    let checkpoint = run.wait_for("checkpoint", |event| event["step"].as_u64() >= Some(1));
    let trained = checkpoint["step"].as_u64().unwrap();
    run.wait_for("serving", |event| step_of(&event["version"]) >= trained);
    // A killed learner resumes from the checkpoint without waiting for its own lease to expire.
    run.kill("learner");
    run.wait_for("role-exited", |event| event["name"] == "learner");
    run.wait_for("checkpoint", |event| event["step"].as_u64() > Some(trained));
    // Sealed volumes of games are archived on the same server, and can be imported from there.
    let location = games.split_once('=').unwrap().1.trim_matches('"');
    let archive_store =
        replay_store::exchange::archive_store::ArchiveStore::open_with(location, server::credentials())
            .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while runtime.block_on(archive_store.list()).unwrap().len() < 3 {
        assert!(std::time::Instant::now() < deadline, "no volume is archived");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    run.stop();
    let imported = Command::new(env!("CARGO_BIN_EXE_minuet"))
        .args(["games", "import", location, "--json", "--run"])
        .arg(folder.path())
        .envs(server::credentials())
        .output()
        .unwrap();
    assert!(
        imported.status.success(),
        "{}",
        String::from_utf8_lossy(&imported.stderr)
    );
    let imported: serde_json::Value = serde_json::from_slice(&imported.stdout).unwrap();
    // Games whose volume has left the store are stored again.
    assert_eq!(imported["refused"], 0, "{imported}");
    let known = imported["duplicates"].as_u64().unwrap();
    assert!(known + imported["stored"].as_u64().unwrap() > 3, "{imported}");
}

#[test]
fn actors_follow_the_best_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = tiny_run();
    settings.extend([
        "actor.model=best",
        "rating.enabled=true",
        "rating.visits=4",
        "rating.max_games=40",
        "rating.provider=\"cpu\"",
        // With this margin almost any checkpoint is promoted.
        "rating.elo0=-900",
        "rating.elo1=-700",
    ]);
    let mut run = Run::of_game("connect-four", folder.path(), &settings);
    // The actors wait until there is a best checkpoint.
    let promoted = run.wait_for("promoted", |event| event["step"].as_u64() > Some(0));
    let step = step_of(&promoted["version"]);
    run.wait_for("serving", |event| step_of(&event["version"]) >= step);
    run.wait_for_game(|game| {
        let mut steps = game
            .model_versions
            .iter()
            .map(|version| step_of(&version.as_str().into()));
        steps.any(|played| played >= step)
    });
    run.stop();
    let lines = std::fs::read_to_string(folder.path().join("rating/metrics.jsonl")).unwrap();
    assert!(lines.contains("\"outcome\":\"promoted\""), "{lines}");
    // The first checkpoint is the first best one.
    let first: serde_json::Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(step_of(&first["opponent"]), 0, "{lines}");
}

#[test]
fn the_generator_game_is_trained_by_the_same_roles() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = tiny_run();
    settings.extend([
        "game.rules.move_limit=6",
        "problems.max_level=3",
        // Some problems have examples, which rows, records and the network hold.
        "game.options=1",
        "game.rules.tasks=40",
    ]);
    let mut run = Run::of_game("generator", folder.path(), &settings);
    let started = run.wait_for("started", |event| event["game"] == "generator");
    metrics::wait_until_those_of_problems_are_exported(&metrics::pages(&started));
    let checkpoint = run.wait_for("checkpoint", |event| event["step"].as_u64() >= Some(1));
    let trained = checkpoint["step"].as_u64().unwrap();
    run.wait_for("serving", |event| step_of(&event["version"]) >= trained);
    run.wait_for_game(|game| {
        let mut steps = game
            .model_versions
            .iter()
            .map(|version| step_of(&version.as_str().into()));
        steps.any(|step| step >= trained)
    });
    let minuet = |arguments: &[&str]| {
        let done = Command::new(env!("CARGO_BIN_EXE_minuet"))
            .args(arguments)
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    };
    let place = folder.path().to_str().unwrap();
    // Records of searched games and of known solutions agree with the rules.
    let checked = minuet(&["games", "check", "--newest", "30", "--run", place]);
    assert!(checked.contains("0 not tried, 0 differ"), "{checked}");
    assert!(
        checked.contains("replayed: the game was not played by a search (known-solution)"),
        "{checked}"
    );
    run.stop();
    let problem = r#"{"target":[[0,0],[0,0]]}"#;
    let done = Command::new(env!("CARGO_BIN_EXE_minuet"))
        .args([
            "solve",
            "--visits",
            "8",
            "--json",
            "--problem",
            problem,
            "--model",
            place,
        ])
        .output()
        .unwrap();
    let attempt: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    // The network is hardly trained, so either result is right; the exit status, the moves and the grid must agree with it.
    let is_solved = attempt["solved"].as_bool().unwrap();
    assert_eq!(done.status.code(), Some(if is_solved { 0 } else { 4 }));
    let mut state = GeneratorGame::start(&Rules::default(), Some(problem)).unwrap();
    let drawn = |state: &GeneratorGame| serde_json::json!(Vec::<Vec<u8>>::from(state.render()));
    let mut drawings = vec![drawn(&state)];
    for step in attempt["moves"].as_array().unwrap() {
        let mut legal = Vec::new();
        state.legal_actions(&mut legal);
        let is_step = |action: &Action| {
            let (imp, action) = GeneratorGame::imp_and_move(*action);
            step[0] == imp && step[1] == action.0
        };
        let action = legal.into_iter().find(is_step);
        state.play(action.expect("a printed move is legal")).unwrap();
        drawings.push(drawn(&state));
    }
    // Without a solution the nearest drawing on the way is printed.
    if is_solved {
        assert_eq!(attempt["render"], drawn(&state));
    } else {
        assert!(drawings.contains(&attempt["render"]));
    }
    assert_eq!(state.end() == Some(EpisodeEnd::Solved), is_solved);
}

/// A network with all optional parts, trained on the store's targets, in a game whose policy is planes.
#[test]
fn a_network_with_every_part_is_trained_and_served() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = tiny_run();
    settings.extend([
        "model.blocks=2",
        "model.global_pooling=2",
        "model.value_head=\"wdl\"",
        "search.max_actions=60",
    ]);
    let mut run = Run::of_game("chess", folder.path(), &settings);
    let checkpoint = run.wait_for("checkpoint", |event| event["step"].as_u64() >= Some(1));
    let trained = checkpoint["step"].as_u64().unwrap();
    run.wait_for("serving", |event| step_of(&event["version"]) >= trained);
    run.wait_for_game(|game| {
        let versions = game.model_versions.iter();
        let mut steps = versions.map(|version| step_of(&version.as_str().into()));
        steps.any(|step| step >= trained)
    });
    run.stop();
    let text = std::fs::read_to_string(folder.path().join("learner/metrics.jsonl")).unwrap();
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let line = lines
        .into_iter()
        .find(|line| line["steps"].as_u64() > Some(0))
        .unwrap();
    assert!(line["value_loss"].as_f64() > Some(0.0), "{line}");
    // 0 while all games are drawn: wins and losses are then equally likely.
    assert!(line["value_squared_error"].as_f64() >= Some(0.0), "{line}");
    // Searches are repeated with the checkpoints, loaded as the arena loads them.
    let done = Command::new(env!("CARGO_BIN_EXE_minuet"))
        .args(["games", "check", "--newest", "2", "--strict", "--run"])
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let checked = String::from_utf8(done.stdout).unwrap();
    assert!(checked.contains("2 searches reproduced"), "{checked}");
}

/// Checks that `minuet query` finds the run's server by the run's folder.
fn query_the_run(folder: &Path) {
    let done = Command::new(env!("CARGO_BIN_EXE_minuet"))
        .arg("query")
        .arg(folder)
        .args(["e2 e4", "--top", "3", "--json"])
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let answer: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(
        answer["server"]
            .as_str()
            .unwrap()
            .starts_with("http://127.0.0.1:"),
        "{answer}"
    );
    assert_eq!(
        (&answer["game"], &answer["to_move"]),
        (&"paco-sako".into(), &"second".into())
    );
    assert!(answer["value"].as_f64().unwrap().abs() <= 1.0);
    assert_eq!(answer["moves"].as_array().unwrap().len(), 3);
}

/// Returns the training step in a version's name.
fn step_of(version: &serde_json::Value) -> u64 {
    let (step, _) = version.as_str().unwrap().split_once('-').unwrap();
    step.parse().unwrap()
}
