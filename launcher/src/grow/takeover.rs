//! The takeover: the run goes on with the larger network.
//!
//! 1. The lease of `latest` is seized, so that the run's learner publishes nothing more and restarts.
//! 2. The larger network's checkpoint is published on the run's line, by the right of the new lease: training resumes from it. It has
//!    the larger network's weights and optimiser state and the run's own counts (steps, samples, positions), so that the
//!    replay ratio holds and no step number occurs twice. Its parent is the checkpoint of the larger network's line.
//! 3. `run.toml` gets the new settings, and `latest` moves.
//!
//! Before step 2 nothing of the run has changed. If the process dies after it, [`recover`] completes step 3.

use std::{fs, path::Path};

use anyhow::{Context as _, bail};
use checkpoints::{Draft, LATEST, LeaseTimes, MODEL, Manifest, OPTIMIZER, Repository, Version, WEIGHTS};
use config::{self, Override};
use serde_json::Value;

use super::{LINE, PACE, workspace};
use crate::run::{edit, folder::CONFIG};

/// Result of a takeover.
#[derive(Debug)]
pub struct Takeover {
    /// Newest checkpoint of the run.
    pub version: Version,
    /// Newest checkpoint of the run before.
    pub instead_of: Version,
}

/// Lets the run in the folder `run` go on with the checkpoint `candidate` of the larger network. `settings` are written into `run.toml`.
///
/// # Errors
/// The store or a file fails. The run is unchanged, or [`recover`] completes the takeover.
pub async fn take_over(run: &Path, candidate: &Version, settings: &[Override]) -> anyhow::Result<Takeover> {
    let config = config::load(&run.join(CONFIG))?;
    // Settings that cannot be written are found out before anything changes.
    edited(run, settings)?;
    let repository = Repository::open(&config.checkpoints.store)?;
    let manifest = repository.manifest(candidate).await?;
    let mut files = Vec::new();
    for name in [MODEL, WEIGHTS, OPTIMIZER] {
        files.push((name, repository.fetch(&manifest, name).await?));
    }
    let holder = format!("grow-{:016x}", rand::random::<u64>());
    let lease = repository.seize(LATEST, &holder, LeaseTimes::default());
    let lease = lease.await.context("cannot take the lease of the model store")?;
    let old = lease.newest().await?.context("the run has no checkpoint yet")?;
    let step = old.draft.step + 1;
    let draft = Draft {
        learner_state: learner_state(&manifest, &old, step)?,
        game: manifest.draft.game,
        layout: manifest.draft.layout,
        actions: manifest.draft.actions,
        network: manifest.draft.network,
        step,
        positions_seen: old.draft.positions_seen,
        games_seen: old.draft.games_seen.max(manifest.draft.games_seen),
        parent: Some(candidate.clone()),
    };
    let published = lease.publish(draft, files);
    let version = published.await.context("cannot publish the larger network")?;
    write_settings(run, settings)?;
    lease.set_label(&version).await?;
    lease.release().await?;
    Ok(Takeover {
        version,
        instead_of: old.version,
    })
}

/// Completes an interrupted takeover. Returns the run's newest checkpoint if the takeover has happened, and `None` if no larger
/// network is in training or if it has not taken over.
///
/// # Errors
/// As [`take_over`].
pub async fn recover(run: &Path) -> anyhow::Result<Option<Version>> {
    let Some(settings) = workspace::saved_settings(run)? else {
        return Ok(None);
    };
    let file = run.join(CONFIG);
    let config = config::load(&file)?;
    let repository = Repository::open(&config.checkpoints.store)?;
    let Some(newest) = repository.newest().await? else {
        return Ok(None);
    };
    // A checkpoint of the larger network was published on the run's line, and nothing after it.
    let parent = match &newest.draft.parent {
        Some(parent) => repository.manifest(parent).await.ok(),
        None => None,
    };
    if parent.is_some_and(|parent| parent.line == LINE) {
        // The learner that resumes from the checkpoint moves the label.
        write_settings(run, &settings)?;
        return Ok(Some(newest.version));
    }
    let larger = config::load_with(Some(&file), &for_run(&settings))?;
    Ok((larger.model == config.model).then_some(newest.version))
}

/// The learner's state: the larger network's optimiser state and measured precision, and the run's counts.
fn learner_state(larger: &Manifest, old: &Manifest, step: u64) -> anyhow::Result<Value> {
    const PROGRESS: &str = "progress";
    let mut state = larger.draft.learner_state.clone();
    let counts = old.draft.learner_state[PROGRESS].as_object();
    let (Some(own), Some(counts)) = (state[PROGRESS].as_object(), counts) else {
        bail!(
            "the learner's state in {} or {} cannot be read",
            larger.version,
            old.version
        )
    };
    let mut progress = counts.clone();
    progress.insert("step".into(), step.into());
    progress.insert(
        "precision".into(),
        own.get("precision").cloned().unwrap_or_default(),
    );
    state[PROGRESS] = progress.into();
    Ok(state)
}

/// The settings that become the run's: all but the pace.
fn for_run(settings: &[Override]) -> Vec<Override> {
    settings
        .iter()
        .filter(|setting| setting.key() != PACE)
        .cloned()
        .collect()
}

fn edited(run: &Path, settings: &[Override]) -> anyhow::Result<String> {
    let file = run.join(CONFIG);
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    edit::with_values(&text, &for_run(settings)).with_context(|| file.display().to_string())
}

fn write_settings(run: &Path, settings: &[Override]) -> anyhow::Result<()> {
    let file = run.join(CONFIG);
    durable::write(&file, edited(run, settings)?.as_bytes())
        .with_context(|| format!("cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use super::*;
    use crate::grow::workspace::Workspace;

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
        store: Repository,
        larger: Version,
        settings: Vec<Override>,
    }

    impl Run {
        /// A run with a checkpoint of step 50, and a larger network with a checkpoint of step 700.
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
            let first = learner
                .publish(draft(50, state(50, "bf16")), files(1))
                .await
                .unwrap();
            learner.set_label(&first).await.unwrap();
            let second = store.lease(LINE, "second learner", times).await.unwrap();
            let larger = second
                .publish(draft(700, state(700, "f32")), files(2))
                .await
                .unwrap();
            let settings: Vec<Override> = vec![
                "model.blocks=6".parse().unwrap(),
                format!("{PACE}=8").parse().unwrap(),
            ];
            Workspace::open(path, &settings).await.unwrap().save().unwrap();
            Self {
                store,
                larger,
                settings,
                folder,
            }
        }

        fn config(&self) -> String {
            fs::read_to_string(self.folder.path().join(CONFIG)).unwrap()
        }

        async fn take_over(&self) -> anyhow::Result<Takeover> {
            take_over(self.folder.path(), &self.larger, &self.settings).await
        }

        async fn assert_taken_over(&self) {
            assert_eq!(self.config(), "# mine\n[model]\nblocks = 6\n");
            let newest = self.store.newest().await.unwrap().unwrap();
            assert_eq!((newest.draft.step, newest.draft.positions_seen), (51, 500));
            let state = &newest.draft.learner_state;
            assert_eq!(
                state["progress"],
                json!({"step": 51, "samples": 150, "inserted": 17, "precision": "f32"})
            );
            assert_eq!(state["optimizer"]["steps"], 700);
        }
    }

    #[tokio::test]
    async fn training_goes_on_with_the_larger_network_and_the_counts_of_the_run() {
        let run = Run::new().await;
        let times = LeaseTimes::default();
        let learner = run.store.lease(LATEST, "learner", times).await.unwrap();
        let taken = run.take_over().await.unwrap();
        assert_eq!(taken.version.step(), 51);
        run.assert_taken_over().await;
        assert_eq!(run.store.label(LATEST).await.unwrap(), Some(taken.version));
        let late = learner.publish(draft(60, Value::Null), files(9)).await;
        assert!(matches!(late, Err(checkpoints::Error::Fenced { .. })), "{late:?}");
        // The takeover has given its lease back, so the next learner need not wait.
        run.store.lease(LATEST, "next", times).await.unwrap();
    }

    #[tokio::test]
    async fn an_interrupted_takeover_is_completed_if_the_checkpoint_was_published() {
        let run = Run::new().await;
        let before = run.config();
        assert!(recover(run.folder.path()).await.unwrap().is_none());
        assert_eq!(run.config(), before);

        // The process died right after publishing.
        run.take_over().await.unwrap();
        fs::write(run.folder.path().join(CONFIG), &before).unwrap();
        let newest = run.store.newest().await.unwrap().unwrap();
        assert_eq!(
            recover(run.folder.path()).await.unwrap(),
            Some(newest.version.clone())
        );
        run.assert_taken_over().await;
        // It died after that, and the run's learner has gone on.
        let learner = run
            .store
            .lease(LATEST, "learner", LeaseTimes::default())
            .await
            .unwrap();
        let next = Draft {
            parent: Some(newest.version),
            ..draft(60, newest.draft.learner_state)
        };
        let next = learner.publish(next, files(3)).await.unwrap();
        assert_eq!(recover(run.folder.path()).await.unwrap(), Some(next));
    }

    #[tokio::test]
    async fn a_takeover_whose_settings_cannot_be_written_changes_nothing() {
        let run = Run::new().await;
        let settings: Vec<Override> = vec!["model.blocks=0".parse().unwrap()];
        let error = take_over(run.folder.path(), &run.larger, &settings)
            .await
            .unwrap_err();
        assert!(
            format!("{error:#}").contains("`model.blocks` must be"),
            "{error:#}"
        );
        assert_eq!(run.store.newest().await.unwrap().unwrap().draft.step, 50);
    }
}
