//! Where archives of sealed volumes are kept: a folder, or a bucket with S3's interface.
//!
//! Each volume is one file in the form of [`crate::exchange::archive`], named by its store and the sequence numbers it holds:
//!
//! ```text
//! store-5f0c3a91d2e48b76/00000000000000000001-00000000000000004096.minuet
//! ```
//! Such a name is written whole or not at all, so the names say what there is, and no index is needed.

use bytes::Bytes;
use futures::TryStreamExt as _;
use object_store::{Error, ObjectStoreExt as _};
use objects::{LocationError, Opened, upload::MULTIPART_BYTES};

pub use object_store::path::Path as ObjectPath;

/// Ending of an archive's name.
const ENDING: &str = "minuet";

/// An opened archive place.
#[derive(Clone, Debug)]
pub struct Vault {
    location: String,
    opened: Opened,
}

impl Vault {
    /// Opens a folder (made if it is not there) or a URL, with the environment's AWS_* variables.
    ///
    /// # Errors
    /// [`LocationError`]; a remote store that is away is no error yet.
    pub fn open(location: &str) -> Result<Self, LocationError> {
        Self::open_with(location, std::env::vars())
    }

    /// As [`Vault::open`], with these variables.
    ///
    /// # Errors
    /// As there.
    pub fn open_with(
        location: &str,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, LocationError> {
        Ok(Self {
            opened: objects::open(location, variables)?,
            location: location.into(),
        })
    }

    /// The folder or URL, as it was given.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// Writes the archive of a store's volume that holds the sequence numbers from `first` to `last`; the same again replaces it.
    ///
    /// # Errors
    /// What the object store reports.
    pub async fn put(&self, store: &str, first: u64, last: u64, bytes: Bytes) -> Result<(), Error> {
        let name = format!("{first:020}-{last:020}.{ENDING}");
        let path = self.opened.prefix.clone().join(store).join(name);
        let in_parts = self.opened.folder.is_none() && bytes.len() >= MULTIPART_BYTES;
        objects::write(self.opened.store.as_ref(), &path, bytes, in_parts).await?;
        Ok(())
    }

    /// All archives, by store and sequence number.
    ///
    /// # Errors
    /// What the object store reports.
    pub async fn list(&self) -> Result<Vec<ObjectPath>, Error> {
        let prefix = Some(&self.opened.prefix).filter(|prefix| !prefix.as_ref().is_empty());
        let found: Vec<_> = self.opened.store.list(prefix).try_collect().await?;
        let mut paths: Vec<ObjectPath> = found.into_iter().map(|found| found.location).collect();
        paths.retain(|path| path.extension() == Some(ENDING));
        paths.sort();
        Ok(paths)
    }

    /// Reads an archive whole: at most what a volume holds.
    ///
    /// # Errors
    /// What the object store reports.
    pub async fn get(&self, path: &ObjectPath) -> Result<Bytes, Error> {
        self.opened.store.get(path).await?.bytes().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn archives_are_found_by_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let location = folder.path().join("games");
        let vault = Vault::open(location.to_str().unwrap()).unwrap();
        assert_eq!(vault.list().await.unwrap(), []);
        for (store, first, last) in [("b", 1, 9), ("a", 10, 12), ("a", 1, 9)] {
            let bytes = Bytes::from(format!("{store}{first}"));
            vault.put(store, first, last, bytes).await.unwrap();
        }
        std::fs::write(location.join("a/notes.txt"), "not an archive").unwrap();
        let paths = vault.list().await.unwrap();
        let names: Vec<&str> = paths.iter().map(ObjectPath::as_ref).collect();
        assert_eq!(
            names,
            [
                "a/00000000000000000001-00000000000000000009.minuet",
                "a/00000000000000000010-00000000000000000012.minuet",
                "b/00000000000000000001-00000000000000000009.minuet",
            ]
        );
        assert_eq!(vault.get(&paths[1]).await.unwrap(), "a10");
    }
}
