//! Removing what is no longer needed: old checkpoints, and what interrupted publishes left.

use std::{
    collections::BTreeSet,
    fs, io,
    path::Path,
    time::{Duration, SystemTime},
};

use object_store::{Error as StoreError, ObjectStoreExt as _};

use crate::{
    Error, Repository, Version,
    repository::{age, age_order},
};

/// Files without a manifest that are older than this belong to nobody.
const LEFTOVER_AGE: Duration = Duration::from_secs(3600);

/// What [`Repository::prune`] removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Checkpoints.
    pub checkpoints: Vec<Version>,
    /// Folders of interrupted publishes.
    pub leftovers: Vec<Version>,
}

impl Repository {
    /// Removes all but the `keep` newest checkpoints (0 keeps all), and what interrupted publishes left more than an hour ago.
    ///
    /// A checkpoint with a label stays, and so does the newest one, from which training resumes. One that cannot be
    /// read (damaged, or of another schema) is not touched. A checkpoint vanishes manifest first, so that a reader
    /// sees it whole or not at all; who is reading its files at this moment gets [`Error::NotFound`].
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Io`]; [`Error::Damaged`] or [`Error::Schema`] where a label cannot be read. Nothing is half removed
    /// then that a reader could see, and the next call goes on.
    pub async fn prune(&self, keep: usize) -> Result<Pruned, Error> {
        self.prune_older(keep, LEFTOVER_AGE).await
    }

    pub(crate) async fn prune_older(&self, keep: usize, leftover_age: Duration) -> Result<Pruned, Error> {
        let mut pruned = Pruned::default();
        for version in self.versions_to_prune(keep).await? {
            // A label may have moved here since the last look.
            if self.labelled().await?.contains(&version) {
                continue;
            }
            self.remove(&version).await?;
            pruned.checkpoints.push(version);
        }
        for version in self.version_folders().await? {
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

    async fn versions_to_prune(&self, keep: usize) -> Result<Vec<Version>, Error> {
        if keep == 0 {
            return Ok(Vec::new());
        }
        let mut manifests = self.list().await?;
        manifests.sort_by(|left, right| age_order(right).cmp(&age_order(left)));
        Ok(manifests
            .into_iter()
            .skip(keep)
            .map(|manifest| manifest.version)
            .collect())
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
        // A folder without a single object: a file store's, its first file was being written.
        let Some(folder) = self.local_folder(version) else {
            return Ok(false);
        };
        blocking(move || Ok(is_older(&folder, leftover_age))).await
    }

    async fn remove(&self, version: &Version) -> Result<(), Error> {
        let manifest = self.manifest_path(version);
        self.delete(&manifest).await?;
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

/// Removes what a killed process left of puts into a file store: `name#1` beside `name`, which listings do not show.
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
    async fn what_a_killed_publisher_left_goes_and_what_is_young_stays() {
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
        assert_eq!(repository.prune_older(1, hour).await.unwrap(), Pruned::default());
        assert!(dead.join(MODEL).exists() && staged.exists());

        let pruned = repository.prune_older(1, Duration::ZERO).await.unwrap();
        assert_eq!(pruned.checkpoints, []);
        assert_eq!(pruned.leftovers.len(), 2);
        assert!(!dead.exists() && !empty.exists() && !staged.exists());
        assert_eq!(repository.list().await.unwrap().len(), 1);
    }
}
