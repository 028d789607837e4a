//! The folder `learner-grown/` of a run, in which the second learner works: [`Workspace`].
//!
//! | file | contents |
//! |---|---|
//! | `grow.json` | settings in which the larger network differs from the run |
//! | `lock` | held by the one `minuet grow` that works here |
//! | `matches/` | matches against the run's newest checkpoint |
//! | `processes.json`, `metrics.jsonl`, … | processes of `minuet grow`; files of the second learner |

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use checkpoints::Repository;
use config::Override;

use super::{CANDIDATE_LABEL, LINE};
use crate::{BadUsage, processes::list::ProcessList};

const FOLDER: &str = "learner-grown";
const SETTINGS: &str = "grow.json";

/// The folder, locked by this process.
#[derive(Debug)]
pub struct Workspace {
    /// The folder.
    pub path: PathBuf,
    /// Settings in which the larger network differs from the run.
    pub settings: Vec<Override>,
    /// True if no earlier `minuet grow` has saved settings here.
    pub is_new: bool,
    _lock: File,
}

impl Workspace {
    /// Locks the folder, which is made if there is none. Without `given` settings the saved ones hold.
    ///
    /// # Errors
    /// Another process works in the folder, `given` differs from the saved settings, or there are no settings at all.
    pub async fn open(run: &Path, given: &[Override]) -> anyhow::Result<Self> {
        let saved = saved_settings(run)?;
        if saved.is_none() && given.is_empty() {
            let text = "--set is missing: say what is to be larger, e.g. --set model.blocks=6 --set model.filters=96";
            return Err(BadUsage(text.into()).into());
        }
        let path = run.join(FOLDER);
        let lock = lock(&path)?;
        if let Some(saved) = &saved
            && !given.is_empty()
            && saved != given
        {
            let texts: Vec<String> = saved.iter().map(ToString::to_string).collect();
            return Err(BadUsage(format!(
                "another network ({}) is in training in {}; leave out --set to continue with it, or delete it with --abort",
                texts.join(", "),
                path.display()
            ))
            .into());
        }
        if path.join("checkpoints").exists() {
            bail!(
                "{} was made by an earlier version of `minuet grow`; delete it with --abort",
                path.display()
            );
        }
        // Processes of a `minuet grow` that was killed write here until they notice that it is gone.
        ProcessList::open(&path).wait_for_left_overs(|_| {}).await;
        Ok(Self {
            is_new: saved.is_none(),
            settings: saved.unwrap_or_else(|| given.to_vec()),
            path,
            _lock: lock,
        })
    }

    /// Saves the settings.
    ///
    /// # Errors
    /// [`io::Error`] of the file system.
    pub fn save(&self) -> io::Result<()> {
        let set: Vec<String> = self.settings.iter().map(ToString::to_string).collect();
        let text = serde_json::to_vec_pretty(&serde_json::json!({ "set": set }))?;
        durable::write(&self.path.join(SETTINGS), &text)
    }

    /// Deletes the line of the larger network from the model store, and the folder.
    ///
    /// # Errors
    /// The store or the file system fails; the next `minuet grow` tries again.
    pub async fn delete(self, repository: &Repository) -> anyhow::Result<()> {
        repository.remove_line(CANDIDATE_LABEL).await?;
        repository.remove_line(LINE).await?;
        fs::remove_dir_all(&self.path).with_context(|| format!("cannot remove {}", self.path.display()))
    }

    /// Takes the folder of a run in order to delete it, once no process works there; `None` if there is none.
    ///
    /// # Errors
    /// Another `minuet grow` works in the folder.
    pub async fn existing(run: &Path) -> anyhow::Result<Option<Self>> {
        let path = run.join(FOLDER);
        if !path.exists() {
            return Ok(None);
        }
        let lock = lock(&path)?;
        ProcessList::open(&path).wait_for_left_overs(|_| {}).await;
        Ok(Some(Self {
            path,
            settings: Vec::new(),
            is_new: false,
            _lock: lock,
        }))
    }
}

/// Reads the settings of the larger network that is in training for a run; `None` if there is none.
///
/// # Errors
/// The file cannot be read.
pub fn saved_settings(run: &Path) -> anyhow::Result<Option<Vec<Override>>> {
    let path = run.join(FOLDER).join(SETTINGS);
    let bytes = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read.with_context(|| format!("cannot read {}", path.display()))?,
    };
    let parse = || -> anyhow::Result<Vec<Override>> {
        let saved: serde_json::Value = serde_json::from_slice(&bytes)?;
        let set = saved["set"].as_array().context("`set` is missing")?;
        set.iter()
            .map(|text| Ok(text.as_str().context("`set` holds no text")?.parse()?))
            .collect()
    };
    parse()
        .map(Some)
        .with_context(|| format!("{} is damaged; delete it with --abort", path.display()))
}

fn lock(folder: &Path) -> anyhow::Result<File> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let file =
        File::create(folder.join("lock")).with_context(|| format!("cannot use {}", folder.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => bail!("another `minuet grow` works in {}", folder.display()),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", folder.display()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overrides(texts: &[&str]) -> Vec<Override> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[tokio::test]
    async fn one_process_works_in_the_folder_and_its_settings_stay() {
        let run = tempfile::tempdir().unwrap();
        let error =
            async |given: &[Override]| Workspace::open(run.path(), given).await.unwrap_err().to_string();
        assert!(error(&[]).await.contains("--set is missing"));
        assert!(Workspace::existing(run.path()).await.unwrap().is_none());

        let larger = overrides(&["model.blocks=6", "model.filters=96"]);
        let first = Workspace::open(run.path(), &larger).await.unwrap();
        assert!(first.is_new);
        first.save().unwrap();
        assert!(error(&larger).await.contains("another `minuet grow` works in"));
        assert!(Workspace::existing(run.path()).await.is_err());
        drop(first);

        let again = Workspace::open(run.path(), &[]).await.unwrap();
        assert_eq!((again.is_new, &again.settings), (false, &larger));
        drop(again);
        assert!(
            error(&overrides(&["model.blocks=7"]))
                .await
                .contains("model.blocks=6, model.filters=96")
        );
        let store = Repository::open("memory://").unwrap();
        Workspace::existing(run.path())
            .await
            .unwrap()
            .unwrap()
            .delete(&store)
            .await
            .unwrap();
        assert!(!run.path().join(FOLDER).exists());
    }

    #[tokio::test]
    async fn processes_of_a_killed_command_are_waited_for() {
        let run = tempfile::tempdir().unwrap();
        drop(
            Workspace::open(run.path(), &overrides(&["model.blocks=6"]))
                .await
                .unwrap(),
        );
        let folder = run.path().join(FOLDER);
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        ProcessList::open(&folder).started("learner", child.id()).unwrap();
        let mut waiting = Box::pin(Workspace::existing(run.path()));
        assert!(futures::poll!(&mut waiting).is_pending());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(waiting.await.unwrap().is_some());
    }
}
