//! The folder in which a larger network grows, apart from everything of the run: [`Nursery`].
//!
//! | path in `learner-grown/` | what it is |
//! |---|---|
//! | `grow.json` | the settings that the larger network has of its own |
//! | `lock` | held by the one `minuet grow` that works here |
//! | `checkpoints/` | its checkpoints: a model store of its own, with its own lease |
//! | `matches/` | its matches against the run's newest checkpoint |
//! | `takeover.json` | there while it takes over |
//! | `processes.json`, `metrics.jsonl`, … | its processes; its learner's own files |

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use config::Override;
use serde::{Deserialize, Serialize};

use crate::{
    BadUsage,
    up::{census::Census, folder::write_whole},
};

const FOLDER: &str = "learner-grown";
const WISHES: &str = "grow.json";
const LOCK: &str = "lock";

/// The folder while this process works in it.
#[derive(Debug)]
pub struct Nursery {
    path: PathBuf,
    wishes: Vec<Override>,
    is_new: bool,
    _lock: File,
}

#[derive(Serialize, Deserialize)]
struct Wishes {
    /// As `section.key=value`.
    set: Vec<String>,
}

impl Nursery {
    /// Takes the folder of a run's growing network, which is made if there is none. `wishes` may be left out where there is one.
    ///
    /// # Errors
    /// Where another process works in it, where it grows something else, or nothing was wished for.
    pub fn open(run: &Path, wishes: &[Override]) -> anyhow::Result<Self> {
        let path = run.join(FOLDER);
        let known = read_wishes(&path)?;
        if known.is_none() && wishes.is_empty() {
            return Err(BadUsage(
                "--set is missing: say what is to be larger, e.g. --set model.blocks=6 --set model.filters=96".into(),
            )
            .into());
        }
        let lock = lock(&path)?;
        if let Some(known) = &known
            && !wishes.is_empty()
            && known != wishes
        {
            let texts: Vec<String> = known.iter().map(ToString::to_string).collect();
            return Err(BadUsage(format!(
                "another network grows in {} ({}); leave out --set to go on with it, or throw it away with --abort first",
                path.display(),
                texts.join(", ")
            ))
            .into());
        }
        Ok(Self {
            is_new: known.is_none(),
            wishes: known.unwrap_or_else(|| wishes.to_vec()),
            path,
            _lock: lock,
        })
    }

    /// Waits for processes of a `minuet grow` that was killed: they write here until they see that it is gone.
    pub async fn no_left_overs(&self) {
        no_left_overs(&self.path).await;
    }

    /// Removes the folder and everything in it, once no process is left over in it; says whether there was any.
    ///
    /// # Errors
    /// Where a process works in it, or it takes over already.
    pub async fn abort(run: &Path) -> anyhow::Result<bool> {
        let path = run.join(FOLDER);
        if !path.exists() {
            return Ok(false);
        }
        let _lock = lock(&path)?;
        if takeover_file(run).exists() {
            bail!(
                "the larger network was about to take over; run the command without --abort to bring that to its end"
            );
        }
        no_left_overs(&path).await;
        fs::remove_dir_all(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        Ok(true)
    }

    /// Keeps the settings, now that they are known to be usable.
    ///
    /// # Errors
    /// What the file system says.
    pub fn keep(&self) -> io::Result<()> {
        let set = self.wishes.iter().map(ToString::to_string).collect();
        write_whole(
            &self.path.join(WISHES),
            &serde_json::to_vec_pretty(&Wishes { set })?,
        )
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The model store in it.
    pub fn store(&self) -> String {
        self.path.join("checkpoints").to_string_lossy().into_owned()
    }

    /// What the larger network has of its own.
    pub fn wishes(&self) -> &[Override] {
        &self.wishes
    }

    /// Whether nothing grew here before.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// The network has taken over: nothing of it is needed here any more.
    ///
    /// # Errors
    /// What the file system says.
    pub fn clear(self) -> io::Result<()> {
        fs::remove_dir_all(&self.path)
    }
}

async fn no_left_overs(folder: &Path) {
    Census::open(folder).wait_for_left_overs(|_| {}).await;
}

/// The file that is there while a larger network takes over the run in this folder.
pub fn takeover_file(run: &Path) -> PathBuf {
    run.join(FOLDER).join("takeover.json")
}

fn lock(folder: &Path) -> anyhow::Result<File> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let path = folder.join(LOCK);
    let file = File::create(&path).with_context(|| format!("cannot use {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => bail!("another `minuet grow` works in {}", folder.display()),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}

fn read_wishes(folder: &Path) -> anyhow::Result<Option<Vec<Override>>> {
    let path = folder.join(WISHES);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    let read = || -> anyhow::Result<Vec<Override>> {
        let wishes: Wishes = serde_json::from_slice(&bytes)?;
        Ok(wishes
            .set
            .iter()
            .map(|text| text.parse())
            .collect::<Result<_, _>>()?)
    };
    let wishes = read().with_context(|| format!("{} is damaged; --abort throws it away", path.display()))?;
    Ok(Some(wishes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_grows_is_gone_on_with_and_nothing_else() {
        let run = tempfile::tempdir().unwrap();
        let wishes =
            |texts: &[&str]| -> Vec<Override> { texts.iter().map(|text| text.parse().unwrap()).collect() };
        let says = |result: anyhow::Result<Nursery>, words: &str| {
            let said = result.unwrap_err().to_string();
            assert!(said.contains(words), "{said}");
        };
        says(Nursery::open(run.path(), &[]), "--set is missing");
        assert!(!Nursery::abort(run.path()).await.unwrap(), "there was nothing");

        let larger = wishes(&["model.blocks=6", "model.filters=96"]);
        let first = Nursery::open(run.path(), &larger).unwrap();
        assert!(first.is_new());
        first.keep().unwrap();
        says(
            Nursery::open(run.path(), &larger),
            "another `minuet grow` works in",
        );
        assert!(Nursery::abort(run.path()).await.is_err(), "it is at work");
        drop(first);

        let again = Nursery::open(run.path(), &[]).unwrap();
        assert_eq!((again.is_new(), again.wishes()), (false, &larger[..]));
        drop(again);
        says(
            Nursery::open(run.path(), &wishes(&["model.blocks=7"])),
            "model.blocks=6, model.filters=96",
        );
        fs::write(takeover_file(run.path()), "{}").unwrap();
        assert!(
            Nursery::abort(run.path())
                .await
                .unwrap_err()
                .to_string()
                .contains("take over")
        );
        fs::remove_file(takeover_file(run.path())).unwrap();
        assert!(Nursery::abort(run.path()).await.unwrap());
        assert!(!run.path().join(FOLDER).exists());
    }

    #[tokio::test]
    async fn nothing_is_removed_under_a_process_that_is_left_over() {
        let run = tempfile::tempdir().unwrap();
        let larger: Override = "model.blocks=6".parse().unwrap();
        drop(Nursery::open(run.path(), &[larger]).unwrap());
        let folder = run.path().join(FOLDER);
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        Census::open(&folder).started("learner", child.id()).unwrap();
        let mut aborting = Box::pin(Nursery::abort(run.path()));
        assert!(futures::poll!(&mut aborting).is_pending() && folder.exists());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(aborting.await.unwrap() && !folder.exists());
    }
}
