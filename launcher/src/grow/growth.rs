//! The larger network of a run, as it lies on disk: [`Growth`].

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, ensure};
use checkpoints::{LATEST, Lease, LeaseTimes, MODEL, OPTIMIZER, Repository, Version, WEIGHTS};
use config::Override;
use serde::{Deserialize, Serialize};

use crate::{
    processes::list::ProcessList,
    run::{edit, folder::CONFIG},
};

/// Label of the larger network's newest checkpoint, and the name of its line.
pub(super) const LINE: &str = "grown";
/// Label of the checkpoint in the last match, which protects it from pruning.
pub(super) const CANDIDATE: &str = "grown-candidate";
/// Key that sets how fast the larger network catches up. The run does not take it over.
pub(super) const PACE: &str = "learner.samples_per_position";

/// Folder of the second learner, in the run's folder.
const FOLDER: &str = "learner-grown";
const STATE: &str = "grow.json";

/// The larger network that is in training for a run, if there is one. This process holds its lock, the run's file `grow.lock`.
pub struct Growth {
    /// The run's folder.
    pub run: PathBuf,
    /// Folder of the second learner.
    pub folder: PathBuf,
    /// State, which [`Growth::save`] writes into `grow.json` in the folder.
    pub state: State,
    _lock: File,
}

/// State of a growth.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Settings in which the larger network differs from the run; empty if no larger network is in training.
    pub set: Vec<String>,
    /// Checkpoint that takes over. Once it is saved, the next start completes the takeover.
    #[serde(default)]
    pub candidate: Option<Version>,
}

/// Waits for processes of a killed `minuet grow` in the run's folder `run`, and completes its takeover if that has begun.
pub async fn recover(run: &Path) -> anyhow::Result<()> {
    // A `minuet grow` that is at work holds the lock and completes its takeover itself.
    if run.join(FOLDER).exists()
        && let Ok(growth) = Growth::lock(run).await
        && growth.state.candidate.is_some()
    {
        let completed = growth.complete_takeover().await;
        completed.context("cannot complete the takeover by the larger network")?;
    }
    Ok(())
}

impl Growth {
    /// Takes the lock, and waits until the processes of a killed `minuet grow` have ended.
    pub async fn lock(run: &Path) -> anyhow::Result<Self> {
        let lock = File::create(run.join("grow.lock")).context("cannot write to the run's folder")?;
        let locked = lock.try_lock();
        locked.with_context(|| format!("another `minuet grow` works in {}", run.display()))?;
        let folder = run.join(FOLDER);
        ProcessList::open(&folder).wait_for_left_overs(|_| {}).await;
        let mut state = State::default();
        if folder.join(STATE).exists() {
            let bytes = fs::read(folder.join(STATE))?;
            state = serde_json::from_slice(&bytes).with_context(|| format!("cannot read {STATE}"))?;
        }
        Ok(Self {
            run: run.into(),
            folder,
            state,
            _lock: lock,
        })
    }

    /// Writes the state.
    pub fn save(&self) -> anyhow::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let text = serde_json::to_vec_pretty(&self.state)?;
        durable::write(&self.folder.join(STATE), &text).with_context(|| format!("cannot write {STATE}"))
    }

    /// Lets the run continue with the candidate. Returns the run's newest checkpoint. Each step may be repeated, so that a call after
    /// an interrupted one completes the takeover.
    pub async fn complete_takeover(self) -> anyhow::Result<Version> {
        let candidate = self.state.candidate.as_ref().context("no takeover has begun")?;
        let of_run = self.state.set.iter().filter(|text| !text.starts_with(PACE));
        let settings: Vec<Override> = of_run.map(|text| text.parse()).collect::<Result<_, _>>()?;
        let file = self.run.join(CONFIG);
        let config = config::load(&file)?;
        let repository = Repository::open(&config.checkpoints.store)?;
        // `run.toml` changes last.
        if config::load_with(Some(&file), &settings)?.model != config.model {
            let edited = edit::with_values(&fs::read_to_string(&file)?, &settings)?;
            let (lease, version) = publish(&repository, candidate).await?;
            lease.set_label(&version).await?;
            durable::write(&file, edited.as_bytes()).context("cannot write run.toml")?;
            lease.release().await?;
        }
        let newest = repository.resolve(LATEST).await?;
        self.delete().await?;
        Ok(newest.version)
    }

    /// Deletes the larger network: its line of checkpoints in the model store, and the folder.
    pub async fn delete(mut self) -> anyhow::Result<()> {
        let config = config::load(&self.run.join(CONFIG))?;
        let repository = Repository::open(&config.checkpoints.store)?;
        for line in [CANDIDATE, LINE] {
            repository.remove_line(line).await?;
        }
        // Without settings no larger network is in training, even if a part of the folder is left.
        self.state = State::default();
        self.save()?;
        fs::remove_dir_all(&self.folder).context("cannot remove the second learner's folder")
    }
}

/// Publishes a checkpoint of the larger network on the run's line, unless that has happened. The new checkpoint has the weights and
/// the optimiser state of the larger network and the run's own counts (steps, samples, positions), so that the replay ratio
/// holds and no step number occurs twice. Returns the seized lease: the run's learner publishes nothing more and restarts.
async fn publish(repository: &Repository, candidate: &Version) -> anyhow::Result<(Lease, Version)> {
    let larger = repository.manifest(candidate).await?;
    let mut files = Vec::new();
    for name in [MODEL, WEIGHTS, OPTIMIZER] {
        files.push((name, repository.fetch(&larger, name).await?));
    }
    let lease = repository.seize(LATEST, "grow", LeaseTimes::default()).await?;
    let newest = lease.newest().await?.context("the run has no checkpoint yet")?;
    let of_run = newest.draft;
    if of_run.parent.as_ref() == Some(candidate) {
        return Ok((lease, newest.version));
    }
    let mut draft = larger.draft;
    let mut counts = of_run.learner_state["progress"].clone();
    let is_readable = counts.is_object() && draft.learner_state["progress"].is_object();
    ensure!(is_readable, "the state of a learner cannot be read");
    draft.step = of_run.step + 1;
    draft.positions_seen = of_run.positions_seen;
    draft.games_seen = of_run.games_seen.max(draft.games_seen);
    draft.parent = Some(candidate.clone());
    counts["step"] = draft.step.into();
    counts["precision"] = draft.learner_state["progress"]["precision"].take();
    draft.learner_state["progress"] = counts;
    let version = lease.publish(draft, files).await?;
    Ok((lease, version))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use checkpoints::Draft;
    use serde_json::{Value, json};

    use super::*;

    fn draft(step: u64, learner_state: Value) -> Draft {
        Draft {
            game: "connect-four".into(),
            step,
            positions_seen: step * 10,
            learner_state,
            ..Draft::default()
        }
    }

    fn files(salt: u8) -> Vec<(&'static str, Bytes)> {
        [MODEL, WEIGHTS, OPTIMIZER]
            .map(|name| (name, Bytes::from(vec![salt; 10 + name.len()])))
            .to_vec()
    }

    /// A run, and a larger network in training.
    struct Run {
        folder: tempfile::TempDir,
        store: Repository,
        larger: Version,
    }

    impl Run {
        /// A run with a checkpoint of step 50, and a larger network with a checkpoint of step 700 that takes over.
        async fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path();
            fs::write(path.join(CONFIG), "# mine\n[model]\nblocks = 2\n").unwrap();
            let store = Repository::open(path.join("checkpoints").to_str().unwrap()).unwrap();
            let state = |step: u64, precision: &str| {
                json!({
                    "progress": {"step": step, "samples": 3 * step, "inserted": 17, "precision": precision},
                    "optimizer": {"rule": "adamw", "steps": step},
                    "seed": 1,
                })
            };
            let times = LeaseTimes::default();
            let learner = store.lease(LATEST, "learner", times).await.unwrap();
            let first = draft(50, state(50, "bf16"));
            let first = learner.publish(first, files(1)).await.unwrap();
            learner.set_label(&first).await.unwrap();
            let second = store.lease(LINE, "second learner", times).await.unwrap();
            let larger = draft(700, state(700, "f32"));
            let larger = second.publish(larger, files(2)).await.unwrap();
            second.set_label(&larger).await.unwrap();
            let mut growth = Growth::lock(path).await.unwrap();
            growth.state.set = vec!["model.blocks=6".into(), format!("{PACE}=8")];
            growth.state.candidate = Some(larger.clone());
            growth.save().unwrap();
            Self {
                folder,
                store,
                larger,
            }
        }

        fn config(&self) -> String {
            fs::read_to_string(self.folder.path().join(CONFIG)).unwrap()
        }

        async fn assert_taken_over(&self) {
            assert_eq!(self.config(), "# mine\n[model]\nblocks = 6\n");
            let newest = self.store.newest().await.unwrap().unwrap();
            assert_eq!(self.store.label(LATEST).await.unwrap(), Some(newest.version));
            assert_eq!((newest.draft.step, newest.draft.positions_seen), (51, 500));
            let state = &newest.draft.learner_state;
            assert_eq!(
                state["progress"],
                json!({"step": 51, "samples": 150, "inserted": 17, "precision": "f32"})
            );
            assert_eq!(state["optimizer"]["steps"], 700);
            assert_eq!(self.store.label(LINE).await.unwrap(), None);
            assert!(self.store.manifest(&self.larger).await.is_err());
            assert!(!self.folder.path().join(FOLDER).exists());
        }
    }

    #[tokio::test]
    async fn training_continues_with_the_larger_network_and_the_counts_of_the_run() {
        let run = Run::new().await;
        let times = LeaseTimes::default();
        let learner = run.store.lease(LATEST, "learner", times).await.unwrap();
        recover(run.folder.path()).await.unwrap();
        run.assert_taken_over().await;
        let late = learner.publish(draft(60, Value::Null), files(9)).await;
        assert!(matches!(late, Err(checkpoints::Error::Fenced { .. })), "{late:?}");
        // The takeover has given its lease back, so the next learner need not wait.
        run.store.lease(LATEST, "next", times).await.unwrap();
        let growth = Growth::lock(run.folder.path()).await.unwrap();
        assert_eq!(growth.state, State::default());
    }

    #[tokio::test]
    async fn a_takeover_that_is_killed_after_any_step_is_completed_by_the_next_start() {
        for killed_after in 1..=6 {
            let run = Run::new().await;
            let growth = Growth::lock(run.folder.path()).await.unwrap();
            let seized = run.store.seize(LATEST, "grow", LeaseTimes::default());
            drop(seized.await.unwrap());
            if killed_after >= 2 {
                let (lease, version) = publish(&run.store, &run.larger).await.unwrap();
                if killed_after >= 3 {
                    lease.set_label(&version).await.unwrap();
                }
            }
            if killed_after >= 4 {
                fs::write(growth.run.join(CONFIG), "# mine\n[model]\nblocks = 6\n").unwrap();
            }
            if killed_after >= 5 {
                run.store.remove_line(LINE).await.unwrap();
            }
            if killed_after >= 6 {
                fs::write(growth.folder.join("grow.json"), r#"{"set": []}"#).unwrap();
            }
            drop(growth);
            recover(run.folder.path()).await.unwrap();
            let growth = Growth::lock(run.folder.path()).await.unwrap();
            if growth.folder.exists() {
                growth.delete().await.unwrap();
            }
            run.assert_taken_over().await;
        }
    }

    #[tokio::test]
    async fn a_takeover_whose_settings_cannot_be_written_changes_nothing() {
        let run = Run::new().await;
        let mut growth = Growth::lock(run.folder.path()).await.unwrap();
        growth.state.set = vec!["model.blocks=0".into()];
        let error = growth.complete_takeover().await.unwrap_err();
        assert!(
            format!("{error:#}").contains("`model.blocks` must be"),
            "{error:#}"
        );
        assert_eq!(run.store.newest().await.unwrap().unwrap().draft.step, 50);
        assert_eq!(run.config(), "# mine\n[model]\nblocks = 2\n");
    }

    #[tokio::test]
    async fn one_process_holds_the_lock_and_processes_of_a_killed_one_are_waited_for() {
        let run = tempfile::tempdir().unwrap();
        let mut first = Growth::lock(run.path()).await.unwrap();
        assert_eq!(first.state, State::default());
        assert!(!first.folder.exists());
        first.state.set.push("model.blocks=6".into());
        first.save().unwrap();
        let second = Growth::lock(run.path()).await.err().unwrap().to_string();
        assert!(second.contains("another `minuet grow` works in"), "{second}");
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let mut list = ProcessList::open(&first.folder);
        list.started("learner", child.id()).unwrap();
        drop(first);
        let mut waiting = Box::pin(Growth::lock(run.path()));
        assert!(futures::poll!(&mut waiting).is_pending());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(waiting.await.unwrap().state.set, ["model.blocks=6"]);
    }
}
