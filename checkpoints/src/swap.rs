//! Compare-and-swap of small objects, which labels and leases need.
//!
//! Object stores offer it as conditional writes (`If-Match`, `If-None-Match`). A file system has no such operation, so
//! processes that share a folder lock the file `lock` for a write. The kernel releases the lock when its holder dies.

use std::{
    fs::{File, TryLockError},
    io,
    path::PathBuf,
    time::Duration,
};

use bytes::Bytes;
use object_store::{
    Error as StoreError, ObjectStore as _, ObjectStoreExt as _, PutMode, UpdateVersion,
    path::Path as StorePath,
};

use crate::{Error, Repository, manifest::now_ms};

const LOCK: &str = "lock";
/// Largest manifest, label or lease that is read, in bytes.
const MAX_TEXT_BYTES: u64 = 1 << 20;
/// Folder of the objects of [`Repository::probe`].
const PROBES: &str = "probes";
/// Maximum time to wait for the lock. A holder needs milliseconds, unless its process is paused in the middle of a write.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);
const LOCK_POLL: Duration = Duration::from_millis(10);

/// A small object as it was when it was read.
pub(crate) struct Seen {
    pub bytes: Bytes,
    at: UpdateVersion,
}

impl Repository {
    /// Reads the object at `path`; `None` if there is none.
    pub(crate) async fn look(&self, path: &StorePath) -> Result<Option<Seen>, Error> {
        let got = match self.store.get(path).await {
            Ok(got) => got,
            Err(StoreError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let at = UpdateVersion {
            e_tag: got.meta.e_tag.clone(),
            version: got.meta.version.clone(),
        };
        if got.meta.size > MAX_TEXT_BYTES {
            return Err(Error::Damaged {
                name: path.filename().unwrap_or_default().to_owned(),
                reason: format!("{} bytes, the limit is {MAX_TEXT_BYTES}", got.meta.size),
            });
        }
        let bytes = got.bytes().await?;
        Ok(Some(Seen { bytes, at }))
    }

    /// Writes `text` to `path` if the object there is still `seen` (`None`: no object). Returns true if it was written.
    /// After an error the write may or may not have happened; read the object again.
    pub(crate) async fn swap(
        &self,
        path: &StorePath,
        seen: Option<&Seen>,
        text: Vec<u8>,
    ) -> Result<bool, Error> {
        if let Some(folder) = self.folder.clone() {
            let (repository, path, seen) = (self.clone(), path.clone(), seen.map(|seen| seen.bytes.clone()));
            // The write runs in its own task, because a caller that stops waiting must not release the lock during the write.
            let turn = tokio::spawn(async move {
                let _turn = lock(folder.join(LOCK)).await?;
                let is_unchanged = repository.look(&path).await?.map(|now| now.bytes) == seen;
                if is_unchanged {
                    repository.store.put(&path, text.into()).await?;
                }
                Ok(is_unchanged)
            });
            return turn.await.map_err(|error| Error::Io(error.into()))?;
        }
        let mode = match seen {
            None => PutMode::Create,
            Some(seen) => PutMode::Update(seen.at.clone()),
        };
        match self.store.put_opts(path, text.into(), mode.into()).await {
            Ok(_) => Ok(true),
            Err(StoreError::AlreadyExists { .. } | StoreError::Precondition { .. }) => Ok(false),
            Err(StoreError::NotImplemented { operation, .. }) => Err(no_leases(format!(
                "the store has no conditional writes ({operation})"
            ))),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes, reads and removes a small object, and checks that conditional writes are refused if their condition is false.
    ///
    /// # Errors
    /// [`Error::Refused`] if the store ignores the condition of a write; [`Error::Store`] or [`Error::Io`] if the store does
    /// not answer or refuses.
    pub async fn probe(&self) -> Result<(), Error> {
        let name = format!("{}-{}", std::process::id(), now_ms());
        let path = self.below(PROBES).join(name.as_str());
        let tried = self.try_out(&path).await;
        let removed = self.store.delete(&path).await;
        tried?;
        Ok(removed?)
    }

    async fn try_out(&self, path: &StorePath) -> Result<(), Error> {
        let ignores = |header: &str| Err(no_leases(format!("the store ignores {header}")));
        if !self.swap(path, None, b"first".to_vec()).await? {
            return Err(no_leases("the store refuses a new object"));
        }
        if self.swap(path, None, b"again".to_vec()).await? {
            return ignores("If-None-Match");
        }
        let Some(seen) = self.look(path).await? else {
            return Err(no_leases("an object is not found after it was written"));
        };
        if !self.swap(path, Some(&seen), b"second".to_vec()).await? {
            return Err(no_leases("the store refuses to replace an unchanged object"));
        }
        if self.swap(path, Some(&seen), b"third".to_vec()).await? {
            return ignores("If-Match");
        }
        Ok(())
    }
}

/// Returns the error for a store that lacks an operation which leases need.
pub(crate) fn no_leases(reason: impl std::fmt::Display) -> Error {
    Error::Refused(format!("the model store cannot hold leases: {reason}"))
}

/// Takes the lock, which is released when the file is dropped.
async fn lock(path: PathBuf) -> Result<File, Error> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)?;
    let mut waited = Duration::ZERO;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(error.into()),
            Err(TryLockError::WouldBlock) if waited >= LOCK_PATIENCE => {
                let reason = format!("another process has held {} for too long", path.display());
                return Err(io::Error::new(io::ErrorKind::WouldBlock, reason).into());
            }
            Err(TryLockError::WouldBlock) => {
                tokio::time::sleep(LOCK_POLL).await;
                waited += LOCK_POLL;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waiting_for_a_held_lock_ends_with_an_error_that_names_it() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(LOCK);
        let held = lock(path.clone()).await.unwrap();
        let error = lock(path.clone()).await.unwrap_err();
        assert!(
            error.to_string().contains("for too long") && error.is_transient(),
            "{error}"
        );
        drop(held);
        lock(path).await.unwrap();
    }

    #[tokio::test]
    async fn a_store_with_conditional_writes_passes_and_keeps_nothing() {
        let folder = tempfile::tempdir().unwrap();
        for store in [folder.path().to_str().unwrap(), "memory:///run"] {
            let repository = Repository::open(store).unwrap();
            repository.probe().await.unwrap();
            let left = repository.store.list(None);
            let left: Vec<_> = futures::TryStreamExt::try_collect(left).await.unwrap();
            assert!(
                left.iter()
                    .all(|object: &object_store::ObjectMeta| !object.location.as_ref().contains("probes")),
                "{left:?}"
            );
        }
    }
}
