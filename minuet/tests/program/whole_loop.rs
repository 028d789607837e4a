//! The whole loop as a user runs it: `minuet up` with real processes and a tiny network.

use std::{collections::BTreeSet, path::Path};

use games::{
    Action, Game,
    generator::{EpisodeEnd, GeneratorGame, Rules},
};
use serde_json::Value;

#[cfg(feature = "s3")]
use crate::support::server;
use crate::support::{
    acknowledged::{self, Acknowledged, Stored},
    metrics,
    program::{done, minuet, printed, printed_json},
    run::{Run, tiny_run},
};

#[test]
fn actors_play_and_the_server_serves_what_the_learner_publishes() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = tiny_run();
    settings.extend([
        "rating.enabled=true",
        "rating.share=1",
        "rating.visits=2",
        "rating.max_games=2",
        "rating.provider=\"cpu\"",
    ]);
    let mut first = Run::start(folder.path(), &settings);
    let started = first.wait_for("started", |event| event["new"] == true);
    assert_eq!(started["game"], "paco-sako");
    let pages = metrics::pages(&started);
    metrics::check_counters_at_the_start(&pages);

    // The untrained network first.
    first.wait_for("serving", |_| true);
    let checkpoint = trained_and_served(&mut first);
    assert!(checkpoint["positions_seen"].as_u64() > Some(0));
    query_the_run(folder.path());
    metrics::wait_until_all_named_are_exported(&pages);
    let before = first.game_ids();
    let kept = first.stop();
    assert!(kept["games"].as_u64().unwrap() >= before.len() as u64);
    assert_eq!(kept["killed"].as_array().unwrap().len(), 0);
    let step_kept = step_of(kept["checkpoint"].as_str().unwrap());

    // A second start continues the run: the same games, later steps.
    let mut second = Run::start(folder.path(), &tiny_run());
    second.wait_for("started", |event| event["new"] == false);
    let next = second.wait_for("checkpoint", |event| event["step"].as_u64() > Some(step_kept));
    assert!(next["positions_seen"].as_u64() > checkpoint["positions_seen"].as_u64());
    let after = second.game_ids();
    assert!(after.is_superset(&before), "a restart has lost games");
    second.stop();
}

/// Every game that was acknowledged to the actor before a kill is in the store, once, with the contents that the actor sent.
#[test]
fn killing_each_role_loses_changes_and_duplicates_no_acknowledged_game() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut settings = tiny_run();
    settings.extend(["replay.held_out=0", "checkpoints.keep=0"]);
    let mut run = Run::with_arguments(&[], folder, &settings, &[acknowledged::LOGGING]);
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
        assert!(missing.is_empty(), "after the kill of {role}: {missing:?}");
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
        assert_eq!(count(manifest, "samples"), batches * BATCH);
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
        let mut command = minuet("games check --json --run");
        command.arg(folder.path()).args(arguments);
        command
    };
    // The first of these games was played with a checkpoint that is no longer among the newest two.
    let stored = Stored::read(folder.path());
    let spread = (0..100).map(|number| number * stored.in_order.len() / 100);
    let id = |place: usize| stored.in_order[place].as_str();
    let ids: Vec<&str> = spread.clone().map(id).collect();
    let models: Vec<&Vec<String>> = spread.map(|place| &stored.versions[place]).collect();
    let versions: BTreeSet<&String> = models.iter().copied().flatten().collect();
    assert!(versions.len() > 2, "{versions:?}");
    let is_across = models.iter().any(|models| models.len() > 1);
    assert!(is_across, "no game is played across checkpoints");
    let lines = printed(check(&ids).arg("--strict"));
    let reproduced = lines.matches("\"outcome\":\"search reproduced\"").count();
    assert_eq!(reproduced, 100, "{lines}");

    // Without a checkpoint, games are not called reproduced.
    let oldest_version = versions.first().unwrap();
    std::fs::remove_dir_all(folder.path().join("checkpoints/versions").join(oldest_version)).unwrap();
    let done = done(&mut check(&ids));
    assert_eq!(done.code, Some(4));
    assert!(done.out.contains("\"outcome\":\"not tried\""), "{}", done.out);
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
    let mut run = Run::with_arguments(&[], folder.path(), &settings, &variables);
    let trained = trained_and_served(&mut run)["step"].as_u64();
    // A killed learner resumes from the checkpoint without waiting for its own lease to expire.
    run.kill("learner");
    run.wait_for("role-exited", |event| event["name"] == "learner");
    run.wait_for("checkpoint", |event| event["step"].as_u64() > trained);
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
    let mut import = minuet("games import --json");
    import.arg(location).arg("--run").arg(folder.path());
    let imported = printed_json(import.envs(server::credentials()));
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
        "rating.share=1",
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
    let step = step_of(promoted["version"].as_str().unwrap());
    wait_until_played(&mut run, step);
    run.stop();
    let lines = std::fs::read_to_string(folder.path().join("rating/metrics.jsonl")).unwrap();
    assert!(lines.contains("\"outcome\":\"promoted\""), "{lines}");
    // The first checkpoint is the first best one.
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(step_of(first["opponent"].as_str().unwrap()), 0, "{lines}");
}

/// The representation of Paco Ŝako that differs most from the usual one: White at the bottom, a plane for the player, and both hints.
#[test]
fn absolute_rows_with_both_hints_are_trained_and_played() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = tiny_run();
    settings.push("game.options=must-lift,must-promote");
    let mut run = Run::of_game("paco-sako", folder.path(), &settings);
    trained_and_served(&mut run);
    query_the_run(folder.path());
    run.stop();
    let written = std::fs::read_to_string(folder.path().join("run.toml")).unwrap();
    assert!(
        written.contains("\noptions = [\"must-lift\", \"must-promote\"]\n"),
        "{written}"
    );
    let checked = printed(minuet("games check --newest 20 --run").arg(folder.path()));
    assert!(checked.contains("0 differ"), "{checked}");
}

#[test]
fn the_generator_game_is_trained_by_the_same_roles() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = tiny_run();
    settings.extend([
        "game.rules.move_limit=6",
        "problems.max_level=3",
        // Some problems have examples, which rows, records and the network hold.
        "game.options=examples",
        "game.rules.tasks=40",
    ]);
    let mut run = Run::of_game("generator", folder.path(), &settings);
    let started = run.wait_for("started", |event| event["game"] == "generator");
    metrics::wait_until_those_of_problems_are_exported(&metrics::pages(&started));
    trained_and_served(&mut run);
    // Records of searched games and of known solutions agree with the rules.
    let checked = printed(minuet("games check --newest 30 --run").arg(folder.path()));
    for part in [
        "0 not tried, 0 differ",
        "replayed: the game was not played by a search (known-solution)",
    ] {
        assert!(checked.contains(part), "{checked}");
    }
    run.stop();
    let problem = r#"{"target":[[0,0],[0,0]]}"#;
    let mut solve = minuet("solve --visits 8 --json --problem");
    let done = done(solve.arg(problem).arg("--model").arg(folder.path()));
    let attempt: Value = serde_json::from_str(&done.out).unwrap();
    // The network is hardly trained, so either result is right; the exit status, the moves and the grid must agree with it.
    let is_solved = attempt["solved"].as_bool().unwrap();
    assert_eq!(done.code, Some(if is_solved { 0 } else { 4 }));
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
    trained_and_served(&mut run);
    run.stop();
    let text = std::fs::read_to_string(folder.path().join("learner/metrics.jsonl")).unwrap();
    let mut lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let line: Value = lines
        .find(|line: &Value| line["steps"].as_u64() > Some(0))
        .unwrap();
    assert!(line["value_loss"].as_f64() > Some(0.0), "{line}");
    // 0 while all games are drawn: wins and losses are then equally likely.
    assert!(line["value_squared_error"].as_f64() >= Some(0.0), "{line}");
    // Searches are repeated with the checkpoints, loaded as the arena loads them.
    let checked = printed(minuet("games check --newest 2 --strict --run").arg(folder.path()));
    assert!(checked.contains("2 searches reproduced"), "{checked}");
}

/// Waits until a network is trained and served, and a game is stored in which it was used. Returns the checkpoint's event.
fn trained_and_served(run: &mut Run) -> Value {
    let checkpoint = run.wait_for("checkpoint", |event| event["step"].as_u64() >= Some(1));
    wait_until_played(run, checkpoint["step"].as_u64().unwrap());
    checkpoint
}

/// Waits until a network of this step or a later one is served, and used in a stored game.
fn wait_until_played(run: &mut Run, step: u64) {
    // Checkpoints come fast in these runs, so the server may load a later one.
    run.wait_for("serving", |event| {
        step_of(event["version"].as_str().unwrap()) >= step
    });
    run.wait_for_game(|game| game.model_versions.iter().any(|version| step_of(version) >= step));
}

/// Checks that `minuet query` finds the run's server by the run's folder.
fn query_the_run(folder: &Path) {
    let mut query = minuet("query --top 3 --json");
    let answer = printed_json(query.arg(folder).arg("e2 e4"));
    let server = answer["server"].as_str().unwrap();
    assert!(server.starts_with("http://127.0.0.1:"), "{answer}");
    let found = [&answer["game"], &answer["to_move"]];
    assert_eq!(found, ["paco-sako", "second"]);
    assert!(answer["value"].as_f64().unwrap().abs() <= 1.0);
    assert_eq!(answer["moves"].as_array().unwrap().len(), 3);
}

/// Returns the training step in a version's name.
fn step_of(version: &str) -> u64 {
    version.split_once('-').unwrap().0.parse().unwrap()
}
