//! The folder of a run that the archive of a release wrote: every later build reads its games, asks its network, and continues its
//! training. Nothing else tests the parts of a folder together; each part has golden folders in its own crate.
//!
//! A new one is the folder of a small, stopped run of Connect Four (`minuet up --game connect-four --for 3s`), with its newest
//! checkpoint alone.

use test_support::{all_golden, copy_folder};

use crate::support::{
    program::{minuet, printed, printed_json},
    run::Run,
};

#[test]
fn runs_of_every_release_are_read_queried_and_continued() {
    for golden in all_golden(env!("CARGO_MANIFEST_DIR"), "run") {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        copy_folder(&golden, &run);
        let archive = folder.path().join("games.minuet");
        printed(minuet("games export").arg(&archive).arg("--run").arg(&run));
        printed(minuet("query").arg(&run));
        let report = printed_json(minuet("doctor --json --run").arg(&run));
        let checks = report["checks"].as_array().unwrap();
        let checkpoint = checks.iter().find(|check| check["name"] == "checkpoint").unwrap();
        let text = checkpoint["text"].as_str().unwrap();
        let step = text.split("step ").nth(1).and_then(|rest| rest.split(',').next());
        let step: u64 = step.unwrap().parse().unwrap();

        let mut continued = Run::of_game("connect-four", &run, &["learner.checkpoint_steps=5"]);
        let ids = continued.game_ids();
        assert!(ids.len() >= 100, "{}: {} games", golden.display(), ids.len());
        continued.wait_for("checkpoint", |event| event["step"].as_u64() > Some(step));
        continued.stop();
    }
}
