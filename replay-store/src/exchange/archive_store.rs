//! Storage of archived volumes: a folder, or a bucket with S3's interface.
//!
//! Each volume is one file in the format of [`crate::exchange::archive`]. Its name consists of the name of the store, the first and last
//! sequence number, and the first 16 hexadecimal digits of the SHA-256 of the file:
//!
//! ```text
//! store-5f0c3a91d2e48b76/00000000000000000001-00000000000000004096-9a0c44f1be20d3c7.minuet
//! ```
//! A file appears under its name only when it is complete, so that a listing of the names is a complete index. Equal names have equal
//! contents: a copied or restored store, which has the name of the first one, never replaces a file of it.

use bytes::Bytes;
use futures::TryStreamExt as _;
use object_store::{Error, ObjectStoreExt as _};
use objects::{LocationError, MULTIPART_BYTES, Opened};
use proto::ids::hex;
use sha2::{Digest as _, Sha256};

pub use object_store::path::Path as ObjectPath;

/// File extension of archives.
const ENDING: &str = "minuet";

/// An opened folder or bucket of archives.
#[derive(Clone, Debug)]
pub struct ArchiveStore {
    location: String,
    opened: Opened,
}

impl ArchiveStore {
    /// Opens a folder (created if it does not exist) or a URL, with the AWS_* variables of the environment.
    ///
    /// # Errors
    /// [`LocationError`] if the location is not valid. An unreachable remote store is reported by the first access.
    pub fn open(location: &str) -> Result<Self, LocationError> {
        Self::open_with(location, objects::environment())
    }

    /// Does the same as [`ArchiveStore::open`], with the given variables.
    ///
    /// # Errors
    /// The errors of [`ArchiveStore::open`].
    pub fn open_with(
        location: &str,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, LocationError> {
        Ok(Self {
            opened: objects::open(location, variables)?,
            location: location.into(),
        })
    }

    /// Returns the folder or URL with which the store was opened.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// Writes the archive of the volume of `store` with the sequence numbers `first` to `last`. Writing equal bytes again changes
    /// nothing.
    ///
    /// # Errors
    /// The error of the object store.
    pub async fn put(&self, store: &str, first: u64, last: u64, bytes: Bytes) -> Result<(), Error> {
        let digest = hex(&Sha256::digest(&bytes)[..8]);
        let name = format!("{first:020}-{last:020}-{digest}.{ENDING}");
        let path = self.opened.prefix.clone().join(store).join(name);
        let in_parts = self.opened.folder.is_none() && bytes.len() >= MULTIPART_BYTES;
        objects::write(self.opened.store.as_ref(), &path, bytes, in_parts).await?;
        Ok(())
    }

    /// Returns the paths of all archives, sorted by store and sequence number.
    ///
    /// # Errors
    /// The error of the object store.
    pub async fn list(&self) -> Result<Vec<ObjectPath>, Error> {
        let prefix = Some(&self.opened.prefix).filter(|prefix| !prefix.as_ref().is_empty());
        let found: Vec<_> = self.opened.store.list(prefix).try_collect().await?;
        let mut paths: Vec<ObjectPath> = found.into_iter().map(|found| found.location).collect();
        paths.retain(|path| path.extension() == Some(ENDING));
        paths.sort();
        Ok(paths)
    }

    /// Reads a whole archive into memory. Its size is limited by that of a volume.
    ///
    /// # Errors
    /// The error of the object store.
    pub async fn get(&self, path: &ObjectPath) -> Result<Bytes, Error> {
        self.opened.store.get(path).await?.bytes().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn list_returns_archives_in_order_and_ignores_other_files() {
        let folder = tempfile::tempdir().unwrap();
        let location = folder.path().join("games");
        let archive_store = ArchiveStore::open(location.to_str().unwrap()).unwrap();
        assert_eq!(archive_store.list().await.unwrap(), []);
        for (store, first, last) in [("b", 1, 9), ("a", 10, 12), ("a", 1, 9)] {
            let bytes = Bytes::from(format!("{store}{first}"));
            archive_store.put(store, first, last, bytes).await.unwrap();
        }
        std::fs::write(location.join("a/notes.txt"), "not an archive").unwrap();
        let paths = archive_store.list().await.unwrap();
        let names: Vec<&str> = paths.iter().map(ObjectPath::as_ref).collect();
        let begins = |at: usize, begin: &str| assert!(names[at].starts_with(begin), "{names:?}");
        begins(0, "a/00000000000000000001-00000000000000000009-");
        begins(1, "a/00000000000000000010-00000000000000000012-");
        begins(2, "b/00000000000000000001-00000000000000000009-");
        assert_eq!(names.len(), 3);
        assert_eq!(archive_store.get(&paths[1]).await.unwrap(), "a10");
        // Equal bytes have the name that they had; other bytes replace nothing.
        archive_store.put("a", 1, 9, "a1".into()).await.unwrap();
        assert_eq!(archive_store.list().await.unwrap(), paths);
        archive_store.put("a", 1, 9, "other".into()).await.unwrap();
        assert_eq!(archive_store.list().await.unwrap().len(), 4);
        assert_eq!(archive_store.get(&paths[0]).await.unwrap(), "a1");
    }
}
