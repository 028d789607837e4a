//! The larger network takes the place of the run's own: its checkpoint becomes the newest one of the run's store, and `run.toml` says
//! its shape.
//!
//! The lease of `latest` is seized, so that the present learner publishes nothing more and stops; the checkpoint is published by the
//! right of the new token, which makes it the one that training resumes from; then `run.toml` and the label follow. Publishing
//! is the point of no return: before it nothing of the run has changed, and after it whatever is missing is made up for by the
//! next `minuet up` or `minuet grow` ([`recover`]), by the file that says what was meant.
//!
//! Training goes on with the larger network's weights and optimiser and with the run's own counts (steps, samples, positions), so that
//! the replay ratio holds and no step's number comes twice.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use checkpoints::{Draft, LATEST, LeaseTimes, MODEL, Manifest, OPTIMIZER, Repository, Version, WEIGHTS};
use config::{self, Override};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{edit, nursery};
use crate::up::folder::{CONFIG, write_whole};

/// What is about to happen.
#[derive(Debug, Serialize, Deserialize)]
struct Intent {
    /// The network's file, by which its checkpoint is known.
    model_sha256: String,
    /// What changes in `run.toml`, as `section.key=value`.
    set: Vec<String>,
}

/// The two checkpoints of a takeover.
#[derive(Debug)]
pub struct Takeover {
    /// The newest checkpoint of the run now.
    pub version: Version,
    /// Training steps that it counts.
    pub step: u64,
    /// What was the newest before.
    pub instead_of: Version,
}

/// Lets the checkpoint `version` of the store `grown` take over the run in this folder; `changes` are those of its `run.toml`.
///
/// # Errors
/// Where a store or a file cannot be used. The run is as it was, or [`recover`] brings it to the end.
pub async fn take_over(
    run: &Path,
    grown: &Repository,
    version: &Version,
    changes: &[Override],
) -> anyhow::Result<Takeover> {
    let file = run.join(CONFIG);
    let config = config::load(&file)?;
    // What cannot be written later should be known before anything happens.
    edited(&file, changes)?;
    let manifest = grown.manifest(version).await?;
    let mut files = Vec::new();
    for name in [MODEL, WEIGHTS, OPTIMIZER] {
        files.push((name, grown.fetch(&manifest, name).await?));
    }
    let intent = Intent {
        model_sha256: digest(&manifest).to_owned(),
        set: changes.iter().map(ToString::to_string).collect(),
    };
    let marker = nursery::takeover_file(run);
    write_whole(&marker, &serde_json::to_vec_pretty(&intent)?)
        .with_context(|| format!("cannot write {}", marker.display()))?;

    let repository = Repository::open(&config.checkpoints.store)?;
    let holder = format!("grow-{:016x}", rand::random::<u64>());
    let lease = repository
        .seize(LATEST, &holder, LeaseTimes::default())
        .await
        .context("cannot take the lease of the model store")?;
    let old = newest(&repository).await?;
    let step = old.step + 1;
    let draft = Draft {
        game: manifest.game.clone(),
        layout: manifest.layout.clone(),
        actions: manifest.actions,
        network: manifest.network.clone(),
        step,
        positions_seen: old.positions_seen,
        games_seen: old.games_seen.max(manifest.games_seen),
        parent: None,
        learner_state: state(&manifest, &old, step)?,
    };
    let published = lease
        .publish(draft, files)
        .await
        .context("cannot publish the larger network")?;
    write_changes(&file, changes)?;
    lease.set_label(&published).await?;
    lease.release().await?;
    remove(&marker)?;
    Ok(Takeover {
        version: published,
        step,
        instead_of: old.version,
    })
}

/// Brings a takeover that was interrupted to its end, or forgets it where nothing of the run had changed yet. Gives the run's newest
/// checkpoint where the takeover has happened.
///
/// # Errors
/// As [`take_over`].
pub async fn recover(run: &Path) -> anyhow::Result<Option<Version>> {
    let marker = nursery::takeover_file(run);
    let bytes = match fs::read(&marker) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", marker.display())),
    };
    let intent: Intent =
        serde_json::from_slice(&bytes).with_context(|| format!("{} is damaged", marker.display()))?;
    let file = run.join(CONFIG);
    let config = config::load(&file)?;
    let repository = Repository::open(&config.checkpoints.store)?;
    let newest = newest(&repository).await?;
    let has_happened = digest(&newest) == intent.model_sha256;
    if has_happened {
        let changes: Vec<Override> = intent
            .set
            .iter()
            .map(|text| text.parse())
            .collect::<Result<_, _>>()?;
        // The label is moved by the learner that resumes from there.
        write_changes(&file, &changes)?;
    }
    remove(&marker)?;
    Ok(has_happened.then_some(newest.version))
}

async fn newest(repository: &Repository) -> anyhow::Result<Manifest> {
    let newest = repository.newest().await?;
    newest.context("the run has no checkpoint yet")
}

fn digest(manifest: &Manifest) -> &str {
    manifest.files.get(MODEL).map_or("", |file| &file.sha256)
}

/// The learner's state: the larger network's optimiser and measured precision, and the run's counts.
fn state(grown: &Manifest, old: &Manifest, step: u64) -> anyhow::Result<Value> {
    const PROGRESS: &str = "progress";
    let mut state = grown.learner_state.clone();
    let (Some(own), Some(counts)) = (
        state[PROGRESS].as_object().cloned(),
        old.learner_state[PROGRESS].as_object().cloned(),
    ) else {
        bail!(
            "the learner's state in {} or {} cannot be read",
            grown.version,
            old.version
        )
    };
    let mut progress = counts;
    progress.insert("step".into(), step.into());
    progress.insert(
        "precision".into(),
        own.get("precision").cloned().unwrap_or_default(),
    );
    state[PROGRESS] = progress.into();
    Ok(state)
}

fn edited(file: &Path, changes: &[Override]) -> anyhow::Result<String> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    edit::changed(&text, changes).with_context(|| file.display().to_string())
}

fn write_changes(file: &Path, changes: &[Override]) -> anyhow::Result<()> {
    let text = edited(file, changes)?;
    write_whole(file, text.as_bytes()).with_context(|| format!("cannot write {}", file.display()))
}

fn remove(marker: &PathBuf) -> anyhow::Result<()> {
    fs::remove_file(marker).with_context(|| format!("cannot remove {}", marker.display()))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

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

    struct Run {
        folder: tempfile::TempDir,
        main: Repository,
        grown: Repository,
        larger: Version,
        changes: Vec<Override>,
    }

    impl Run {
        /// A run with a checkpoint of step 50, and a larger network of step 700 beside it.
        async fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path();
            fs::write(path.join(CONFIG), "# mine\n[model]\nblocks = 2\n").unwrap();
            let open = |name: &str| Repository::open(path.join(name).to_str().unwrap()).unwrap();
            let (main, grown) = (open("checkpoints"), open("learner-grown/checkpoints"));
            let state = |step: u64, precision: &str| {
                json!({
                    "progress": {"step": step, "samples": 3 * step, "inserted": 17, "precision": precision},
                    "optimizer": {"rule": "adamw", "steps": step},
                    "seed": 1,
                })
            };
            let times = LeaseTimes::default();
            let learner = main.lease(LATEST, "learner", times).await.unwrap();
            let first = learner
                .publish(draft(50, state(50, "bf16")), files(1))
                .await
                .unwrap();
            learner.set_label(&first).await.unwrap();
            let larger = grown
                .publish(draft(700, state(700, "f32")), files(2))
                .await
                .unwrap();
            Self {
                main,
                grown,
                larger,
                changes: vec!["model.blocks=6".parse().unwrap()],
                folder,
            }
        }

        fn config(&self) -> String {
            fs::read_to_string(self.folder.path().join(CONFIG)).unwrap()
        }

        async fn take_over(&self) -> anyhow::Result<Takeover> {
            take_over(self.folder.path(), &self.grown, &self.larger, &self.changes).await
        }

        async fn assert_taken_over(&self) {
            assert_eq!(self.config(), "# mine\n[model]\nblocks = 6\n");
            let newest = self.main.newest().await.unwrap().unwrap();
            assert_eq!((newest.step, newest.positions_seen), (51, 500));
            let state = &newest.learner_state;
            assert_eq!(
                state["progress"],
                json!({"step": 51, "samples": 150, "inserted": 17, "precision": "f32"})
            );
            assert_eq!(state["optimizer"]["steps"], 700);
            assert!(!nursery::takeover_file(self.folder.path()).exists());
        }
    }

    #[tokio::test]
    async fn the_larger_network_is_gone_on_from_with_the_runs_counts() {
        let run = Run::new().await;
        // A learner that is alive.
        let times = LeaseTimes::default();
        let learner = run.main.lease(LATEST, "learner", times).await.unwrap();
        let taken = run.take_over().await.unwrap();
        assert_eq!(taken.step, 51);
        run.assert_taken_over().await;
        assert_eq!(run.main.label(LATEST).await.unwrap(), Some(taken.version));
        let late = learner.publish(draft(60, Value::Null), files(9)).await;
        assert!(matches!(late, Err(checkpoints::Error::Fenced { .. })), "{late:?}");
        // The next learner need not wait.
        run.main.lease(LATEST, "next", times).await.unwrap();
        assert!(recover(run.folder.path()).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn interrupted_before_publishing_nothing_has_changed_and_after_it_everything_follows() {
        let run = Run::new().await;
        let marker = nursery::takeover_file(run.folder.path());
        let before = run.config();
        let manifest = run.grown.manifest(&run.larger).await.unwrap();
        let intent = Intent {
            model_sha256: digest(&manifest).into(),
            set: vec!["model.blocks=6".into()],
        };
        let intent = serde_json::to_vec(&intent).unwrap();
        fs::write(&marker, &intent).unwrap();
        assert!(recover(run.folder.path()).await.unwrap().is_none());
        assert_eq!(run.config(), before);
        assert!(!marker.exists());

        // As if it had been killed right after publishing: the rest is undone.
        run.take_over().await.unwrap();
        fs::write(run.folder.path().join(CONFIG), &before).unwrap();
        fs::write(&marker, &intent).unwrap();
        let newest = run.main.newest().await.unwrap().unwrap().version;
        assert_eq!(recover(run.folder.path()).await.unwrap(), Some(newest));
        run.assert_taken_over().await;
    }

    #[tokio::test]
    async fn what_cannot_be_written_later_stops_it_before_anything_happens() {
        let run = Run::new().await;
        let text = "model = { blocks = 2 }\n";
        fs::write(run.folder.path().join(CONFIG), text).unwrap();
        let error = format!("{:#}", run.take_over().await.unwrap_err());
        assert!(error.contains("cannot change model.blocks"), "{error}");
        assert_eq!(run.main.newest().await.unwrap().unwrap().step, 50);
        assert!(!nursery::takeover_file(run.folder.path()).exists());
    }
}
