//! Pruning: removes old checkpoints, and files that interrupted publishes left.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
    time::{Duration, SystemTime},
};

use futures::TryStreamExt as _;
use object_store::{Error as StoreError, ObjectStore as _, ObjectStoreExt as _};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{
    Error, Manifest, Repository, Version,
    repository::{MANIFEST, VERSIONS, age, age_order},
};

/// Age from which files without a manifest count as left by an interrupted publish.
const LEFTOVER_AGE: Duration = Duration::from_secs(3600);
/// Shortest interval between two searches for leftovers. A search lists every object of the store.
const LEFTOVER_PAUSE: Duration = LEFTOVER_AGE;

/// A checkpoint's place in the order of training: token, step, time of publishing.
type TrainingOrder = (u64, u64, u64);

/// Manifests of a store that this process has read. A manifest never changes, so pruning reads each of them once.
#[derive(Default)]
pub(crate) struct Memory {
    /// Places of the checkpoints that the last call found.
    places: Mutex<BTreeMap<Version, TrainingOrder>>,
    /// Time of the last search for leftovers; `None` before the first search.
    looked: Mutex<Option<Instant>>,
}

fn place(manifest: &Manifest) -> TrainingOrder {
    let (token, step, created_at_ms, _) = age_order(manifest);
    (token, step, created_at_ms)
}

/// Checkpoints that pruning keeps, besides those with a label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Number of newest checkpoints. 0 keeps all.
    pub newest: usize,
    /// Number of further checkpoints, which are the next newest ones of the training step `from_step` or a later one.
    pub more: usize,
    /// First training step of the further checkpoints.
    pub from_step: u64,
}

impl From<usize> for Keep {
    fn from(newest: usize) -> Self {
        Self {
            newest,
            ..Self::default()
        }
    }
}

/// Result of [`Repository::prune`]: the versions it removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Old checkpoints.
    pub checkpoints: Vec<Version>,
    /// Folders of interrupted publishes.
    pub leftovers: Vec<Version>,
}

impl Repository {
    /// Removes all checkpoints except those in `keep` (a number keeps that many of the newest ones), and the files of publishes that
    /// were interrupted more than an hour ago.
    ///
    /// The newest checkpoint, from which training resumes, and checkpoints with a label are kept. So are checkpoints that
    /// cannot be read (damaged, or of another schema). The manifest of a checkpoint is removed first, so that a reader sees
    /// a whole checkpoint or none; a process that reads its files at that moment gets [`Error::NotFound`].
    ///
    /// Manifests are read once and remembered. Leftover files are searched for by the first call and then once an hour. So
    /// the cost of a call does not grow with the number of checkpoints, except for a listing of their names if some must be
    /// removed.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Io`]; [`Error::Damaged`] or [`Error::Schema`] if a label cannot be read. No reader sees a
    /// half-removed checkpoint then, and the next call continues.
    pub async fn prune(&self, keep: impl Into<Keep>) -> Result<Pruned, Error> {
        let looked = *self.memory.looked.lock();
        let is_due = looked.is_none_or(|looked| looked.elapsed() >= LEFTOVER_PAUSE);
        let pruned = self
            .prune_older(keep.into(), is_due.then_some(LEFTOVER_AGE))
            .await?;
        if is_due {
            *self.memory.looked.lock() = Some(Instant::now());
        }
        Ok(pruned)
    }

    /// Prunes with another age of leftovers than [`LEFTOVER_AGE`]. With `None`, does not search for leftovers.
    async fn prune_older(&self, keep: Keep, leftover_age: Option<Duration>) -> Result<Pruned, Error> {
        let mut pruned = Pruned::default();
        let mut older = self.versions_to_prune(keep).await?;
        if !older.is_empty() {
            let labelled = self.labelled().await?;
            older.retain(|(version, _)| !labelled.contains(version));
        }
        for (version, remembered) in older {
            // A label may have moved here since the labels were read.
            if self.labelled().await?.contains(&version) {
                continue;
            }
            self.memory.places.lock().remove(&version);
            // Another process may have removed the checkpoint and published it again, or it may be damaged.
            match self.find_manifest(&version).await {
                Ok(now) if now.as_ref().is_none_or(|now| place(now) == remembered) => {}
                Err(error) if error.is_transient() => return Err(error),
                Ok(_) | Err(_) => continue,
            }
            self.remove(&version).await?;
            pruned.checkpoints.push(version);
        }
        let Some(leftover_age) = leftover_age else {
            return Ok(pruned);
        };
        for version in self.without_manifest().await? {
            if self.is_leftover(&version, leftover_age).await? {
                self.remove(&version).await?;
                pruned.leftovers.push(version);
            }
        }
        if let Some(folder) = self.folder.clone() {
            blocking(move || remove_staged(&folder, leftover_age)).await?;
        }
        Ok(pruned)
    }

    /// Returns the checkpoints that pruning removes, newest first.
    async fn versions_to_prune(&self, keep: Keep) -> Result<Vec<(Version, TrainingOrder)>, Error> {
        if keep.newest == 0 {
            return Ok(Vec::new());
        }
        let listed = self.version_folders().await?;
        let unknown: Vec<Version> = {
            let mut places = self.memory.places.lock();
            places.retain(|version, _| listed.binary_search(version).is_ok());
            let unknown = listed.into_iter().filter(|version| !places.contains_key(version));
            unknown.collect()
        };
        for version in unknown {
            match self.find_manifest(&version).await {
                Ok(Some(manifest)) => {
                    self.memory.places.lock().insert(version, place(&manifest));
                }
                Ok(None) => {}
                Err(error) if error.is_transient() => return Err(error),
                Err(error) => tracing::warn!(%version, %error, "skipping a checkpoint that cannot be read"),
            }
        }
        let mut newest: Vec<(Version, TrainingOrder)> =
            self.memory.places.lock().clone().into_iter().collect();
        newest.sort_by(|(left, of_left), (right, of_right)| (of_right, right).cmp(&(of_left, left)));
        let older = newest.iter().skip(keep.newest).take(keep.more);
        let more = older.take_while(|(version, _)| version.step() >= keep.from_step);
        let kept = keep.newest + more.count();
        Ok(newest.split_off(kept.min(newest.len())))
    }

    /// Returns the versions whose folder has no manifest, by one listing of the whole store.
    async fn without_manifest(&self) -> Result<BTreeSet<Version>, Error> {
        // Folders are listed before objects: a checkpoint published in between has its manifest when the objects are listed.
        let mut without: BTreeSet<Version> = self.version_folders().await?.into_iter().collect();
        let versions = self.below(VERSIONS);
        let mut objects = self.store.list(Some(&versions));
        while let Some(object) = objects.try_next().await? {
            let Some(mut parts) = object.location.prefix_match(&versions) else {
                continue;
            };
            if let (Some(version), Some(file)) = (parts.next(), parts.next())
                && file.as_ref() == MANIFEST
                && let Ok(version) = version.as_ref().parse::<Version>()
            {
                without.remove(&version);
            }
        }
        Ok(without)
    }

    async fn labelled(&self) -> Result<BTreeSet<Version>, Error> {
        Ok(self.labels().await?.into_values().collect())
    }

    async fn is_leftover(&self, version: &Version, leftover_age: Duration) -> Result<bool, Error> {
        match self.find_manifest(version).await {
            Ok(None) => {}
            Ok(Some(_)) => return Ok(false),
            Err(error) if error.is_transient() => return Err(error),
            Err(_) => return Ok(false),
        }
        let objects = self.objects(version).await?;
        if let Some(youngest) = objects.iter().map(age).min() {
            return Ok(youngest >= leftover_age);
        }
        // The folder has no objects: its first file was being written.
        let Some(folder) = self.local_folder(version) else {
            return Ok(false);
        };
        blocking(move || Ok(is_older(&folder, leftover_age))).await
    }

    async fn remove(&self, version: &Version) -> Result<(), Error> {
        self.delete(&self.file_path(version, MANIFEST)).await?;
        for object in self.objects(version).await? {
            self.delete(&object.location).await?;
        }
        if let Some(folder) = self.local_folder(version) {
            blocking(move || match fs::remove_dir_all(&folder) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            })
            .await?;
        }
        Ok(())
    }

    async fn delete(&self, path: &object_store::path::Path) -> Result<(), Error> {
        match self.store.delete(path).await {
            Ok(()) | Err(StoreError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn local_folder(&self, version: &Version) -> Option<std::path::PathBuf> {
        let folder = self.folder.as_ref()?;
        Some(folder.join("versions").join(version.as_str()))
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await.map_err(io::Error::from)?;
    Ok(done?)
}

/// Removes partial files that a killed process left in a file store: `name#1` next to `name`, which listings do not show.
fn remove_staged(folder: &Path, leftover_age: Duration) -> io::Result<()> {
    let is_staged = |name: &str| {
        name.rsplit_once('#')
            .is_some_and(|(_, count)| !count.is_empty() && count.bytes().all(|digit| digit.is_ascii_digit()))
    };
    let mut folders = vec![folder.join("labels")];
    if let Ok(versions) = fs::read_dir(folder.join("versions")) {
        folders.extend(versions.flatten().map(|entry| entry.path()));
    }
    for folder in folders {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            if entry.file_name().to_str().is_some_and(is_staged) && is_older(&entry.path(), leftover_age) {
                fs::remove_file(entry.path())?;
            }
        }
    }
    Ok(())
}

fn is_older(path: &Path, age: Duration) -> bool {
    fs::metadata(path)
        .and_then(|metadata| metadata.modified())
        .is_ok_and(|modified| {
            SystemTime::now()
                .duration_since(modified)
                .is_ok_and(|found| found >= age)
        })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::{Draft, MODEL};

    #[tokio::test]
    async fn pruning_removes_old_leftovers_and_keeps_young_ones() {
        let home = tempfile::tempdir().unwrap();
        let repository = Repository::open(home.path().to_str().unwrap()).unwrap();
        let draft = Draft::default();
        let kept = repository
            .publish(draft, vec![(MODEL, Bytes::from_static(b"a"))])
            .await
            .unwrap();
        let dead = home.path().join("versions/000000000005-00000000");
        let empty = home.path().join("versions/000000000006-00000000");
        fs::create_dir_all(&dead).unwrap();
        fs::create_dir_all(&empty).unwrap();
        fs::write(dead.join(MODEL), "half").unwrap();
        fs::write(dead.join("weights.safetensors#1"), "half").unwrap();
        let staged = home.path().join(format!("versions/{kept}/manifest.json#2"));
        fs::write(&staged, "half").unwrap();

        let hour = Duration::from_secs(3600);
        assert_eq!(
            repository.prune_older(1.into(), Some(hour)).await.unwrap(),
            Pruned::default()
        );
        assert!(dead.join(MODEL).exists() && staged.exists());

        let pruned = repository
            .prune_older(1.into(), Some(Duration::ZERO))
            .await
            .unwrap();
        assert_eq!(pruned.checkpoints, []);
        assert_eq!(pruned.leftovers.len(), 2);
        assert!(!dead.exists() && !empty.exists() && !staged.exists());
        assert_eq!(repository.list().await.unwrap().len(), 1);
    }
}
