//! Test of a learner that is killed: its later checkpoints are bit for bit those of a run without kills.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use checkpoints::{LATEST, Manifest, Repository};
use config::{RunConfig, template};

use crate::common::{
    all_parts,
    run::{TIMEOUT, config, start_store},
    store::State,
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

async fn wait_until(condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting).await.unwrap();
}

async fn reaches(repository: &Repository, step: u64) -> Manifest {
    let reached = async {
        loop {
            match repository.resolve(LATEST).await {
                Ok(manifest) if manifest.draft.step >= step => return manifest,
                Ok(_) | Err(checkpoints::Error::NotFound { .. }) => {}
                Err(error) => panic!("{error}"),
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, reached).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_change_no_bit() {
    const STEPS: u64 = 30;
    let mut ends = Vec::new();
    for kills in [0, 4] {
        let home = tempfile::tempdir().unwrap();
        let state = Arc::new(State::default());
        let (address, _stop) = start_store(&state).await;
        let mut config = config(home.path(), &address);
        config.model = all_parts(&config.model);
        config.learner.average_decay = 0.9;
        config.learner.health = String::new();
        config.learner.metrics = String::new();
        let repository = Repository::open(&config.checkpoints.store).unwrap();
        for kill in 1..=kills {
            let _learner = Process::start(&config, home.path());
            // The store has handed out three batches more than the checkpoint counts, and some of them were trained on.
            state.insert(if kill == 1 { 9 * 16 } else { 6 * 16 });
            reaches(&repository, kill * 6).await;
            wait_until(|| state.handed_out.lock().last() == Some(&(kill * 6 + 2))).await;
        }
        let inserted = state.inserted.load(Ordering::SeqCst);
        state.insert(STEPS * 16 - inserted);
        let learner = Process::start(&config, home.path());
        let end = reaches(&repository, STEPS).await;
        drop(learner);
        assert_eq!(end.draft.step, STEPS);
        let digests: Vec<String> = end.files.values().map(|file| file.sha256.clone()).collect();
        ends.push((end.version, digests));
        assert_eq!(state.handed_out.lock().len() as u64, STEPS + 3 * kills);
    }
    assert_eq!(ends[0], ends[1]);
}
