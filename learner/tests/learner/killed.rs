//! Test of a learner that is killed: its later checkpoints are bit for bit those of a run without kills.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    sync::atomic::Ordering,
};

use checkpoints::Repository;
use config::{RunConfig, template};
use test_support::until;

use crate::common::{
    all_parts,
    run::{Place, reaches},
};

/// A learner process, killed when dropped.
struct Process(Child);

impl Process {
    fn start(config: &RunConfig, home: &Path) -> Self {
        let file = home.join("run.toml");
        std::fs::write(&file, template(config)).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_minuet-learner"))
            .arg("--config")
            .arg(file)
            .env("MINUET_LOG", "warn")
            .stdin(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_change_no_bit() {
    const STEPS: u64 = 30;
    let mut ends = Vec::new();
    for kills in [0, 4] {
        let place = Place::new(0).await;
        let (home, state) = (place.home.path(), &place.store);
        let mut config = place.config();
        config.model = all_parts(&config.model);
        config.learner.average_decay = 0.9;
        config.learner.health = String::new();
        config.learner.metrics = String::new();
        let repository = Repository::open(&config.checkpoints.store).unwrap();
        for kill in 1..=kills {
            let _learner = Process::start(&config, home);
            // The store has handed out three batches more than the checkpoint counts, and some of them were trained on.
            state.insert(if kill == 1 { 9 * 16 } else { 6 * 16 });
            reaches(&repository, kill * 6, || ()).await;
            until(|| state.handed_out.lock().last() == Some(&(kill * 6 + 2))).await;
        }
        let inserted = state.inserted.load(Ordering::SeqCst);
        state.insert(STEPS * 16 - inserted);
        let learner = Process::start(&config, home);
        let end = reaches(&repository, STEPS, || ()).await;
        drop(learner);
        assert_eq!(end.draft.step, STEPS);
        let digests: Vec<String> = end.files.values().map(|file| file.sha256.clone()).collect();
        ends.push((end.version, digests));
        assert_eq!(state.handed_out.lock().len() as u64, STEPS + 3 * kills);
    }
    assert_eq!(ends[0], ends[1]);
}
